#include "job/codec.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/io/hash.h"
#include "base/text/rfc3339.h"
#include "base/text/text.h"
#include "job/fields.h"
#include "job/record_text.h"

namespace athanor {
namespace {

template <class T>
concept HasFields = requires(T& x, int& v) {
  requires std::is_class_v<T>;
}
&&(std::same_as<T, Param> || std::same_as<T, SourceSpec> || std::same_as<T, EnvironmentSpec> ||
   std::same_as<T, ResourceSpec> || std::same_as<T, LimitSpec> || std::same_as<T, ChannelSpec> ||
   std::same_as<T, MetricSpec> || std::same_as<T, SecretSpec> || std::same_as<T, RetrySpec> ||
   std::same_as<T, JobSpec> || std::same_as<T, Cause> || std::same_as<T, StopRequest> ||
   std::same_as<T, ExitInfo> || std::same_as<T, Placement> || std::same_as<T, Attempt> ||
   std::same_as<T, Output> || std::same_as<T, PriceTag> || std::same_as<T, JobRecord> ||
   std::same_as<T, StoredEvent> || std::same_as<T, Inventory> || std::same_as<T, SpotSpec> ||
   std::same_as<T, CheckpointSpec> || std::same_as<T, RuleSpec> ||
   std::same_as<T, CheckpointInfo> || std::same_as<T, IntervalAdvice> || std::same_as<T, Firing> ||
   std::same_as<T, OutputSpec> || std::same_as<T, LeftFile> || std::same_as<T, LeftOut> ||
   std::same_as<T, RankEnd> || std::same_as<T, HostUsage> || std::same_as<T, Host> ||
   std::same_as<T, FirstFall>);

constexpr std::string_view kParamKinds[] = {"string", "number", "bool", "null", "json"};

// Writes members; empty members, and groups with only defaults, are left out, so that stored
// records stay small.
class Writer {
 public:
  explicit Writer(Json& out) : out_(out) {}

  template <class T>
  void operator()(const char* key, const T& field) {
    if constexpr (HasFields<T>) {
      if (field == T{}) return;
    }
    Json value = Value(field);
    bool empty = value.is_null() ||
                 ((value.is_string() || value.is_array() || value.is_object()) && value.empty()) ||
                 (value.is_string() && value.template get_ref<const std::string&>().empty());
    if (!empty) out_[key] = std::move(value);
  }

  template <class T>
  static Json Value(const T& field) {
    if constexpr (HasFields<T>) {
      Json object = Json::object();
      Writer writer(object);
      Fields(writer, field);
      return object;
    } else if constexpr (std::same_as<T, WallTime>) {
      return field.ms == 0 ? Json() : Json(Rfc3339(field));
    } else if constexpr (std::same_as<T, JobId> || std::same_as<T, AttemptId>) {
      return field.is_zero() ? Json() : Json(field.ToString());
    } else if constexpr (std::same_as<T, JobState>) {
      return Json(std::string(NameOf(field)));
    } else if constexpr (std::same_as<T, Param::Kind>) {
      return Json(std::string(kParamKinds[static_cast<int>(field)]));
    } else if constexpr (std::same_as<T, std::chrono::milliseconds>) {
      return Json(field.count());
    } else {
      return Json(field);
    }
  }
  template <class T>
  static Json Value(const std::optional<T>& field) {
    return field ? Value(*field) : Json();
  }
  template <class T>
  static Json Value(const std::vector<T>& items) {
    Json array = Json::array();
    for (const auto& item : items) array.push_back(Value(item));
    return array;
  }

 private:
  Json& out_;
};

class Reader {
 public:
  // `strict`: an unknown member is an error, not skipped.
  Reader(const Json& in, bool strict) : in_(in), strict_(strict) {}

  template <class T>
  void operator()(const char* key, T& field) {
    if (!error_.empty()) return;
    known_.push_back(key);
    auto it = in_.find(key);
    if (it == in_.end() || it->is_null()) return;
    if (!Read(*it, field) && error_.empty()) {
      error_ = std::string("member \"") + key + "\" has the wrong type";
    }
  }

  // After all fields.
  const std::string& error() {
    for (auto it = in_.begin(); strict_ && error_.empty() && it != in_.end(); ++it) {
      if (std::find(known_.begin(), known_.end(), it.key()) == known_.end()) {
        error_ = "there is no member \"" + Printable(it.key().substr(0, 64)) + "\"";
      }
    }
    return error_;
  }

 private:
  template <class T>
  bool Read(const Json& value, T& field) {
    if constexpr (HasFields<T>) {
      if (!value.is_object()) return false;
      Reader reader(value, strict_);
      Fields(reader, field);
      error_ = reader.error();
      return error_.empty();
    } else if constexpr (std::same_as<T, WallTime>) {
      if (!value.is_string()) return false;
      auto time = ParseRfc3339(value.get_ref<const std::string&>());
      if (time) field = *time;
      return time.has_value();
    } else if constexpr (std::same_as<T, JobId> || std::same_as<T, AttemptId>) {
      if (!value.is_string()) return false;
      auto id = T::Parse(value.get_ref<const std::string&>());
      if (id) field = *id;
      return id.has_value();
    } else if constexpr (std::same_as<T, JobState>) {
      if (!value.is_string()) return false;
      auto state = StateNamed(value.get_ref<const std::string&>());
      if (state) field = *state;
      return state.has_value();
    } else if constexpr (std::same_as<T, Param::Kind>) {
      for (size_t i = 0; i < std::size(kParamKinds); ++i) {
        if (value == kParamKinds[i]) {
          field = static_cast<Param::Kind>(i);
          return true;
        }
      }
      return false;
    } else if constexpr (std::same_as<T, std::chrono::milliseconds>) {
      if (!value.is_number_integer()) return false;
      field = std::chrono::milliseconds(value.get<int64_t>());
      return true;
    } else if constexpr (std::same_as<T, bool>) {
      if (!value.is_boolean()) return false;
      field = value.get<bool>();
      return true;
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!value.is_number()) return false;
      field = value.get<T>();
      return true;
    } else if constexpr (std::is_integral_v<T>) {
      if (!value.is_number_integer()) return false;
      if constexpr (std::is_unsigned_v<T>) {
        if (!value.is_number_unsigned() && value.get<int64_t>() < 0) return false;
      }
      bool fits = value.is_number_unsigned() ? std::in_range<T>(value.get<uint64_t>())
                                             : std::in_range<T>(value.get<int64_t>());
      if (fits) field = value.get<T>();
      return fits;
    } else {
      if (!value.is_string()) return false;
      field = value.get<std::string>();
      return true;
    }
  }
  template <class T>
  bool Read(const Json& value, std::optional<T>& field) {
    field.emplace();
    return Read(value, *field);
  }
  template <class T>
  bool Read(const Json& value, std::vector<T>& items) {
    if (!value.is_array()) return false;
    items.clear();
    for (const auto& item : value) {
      if (!Read(item, items.emplace_back())) return false;
    }
    return true;
  }
  bool Read(const Json& value, std::map<std::string, std::string>& map) {
    if (!value.is_object()) return false;
    map.clear();
    for (const auto& [key, item] : value.items()) {
      if (!item.is_string()) return false;
      map[key] = item.get<std::string>();
    }
    return true;
  }

  const Json& in_;
  const bool strict_;
  std::vector<std::string_view> known_;
  std::string error_;
};

template <class T>
Result<T> FromJson(const Json& json, const char* noun, bool strict = false) {
  T value;
  if (!json.is_object()) {
    return Fail(ErrorCode::kInvalid, std::string(noun) + " is not a JSON object");
  }
  Reader reader(json, strict);
  Fields(reader, value);
  if (!reader.error().empty()) {
    return Fail(ErrorCode::kInvalid, std::string(noun) + ": " + reader.error());
  }
  return value;
}

}  // namespace

Json ToJson(const JobSpec& spec) { return Writer::Value(spec); }
Json ToJson(const JobRecord& record) { return Writer::Value(record); }
Json ToJson(const Attempt& attempt) { return Writer::Value(attempt); }
Json ToJson(const Cause& cause) { return Writer::Value(cause); }
Json ToJson(const Placement& placement) { return Writer::Value(placement); }
Json ToJson(const ExitInfo& exit) { return Writer::Value(exit); }
Json ToJson(const Output& output) { return Writer::Value(output); }
Json ToJson(const CheckpointInfo& checkpoint) { return Writer::Value(checkpoint); }
Json ToJson(const IntervalAdvice& advice) { return Writer::Value(advice); }
Json ToJson(const Firing& firing) { return Writer::Value(firing); }
Json ToJson(const StoredEvent& event) { return Writer::Value(event); }
Json ToJson(const Inventory& inventory) { return Writer::Value(inventory); }

Result<JobSpec> SpecFromJson(const Json& json) { return FromJson<JobSpec>(json, "spec"); }
Result<JobSpec> SpecFromCaller(const Json& json) { return FromJson<JobSpec>(json, "spec", true); }
Result<JobRecord> RecordFromJson(const Json& json) {
  ATHANOR_TRY(auto record, FromJson<JobRecord>(json, "record"));
  AddMissingHosts(record);
  return record;
}
Result<Cause> CauseFromJson(const Json& json) { return FromJson<Cause>(json, "cause"); }
Result<Placement> PlacementFromJson(const Json& json) {
  return FromJson<Placement>(json, "placement");
}
Result<ExitInfo> ExitFromJson(const Json& json) { return FromJson<ExitInfo>(json, "exit"); }
Result<Output> OutputFromJson(const Json& json) { return FromJson<Output>(json, "output"); }
Result<CheckpointInfo> CheckpointFromJson(const Json& json) {
  return FromJson<CheckpointInfo>(json, "checkpoint");
}
Result<IntervalAdvice> AdviceFromJson(const Json& json) {
  return FromJson<IntervalAdvice>(json, "advice");
}
Result<Firing> FiringFromJson(const Json& json) { return FromJson<Firing>(json, "firing"); }
Result<StoredEvent> EventFromJson(const Json& json) { return FromJson<StoredEvent>(json, "event"); }

// A job of one rank as it was written before there were nodes and processes, so that a key that was
// used then still belongs to the same job.
std::string SpecHash(const JobSpec& spec) {
  constexpr std::string_view kOneRank = ",\"nodes\":1,\"nodes_most\":0,\"processes\":1";
  std::string text = SpecText(spec);
  if (const auto at = text.find(kOneRank); at != std::string::npos) {
    text.erase(at, kOneRank.size());
  }
  return Sha256Hex(text);
}
std::string SameRunHash(const JobSpec& spec) { return Sha256Hex(SameRunText(spec)); }

}  // namespace athanor
