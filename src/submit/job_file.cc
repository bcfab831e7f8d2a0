#include "submit/job_file.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "submit/errors.h"
#include "submit/job_keys.h"
#include "submit/spec_check.h"

namespace athanor {
namespace {

// How a flag's text becomes the value of its key.
enum class FlagForm { kValue, kPair, kChannel, kMetric, kSecret };

struct FlagRow {
  std::string_view flag;
  std::string_view key;
  FlagForm form;
};

constexpr FlagRow kFlags[] = {
    {"--pass", "args", FlagForm::kValue},
    {"--name", "name", FlagForm::kValue},
    {"--experiment", "experiment", FlagForm::kValue},
    {"--run-name", "run_name", FlagForm::kValue},
    {"--type", "resources.type", FlagForm::kValue},
    {"--cpus", "resources.cpus", FlagForm::kValue},
    {"--memory", "resources.memory", FlagForm::kValue},
    {"--gpus", "resources.gpus", FlagForm::kValue},
    {"--nodes", "resources.nodes", FlagForm::kValue},
    {"--processes", "resources.processes", FlagForm::kValue},
    {"--max-time", "limits.max_runtime", FlagForm::kValue},
    {"--priority", "priority", FlagForm::kValue},
    {"--spot", "resources.spot.use", FlagForm::kValue},
    {"--max-wait", "resources.spot.max_wait", FlagForm::kValue},
    {"--preempt-after", "resources.spot.preempt_after", FlagForm::kValue},
    {"--preempt-every", "resources.spot.preempt_every", FlagForm::kValue},
    {"--seed", "resources.spot.preempt_seed", FlagForm::kValue},
    {"--retries", "retry.max", FlagForm::kValue},
    {"--requirements", "environment.requirements", FlagForm::kValue},
    {"--base", "environment.base", FlagForm::kValue},
    {"--source", "source.dir", FlagForm::kValue},
    {"-p", "params", FlagForm::kPair},
    {"--param", "params", FlagForm::kPair},
    {"-e", "env", FlagForm::kPair},
    {"--env", "env", FlagForm::kPair},
    {"--tag", "tags", FlagForm::kPair},
    {"-i", "data", FlagForm::kChannel},
    {"--input", "data", FlagForm::kChannel},
    {"--metric", "metrics", FlagForm::kMetric},
    {"-s", "secrets", FlagForm::kSecret},
    {"--secret", "secrets", FlagForm::kSecret},
};

// Of the key that a dotted path leads to, or of the last existing one on the way. Keys may contain
// dots themselves.
YamlMark MarkBelow(const YamlNode& node, std::string_view path, YamlMark otherwise) {
  const auto leads = [&path](std::string_view key) {
    return path.starts_with(key) && (path.size() == key.size() || path[key.size()] == '.');
  };
  const auto rest = [&path](const std::string& key) {
    return path.substr(std::min(path.size(), key.size() + 1));
  };
  for (const auto& entry : node.entries) {
    if (leads(entry.key)) return MarkBelow(entry.value, rest(entry.key), entry.mark);
  }
  for (const auto& item : node.items) {
    for (const auto& entry : item.entries) {
      if (entry.key == "name" && leads(entry.value.text)) {
        return MarkBelow(item, rest(entry.value.text), item.mark);
      }
    }
  }
  return otherwise;
}

YamlNode MapOf(std::string_view key, YamlNode value) {
  YamlNode map;
  map.kind = YamlNode::Kind::kMap;
  map.entries.push_back({std::string(key), {}, std::move(value)});
  return map;
}

YamlNode ListOf(YamlNode item) {
  YamlNode list;
  list.kind = YamlNode::Kind::kSequence;
  list.items.push_back(std::move(item));
  return list;
}

YamlNode ChannelNode(std::string_view name, std::string_view place) {
  // Only a known mode after the last colon counts: paths may contain colons.
  const size_t colon = place.find_last_of(':');
  if (colon != std::string_view::npos) {
    const std::string_view mode = place.substr(colon + 1);
    for (const std::string_view known : {"file", "shared", "fastfile", "pipe", "mount"}) {
      if (mode != known) continue;
      YamlNode channel = MapOf("from", YamlNode::Scalar(place.substr(0, colon), true));
      channel.entries.push_back({"mode", {}, YamlNode::Scalar(mode)});
      return MapOf(name, std::move(channel));
    }
  }
  return MapOf(name, YamlNode::Scalar(place, true));
}

Result<YamlNode> FlagNode(const FlagRow& row, std::string_view flag, std::string_view value) {
  if (row.form == FlagForm::kValue) return YamlNode::Scalar(value);
  const size_t equals = value.find('=');
  const std::string_view name = value.substr(0, equals);
  if (row.form == FlagForm::kSecret) {
    if (equals == std::string_view::npos) return ListOf(YamlNode::Scalar(value, true));
    YamlNode secret = MapOf("name", YamlNode::Scalar(name, true));
    secret.entries.push_back({"from", {}, YamlNode::Scalar(value.substr(equals + 1), true)});
    return ListOf(std::move(secret));
  }
  if (equals == std::string_view::npos || name.empty()) {
    return Refuse("ATH-S0116", fmt::format("{} takes name=value", flag), "got " + Quoted(value),
                  row.form == FlagForm::kChannel  ? "-i train=/path/to/folder"
                  : row.form == FlagForm::kMetric ? "--metric 'loss=loss=([0-9.]+)'"
                                                  : fmt::format("{} lr=0.1", flag));
  }
  const std::string_view rest = value.substr(equals + 1);
  if (row.form == FlagForm::kChannel) return ChannelNode(name, rest);
  if (row.form == FlagForm::kMetric) {
    YamlNode metric = MapOf("name", YamlNode::Scalar(name, true));
    metric.entries.push_back({"regex", {}, YamlNode::Scalar(rest, true)});
    return ListOf(std::move(metric));
  }
  return MapOf(name, YamlNode::Scalar(rest));
}

bool HasSingleValue(KeyType type) {
  switch (type) {
    case KeyType::kText:
    case KeyType::kCount:
    case KeyType::kCountOrRange:
    case KeyType::kInteger:
    case KeyType::kNumber:
    case KeyType::kSigned:
    case KeyType::kBool:
    case KeyType::kDuration:
    case KeyType::kBytes:
    case KeyType::kCommand:
      return true;
    case KeyType::kTextList:
    case KeyType::kTextMap:
    case KeyType::kParams:
    case KeyType::kPatterns:
    case KeyType::kGroup:
    case KeyType::kGroupMap:
    case KeyType::kGroupList:
      return false;
  }
  return false;
}

// The flag's row; or one made for a dotted key of a single value.
std::optional<FlagRow> RowOfFlag(std::string_view flag) {
  for (const auto& row : kFlags) {
    if (row.flag == flag) return row;
  }
  const KeyRow* key = FindKey(flag);
  if (key == nullptr || key->set == nullptr || !HasSingleValue(key->type) ||
      flag.find_first_of("*[") != std::string_view::npos) {
    return std::nullopt;
  }
  return FlagRow{flag, key->path, FlagForm::kValue};
}

}  // namespace

Result<JobSpec> ParseJobFile(std::string_view text, const std::string& file) {
  ATHANOR_TRY(const YamlNode root, ParseYaml(text, file));
  if (root.kind == YamlNode::Kind::kNull) {
    Error error = Refuse("ATH-S0110", "the job file is empty", "it has no keys",
                         "ath init   writes one from what it finds in the folder")
                      .value();
    error.where = file;
    return Fail(std::move(error));
  }
  JobSpec spec;
  ATHANOR_CHECK_OK(ReadGroup({file}, spec, "", root));
  return spec;
}

Result<Json> TuneSection(std::string_view text, const std::string& file) {
  ATHANOR_TRY(const YamlNode root, ParseYaml(text, file));
  for (const auto& entry : root.entries) {
    if (entry.key == "tune") return JsonOf(entry.value);
  }
  return Json();
}

std::string PlaceInTuneSection(std::string_view text, const std::string& file,
                               std::string_view key) {
  const auto root = ParseYaml(text, file);
  if (!root) return file;
  for (const auto& entry : root->entries) {
    if (entry.key == "tune") return WhereOf(file, MarkBelow(entry.value, key, entry.mark));
  }
  return file;
}

Status ApplyFlag(JobSpec& spec, std::string_view flag, std::string_view value) {
  const auto row = RowOfFlag(flag);
  if (!row) {
    std::vector<std::string> known;
    for (const auto& other : kFlags) known.emplace_back(other.flag);
    const auto near = Nearest(flag, known);
    return Refuse("ATH-S0116", "unknown flag " + Quoted(flag), "no key of a job has this name",
                  near ? fmt::format("did you mean {}?", *near) : "ath run --help");
  }
  Status status = [&]() -> Status {
    if (value.find('\0') != std::string_view::npos || !IsUtf8(value)) {
      return Refuse("ATH-S0116", fmt::format("the value of {} is not text", flag),
                    "got " + Quoted(value), "give it as UTF-8");
    }
    ATHANOR_TRY(const YamlNode node, FlagNode(*row, flag, value));
    // Checked on a copy, so that a refused flag changes nothing.
    JobSpec changed = spec;
    ATHANOR_CHECK_OK(FindKey(row->key)->set({std::string(flag)}, changed, node));
    if (StartsWith(row->key, "resources.")) ATHANOR_CHECK_OK(CheckResources(changed.resources));
    if (StartsWith(row->key, "limits.")) ATHANOR_CHECK_OK(CheckLimits(changed.limits));
    spec = std::move(changed);
    return Ok();
  }();
  if (status.ok()) return status;
  Error error = std::move(status).error();
  if (error.where.empty()) error.where = flag;
  return Fail(std::move(error));
}

}  // namespace athanor
