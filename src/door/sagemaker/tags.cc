// Tags of training and tuning jobs, by ARN. A job's first ones are in its spec; once changed, all
// of them are in their own document.
#include <nlohmann/json.hpp>

#include "base/text/text.h"
#include "door/sagemaker/asked.h"
#include "door/sagemaker/paging.h"
#include "door/sagemaker/service.h"
#include "door/sagemaker/shapes.h"

namespace athanor::sagemaker {
namespace {

constexpr size_t kMostTags = 50;

// "training-job/NAME" of an ARN; empty: not one of ours.
std::string ResourceOf(const std::string& arn) {
  const auto parts = Split(arn, ':');
  if (parts.size() != 6 || parts[0] != "arn" || parts[2] != "sagemaker") return {};
  const bool known =
      StartsWith(parts[5], "training-job/") || StartsWith(parts[5], "hyper-parameter-tuning-job/");
  return known ? parts[5] : std::string();
}

using Tags = std::map<std::string, std::string>;

Json View(const Tags& tags) {
  Json list = Json::array();
  for (const auto& [key, value] : tags) list.push_back({{"Key", key}, {"Value", value}});
  return list;
}

Tags Read(const Json& list) {
  Tags tags;
  if (!list.is_array()) return tags;
  for (const auto& tag : list) tags[tag.value("Key", "")] = tag.value("Value", "");
  return tags;
}

// A finished look-up: the tags, and what they hang on.
struct Tagged {
  std::string resource;
  Tags tags;
};

}  // namespace

// The current tags of a resource; NotFound if there is no such resource.
static tl::expected<Tagged, AwsError> Load(DoorContext& context, const std::string& arn,
                                           const Result<std::optional<JobRecord>>& job) {
  Tagged tagged{ResourceOf(arn), {}};
  if (!job) return tl::unexpected(Refusal(job.error()));
  auto kept = context.documents.Find(kTagsKind, tagged.resource);
  if (!kept) return tl::unexpected(Refusal(kept.error()));
  if (*job) {
    tagged.tags = (*job)->spec.tags;
  } else {
    auto study =
        context.documents.Find(kTuningKind, tagged.resource.substr(tagged.resource.find('/') + 1));
    if (!study) return tl::unexpected(Refusal(study.error()));
    if (!*study || !StartsWith(tagged.resource, "hyper")) return tl::unexpected(NotFound());
    if (auto body = ParseJson((*study)->text)) {
      tagged.tags = Read((*body)["request"].value("Tags", Json::array()));
    }
  }
  if (*kept) {
    if (auto list = ParseJson((*kept)->text)) tagged.tags = Read(*list);
  }
  return tagged;
}

static std::string NameIn(const Json& body) {
  const auto resource = ResourceOf(body.value("ResourceArn", ""));
  return StartsWith(resource, "training-job/") ? resource.substr(13) : std::string();
}

void Service::AddTags(Asked asked, Answered answered) {
  ShapeCheck check;
  const auto arn = check.Text(asked.body, "ResourceArn", "", {1, 256, "arn:.*"}, Need::kRequired);
  const auto* tags = check.List(asked.body, "Tags", "", kMostTags, Need::kRequired);
  for (size_t i = 0; tags && i < tags->size(); ++i) {
    check.Text((*tags)[i], "Key", Member("tags", i), {1, 128}, Need::kRequired);
    check.Text((*tags)[i], "Value", Member("tags", i), {0, 256}, Need::kRequired);
  }
  if (auto error = check.Error()) return answered(tl::unexpected(*error));
  auto tagged = Load(context_, *arn, Find(NameIn(asked.body)));
  if (!tagged) return answered(tl::unexpected(tagged.error()));
  for (const auto& [key, value] : Read(*tags)) tagged->tags[key] = value;
  if (tagged->tags.size() > kMostTags) {
    return answered(
        tl::unexpected(AwsError{400, "ResourceLimitExceeded", "a resource has at most 50 tags"}));
  }
  OnPool(
      [this, tagged = *tagged]() -> Answer {
        auto kept = context_.documents.Put(kTagsKind, tagged.resource, DumpJson(View(tagged.tags)),
                                           context_.clock.Wall());
        if (!kept) return tl::unexpected(Refusal(kept.error()));
        return Json({{"Tags", View(tagged.tags)}});
      },
      answered);
}

void Service::ListTags(Asked asked, Answered answered) {
  ShapeCheck check;
  const auto arn = check.Text(asked.body, "ResourceArn", "", {1, 256, "arn:.*"}, Need::kRequired);
  auto page = PageOf(asked.body, check);
  if (!asked.body.contains("MaxResults")) page.most = kMostTags;
  if (auto error = check.Error()) return answered(tl::unexpected(*error));
  auto tagged = Load(context_, *arn, Find(NameIn(asked.body)));
  if (!tagged) return answered(tl::unexpected(tagged.error()));
  answered(Cut(View(tagged->tags), page, "Tags"));
}

void Service::DeleteTags(Asked asked, Answered answered) {
  ShapeCheck check;
  const auto arn = check.Text(asked.body, "ResourceArn", "", {1, 256, "arn:.*"}, Need::kRequired);
  const auto* keys = check.List(asked.body, "TagKeys", "", kMostTags, Need::kRequired);
  if (auto error = check.Error()) return answered(tl::unexpected(*error));
  auto tagged = Load(context_, *arn, Find(NameIn(asked.body)));
  if (!tagged) return answered(tl::unexpected(tagged.error()));
  for (const auto& key : *keys) tagged->tags.erase(key.get<std::string>());
  OnPool(
      [this, tagged = *tagged]() -> Answer {
        auto kept = context_.documents.Put(kTagsKind, tagged.resource, DumpJson(View(tagged.tags)),
                                           context_.clock.Wall());
        if (!kept) return tl::unexpected(Refusal(kept.error()));
        return Json::object();
      },
      answered);
}

}  // namespace athanor::sagemaker
