#include "link/job_files_wire.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"
#include "job/codec.h"

namespace athanor::files_wire {
namespace {

constexpr std::pair<Shelf, std::string_view> kShelves[] = {
    {Shelf::kBlobs, "blobs"}, {Shelf::kParts, "parts"}, {Shelf::kEarlierParts, "earlier"}};

tl::unexpected<Error> NotUnderstood(const char* what) {
  return Fail(ErrorCode::kInvalid, std::string("not ") + what);
}

// Reads a document whose accessors throw on wrong types.
template <class Read>
auto Reading(std::string_view text, const char* what, Read read)
    -> decltype(read(std::declval<const Json&>())) {
  ATHANOR_TRY(const Json json, ParseJson(text));
  try {
    return read(json);
  } catch (const nlohmann::json::exception&) {
    return NotUnderstood(what);
  }
}

// A count; JSON also knows negative and broken numbers.
uint64_t Count(const Json& json) {
  if (!json.is_number_unsigned()) return json.get_ref<const Json::string_t&>().size();  // throws
  return json.get<uint64_t>();
}

}  // namespace

std::string_view NameOf(Shelf shelf) {
  for (const auto& [known, name] : kShelves) {
    if (known == shelf) return name;
  }
  return {};
}

std::optional<Shelf> ShelfNamed(std::string_view name) {
  for (const auto& [shelf, known] : kShelves) {
    if (known == name) return shelf;
  }
  return std::nullopt;
}

std::string Encode(const Question& question) {
  Json json = {{"shelf", NameOf(question.shelf)}, {"blobs", Json::array()}};
  for (const auto& blob : question.blobs) {
    json["blobs"].push_back(Json::array({blob.sha256, blob.bytes}));
  }
  return DumpJson(json);
}

Result<Question> DecodeQuestion(std::string_view text) {
  constexpr char kWhat[] = "a question about blobs";
  return Reading(text, kWhat, [&](const Json& json) -> Result<Question> {
    Question question;
    const auto shelf = ShelfNamed(json.at("shelf").get<std::string>());
    if (!shelf || !json.at("blobs").is_array()) return NotUnderstood(kWhat);
    question.shelf = *shelf;
    for (const auto& blob : json["blobs"]) {
      question.blobs.push_back({blob.at(0).get<std::string>(), Count(blob.at(1))});
    }
    if (question.blobs.size() > kMostAsked) return NotUnderstood(kWhat);
    return question;
  });
}

std::string EncodeThere(const std::vector<bool>& there) {
  std::string digits;
  for (const bool one : there) digits += one ? '1' : '0';
  return DumpJson({{"there", digits}});
}

Result<std::vector<bool>> DecodeThere(std::string_view text) {
  return Reading(text, "an answer about blobs", [](const Json& json) -> Result<std::vector<bool>> {
    std::vector<bool> there;
    for (const char digit : json.at("there").get<std::string>()) there.push_back(digit == '1');
    return there;
  });
}

std::string Encode(const UploadState& state) {
  return DumpJson({{"stored", state.stored}, {"received", state.received}});
}

Result<UploadState> DecodeUpload(std::string_view text) {
  return Reading(text, "the state of an upload", [](const Json& json) -> Result<UploadState> {
    return UploadState{json.at("stored").get<bool>(), Count(json.at("received"))};
  });
}

std::string EncodeEntries(const std::vector<JobEntry>& entries) {
  Json json = {{"entries", Json::array()}};
  for (const auto& entry : entries) {
    json["entries"].push_back(Json::array({entry.name, entry.bytes}));
  }
  return DumpJson(json);
}

Result<std::vector<JobEntry>> DecodeEntries(std::string_view text) {
  return Reading(text, "a list of entries", [](const Json& json) -> Result<std::vector<JobEntry>> {
    std::vector<JobEntry> entries;
    for (const auto& entry : json.at("entries")) {
      entries.push_back({entry.at(0).get<std::string>(), Count(entry.at(1))});
    }
    return entries;
  });
}

std::string EncodeCheckpoint(const CheckpointInfo& info) { return DumpJson(ToJson(info)); }

Result<CheckpointInfo> DecodeCheckpoint(std::string_view text) {
  ATHANOR_TRY(const Json json, ParseJson(text));
  return CheckpointFromJson(json);
}

std::string EncodeSteps(const std::vector<CheckpointInfo>& checkpoints) {
  Json json = {{"steps", Json::array()}};
  for (const auto& one : checkpoints) {
    if (one.step) json["steps"].push_back(*one.step);
  }
  return DumpJson(json);
}

Result<std::vector<int64_t>> DecodeSteps(std::string_view text) {
  return Reading(text, "a list of steps", [](const Json& json) -> Result<std::vector<int64_t>> {
    return json.at("steps").get<std::vector<int64_t>>();
  });
}

std::string Encode(const Care& care) {
  Json json = Json::object();
  if (care.keep) {
    json["keep"] = {{"last", care.keep->keep_last},
                    {"best", care.keep->keep_best},
                    {"goal", care.keep->best_goal},
                    {"values", Json::array()}};
    for (const auto& [step, value] : care.values) {
      // What is no number is never the best.
      if (std::isfinite(value)) json["keep"]["values"].push_back(Json::array({step, value}));
    }
  }
  if (care.needed) {
    json["needed"] = Json::array();
    for (const auto& sha256 : *care.needed) json["needed"].push_back(sha256);
  }
  return DumpJson(json);
}

Result<Care> DecodeCare(std::string_view text) {
  constexpr char kWhat[] = "what to do with checkpoints";
  return Reading(text, kWhat, [&](const Json& json) -> Result<Care> {
    Care care;
    if (!json.is_object()) return NotUnderstood(kWhat);
    if (const auto keep = json.find("keep"); keep != json.end()) {
      CheckpointSpec spec;
      // Less than one would remove what the next attempt needs.
      spec.keep_last = static_cast<uint32_t>(
          std::min<uint64_t>(std::max<uint64_t>(Count(keep->at("last")), 1), UINT32_MAX));
      spec.keep_best =
          static_cast<uint32_t>(std::min<uint64_t>(Count(keep->at("best")), UINT32_MAX));
      spec.best_goal = keep->at("goal").get<std::string>();
      for (const auto& value : keep->at("values")) {
        care.values.emplace_back(value.at(0).get<int64_t>(), value.at(1).get<double>());
      }
      care.keep = std::move(spec);
    }
    if (const auto needed = json.find("needed"); needed != json.end()) {
      care.needed = needed->get<std::set<std::string>>();
    }
    return care;
  });
}

}  // namespace athanor::files_wire
