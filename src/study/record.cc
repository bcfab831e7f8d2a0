#include "study/record.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "job/codec.h"

namespace athanor {
namespace {

using Kind = StudyEvent::Kind;

struct KindRow {
  Kind kind;
  std::string_view name;
};
constexpr KindRow kKinds[] = {
    {Kind::kCreated, "created"},     {Kind::kImported, "imported"},
    {Kind::kAsked, "asked"},         {Kind::kSubmitted, "submitted"},
    {Kind::kReported, "reported"},   {Kind::kStopping, "stopping"},
    {Kind::kEnded, "ended"},         {Kind::kLost, "lost"},
    {Kind::kExhausted, "exhausted"}, {Kind::kChanged, "changed"},
    {Kind::kFinishing, "finishing"}, {Kind::kFinished, "finished"},
    {Kind::kPaused, "paused"},       {Kind::kPromoted, "promoted"},
};

constexpr StudyState kStates[] = {StudyState::kRunning, StudyState::kFinishing,
                                  StudyState::kCompleted, StudyState::kStopped,
                                  StudyState::kFailed};
constexpr TrialState kTrialStates[] = {TrialState::kAsked,  TrialState::kRunning,
                                       TrialState::kPaused, TrialState::kDone,
                                       TrialState::kFailed, TrialState::kStopped};

tl::unexpected<Error> Broken(std::string why) {
  return Fail(
      Error{ErrorCode::kCorrupt, "the study's journal cannot be", "ath server restore BACKUP"}
          .Why(std::move(why))
          .Id("ATH-T0005"));
}

template <class Entry, size_t kSize, class Match>
const Entry* Row(const Entry (&table)[kSize], const Match& match) {
  for (const auto& row : table) {
    if (match(row)) return &row;
  }
  return nullptr;
}

std::optional<double> NumberIn(const Json& json, const char* key) {
  const auto at = json.find(key);
  if (at == json.end() || !at->is_number()) return std::nullopt;
  return at->get<double>();
}

int64_t WholeIn(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_number_integer() ? at->get<int64_t>() : 0;
}

std::string TextIn(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_string() ? at->get<std::string>() : std::string();
}

Status ApplyToTrial(StudyRecord& record, const StudyEvent& event) {
  auto* trial = record.Find(event.trial);
  if (!trial) return Broken(fmt::format("there is no trial {}", event.trial));
  if (IsOver(trial->state)) return Broken(fmt::format("trial {} is over", event.trial));
  // A paused trial can only be promoted, and no other can be.
  if ((trial->state == TrialState::kPaused) != (event.kind == Kind::kPromoted)) {
    return Broken(fmt::format("trial {} is {}", event.trial, NameOf(trial->state)));
  }
  switch (event.kind) {
    case Kind::kSubmitted:
      trial->state = TrialState::kRunning;
      trial->job = event.job;
      return Ok();
    case Kind::kReported:
      for (const auto& point : event.points) trial->curve.push_back(point);
      if (!trial->curve.empty()) {
        trial->value = trial->curve.back().value;
        trial->step = trial->curve.back().step;
      }
      return Ok();
    case Kind::kStopping:
      trial->stopping = true;
      trial->cause = event.cause;
      return Ok();
    case Kind::kLost:
      trial->state = TrialState::kAsked;
      trial->losses += 1;
      trial->cost_micros += event.cost_micros;
      trial->held_ms += event.held_ms;
      return Ok();
    case Kind::kEnded:
    case Kind::kPaused:
      trial->state = event.kind == Kind::kPaused ? TrialState::kPaused : event.outcome;
      if (event.kind == Kind::kPaused) trial->stopping = false;
      trial->value = event.value;
      trial->step = event.step;
      trial->told |= event.told;
      trial->cause = event.cause;
      trial->cost_micros += event.cost_micros;
      trial->held_ms += event.held_ms;
      trial->ended = event.at;
      return Ok();
    case Kind::kPromoted:
      trial->state = TrialState::kAsked;
      trial->promotions += 1;
      trial->resume_job = trial->job;
      trial->cause = {};
      trial->ended = {};
      return Ok();
    case Kind::kCreated:
    case Kind::kImported:
    case Kind::kAsked:
    case Kind::kExhausted:
    case Kind::kChanged:
    case Kind::kFinishing:
    case Kind::kFinished:
      break;
  }
  return Broken("an event that is no trial's");
}

Status ApplyAsked(StudyRecord& record, const StudyEvent& event) {
  if (event.trial != static_cast<int64_t>(record.trials.size()) + 1) {
    return Broken(
        fmt::format("trial {} does not follow trial {}", event.trial, record.trials.size()));
  }
  TrialRecord trial;
  trial.number = event.trial;
  trial.search_id = event.search_id;
  trial.params = event.params;
  trial.own = event.own;
  trial.asked = event.at;
  record.trials.push_back(std::move(trial));
  return Ok();
}

// Other limits or ranges: the study continues, also if it had ended.
Status ApplyChanged(StudyRecord& record, const StudyEvent& event) {
  ATHANOR_TRY(const auto changes, ParseJson(event.changes));
  const auto space = record.spec.space;
  ATHANOR_CHECK_OK(ChangeStudySpec(record.spec, changes));
  if (record.spec.space != space) {
    if (record.first_space.empty()) record.first_space = space;
    record.exhausted = false;
  }
  record.state = StudyState::kRunning;
  record.cause = {};
  record.ended = {};
  return Ok();
}

}  // namespace

std::string_view NameOf(StudyState state) {
  switch (state) {
    case StudyState::kRunning:
      return "Running";
    case StudyState::kFinishing:
      return "Finishing";
    case StudyState::kCompleted:
      return "Completed";
    case StudyState::kStopped:
      return "Stopped";
    case StudyState::kFailed:
      return "Failed";
  }
  return "";
}

std::string_view NameOf(TrialState state) {
  switch (state) {
    case TrialState::kAsked:
      return "asked";
    case TrialState::kRunning:
      return "running";
    case TrialState::kPaused:
      return "paused";
    case TrialState::kDone:
      return "done";
    case TrialState::kFailed:
      return "failed";
    case TrialState::kStopped:
      return "stopped";
  }
  return "";
}

bool IsOver(StudyState state) {
  return state != StudyState::kRunning && state != StudyState::kFinishing;
}

bool IsOver(TrialState state) {
  return state == TrialState::kDone || state == TrialState::kFailed ||
         state == TrialState::kStopped;
}

bool Better(const StudySpec& spec, double value, double than) {
  return spec.maximize ? value > than : value < than;
}

size_t StudyRecord::Count(TrialState trial_state) const {
  return static_cast<size_t>(std::count_if(
      trials.begin(), trials.end(), [&](const auto& trial) { return trial.state == trial_state; }));
}

size_t StudyRecord::Live() const { return Count(TrialState::kAsked) + Count(TrialState::kRunning); }

int64_t StudyRecord::CostMicros() const {
  int64_t sum = 0;
  for (const auto& trial : trials) sum += trial.cost_micros;
  return sum;
}

const TrialRecord* StudyRecord::Best() const {
  for (const bool done : {true, false}) {
    const TrialRecord* best = nullptr;
    for (const auto& trial : trials) {
      const bool stopped =
          trial.state == TrialState::kStopped || trial.state == TrialState::kPaused;
      if (!(done ? trial.state == TrialState::kDone : stopped) || !trial.value) continue;
      if (!best || Better(spec, *trial.value, *best->value)) best = &trial;
    }
    if (best) return best;
  }
  return nullptr;
}

const TrialRecord* StudyRecord::Find(int64_t number) const {
  if (number < 1 || number > static_cast<int64_t>(trials.size())) return nullptr;
  return &trials[static_cast<size_t>(number - 1)];
}

TrialRecord* StudyRecord::Find(int64_t number) {
  return const_cast<TrialRecord*>(std::as_const(*this).Find(number));
}

Status Apply(StudyRecord& record, const StudyEvent& event) {
  Status status = [&]() -> Status {
    if (IsOver(record.state) && event.kind != Kind::kChanged) return Broken("the study is over");
    switch (event.kind) {
      case Kind::kCreated:
        record.created = event.at;
        return Ok();
      case Kind::kImported:
        record.imported += 1;
        return Ok();
      case Kind::kAsked:
        return ApplyAsked(record, event);
      case Kind::kExhausted:
        record.exhausted = true;
        return Ok();
      case Kind::kChanged:
        return ApplyChanged(record, event);
      case Kind::kFinishing:
        record.state = StudyState::kFinishing;
        record.finish = event.finish;
        record.cause = event.cause;
        return Ok();
      case Kind::kFinished:
        if (record.state != StudyState::kFinishing || record.Live() > 0) {
          return Broken("it ended before its trials");
        }
        record.state = record.finish;
        record.ended = event.at;
        return Ok();
      case Kind::kSubmitted:
      case Kind::kReported:
      case Kind::kStopping:
      case Kind::kEnded:
      case Kind::kLost:
      case Kind::kPaused:
      case Kind::kPromoted:
        return ApplyToTrial(record, event);
    }
    return Broken("an unknown event");
  }();
  if (!status) return status;
  record.updated = event.at;
  record.lines += 1;
  return Ok();
}

std::string WriteEvent(const StudyEvent& event) {
  const auto* row = Row(kKinds, [&](const KindRow& each) { return each.kind == event.kind; });
  Json out = {{"e", row->name}, {"at", event.at.ms}};
  if (event.trial > 0) out["trial"] = event.trial;
  if (event.kind == Kind::kAsked) out["id"] = event.search_id;
  if (!event.params.empty()) {
    auto params = ParseJson(event.params);
    out["params"] = params ? std::move(*params) : Json::object();
  }
  if (event.own) out["own"] = true;
  if (!event.job.empty()) out["job"] = event.job;
  if (!event.points.empty()) {
    Json points = Json::array();
    // A value that JSON does not have is sent as null.
    for (const auto& point : event.points) {
      points.push_back(
          {point.step, std::isfinite(point.value) ? Json(point.value) : Json(nullptr)});
    }
    out["points"] = std::move(points);
  }
  if (event.kind == Kind::kEnded) out["outcome"] = NameOf(event.outcome);
  if (event.kind == Kind::kEnded || event.kind == Kind::kPaused) out["told"] = event.told;
  if (event.value) out["value"] = *event.value;
  if (event.step) out["step"] = *event.step;
  if (!event.cause.kind.empty()) out["cause"] = ToJson(event.cause);
  if (event.cost_micros != 0) out["cost_micros"] = event.cost_micros;
  if (event.held_ms != 0) out["held_ms"] = event.held_ms;
  if (!event.changes.empty()) {
    auto changes = ParseJson(event.changes);
    out["changes"] = changes ? std::move(*changes) : Json::object();
  }
  if (event.kind == Kind::kFinishing) out["finish"] = NameOf(event.finish);
  return DumpJson(out);
}

Result<StudyEvent> ReadEvent(std::string_view line) {
  auto json = ParseJson(line);
  if (!json || !json->is_object()) return Broken("a line is no JSON object");
  const auto name = TextIn(*json, "e");
  const auto* row = Row(kKinds, [&](const KindRow& each) { return each.name == name; });
  if (!row) return Broken("an unknown event " + name);
  StudyEvent event;
  event.kind = row->kind;
  event.at = WallTime{WholeIn(*json, "at")};
  event.trial = WholeIn(*json, "trial");
  event.search_id = WholeIn(*json, "id");
  if (json->contains("params")) event.params = DumpJson((*json)["params"]);
  event.own = json->value("own", Json(false)) == Json(true);
  event.job = TextIn(*json, "job");
  if (const auto points = json->find("points"); points != json->end() && points->is_array()) {
    for (const auto& point : *points) {
      if (!point.is_array() || point.size() != 2 || !point[0].is_number_integer()) {
        return Broken("a point is no pair of step and value");
      }
      event.points.push_back(
          {point[0].get<int64_t>(), point[1].is_number() ? point[1].get<double>() : std::nan("")});
    }
  }
  const auto outcome = TextIn(*json, "outcome");
  if (const auto* state = Row(kTrialStates, [&](auto each) { return NameOf(each) == outcome; })) {
    event.outcome = *state;
  }
  event.told = json->value("told", Json(false)) == Json(true);
  event.value = NumberIn(*json, "value");
  if (json->contains("step")) event.step = WholeIn(*json, "step");
  if (json->contains("cause")) {
    ATHANOR_TRY(event.cause, CauseFromJson((*json)["cause"]));
  }
  event.cost_micros = WholeIn(*json, "cost_micros");
  event.held_ms = WholeIn(*json, "held_ms");
  if (json->contains("changes")) event.changes = DumpJson((*json)["changes"]);
  const auto finish = TextIn(*json, "finish");
  if (const auto* state = Row(kStates, [&](auto each) { return NameOf(each) == finish; })) {
    event.finish = *state;
  }
  return event;
}

Result<StudyRecord> Replay(const StudyRow& row, const std::vector<std::string>& lines) {
  StudyRecord record;
  record.id = row.id;
  record.user = row.user;
  record.created = row.created;
  ATHANOR_TRY(const auto spec, ParseJson(row.spec));
  ATHANOR_TRY(record.spec, StudySpecFromJson(spec));
  for (size_t i = 0; i < lines.size(); ++i) {
    auto event = ReadEvent(lines[i]);
    auto applied = event ? Apply(record, *event) : Status(Fail(event.error()));
    if (applied) continue;
    Error error = applied.error();
    error.why = fmt::format("line {}: {}", i + 1, error.why);
    return Fail(std::move(error));
  }
  return record;
}

std::optional<std::string> SearchLine(const StudyRecord& record, const StudyEvent& event) {
  Json out;
  if (event.kind == Kind::kCreated) {
    // With the ranges of then: `changed` events bring the later ones, each at its place.
    auto space = ParseJson(record.first_space.empty() ? record.spec.space : record.first_space);
    out = {{"e", "created"},
           {"version", 1},
           {"space", space ? std::move(*space) : Json::array()},
           {"seed", record.spec.seed.value_or(0)},
           {"strategy", NameOf(record.spec.strategy)},
           {"goal", record.spec.maximize ? "maximize" : "minimize"}};
    return DumpJson(out);
  }
  const auto value = event.value ? Json(*event.value) : Json(nullptr);
  if (event.kind == Kind::kAsked || event.kind == Kind::kImported) {
    auto params = ParseJson(event.params);
    if (!params) return std::nullopt;
    if (event.kind == Kind::kImported) {
      out = {{"e", "imported"}, {"params", std::move(*params)}, {"value", value}};
    } else {
      out = {{"e", "asked"}, {"id", event.search_id}, {"params", std::move(*params)}};
    }
    return DumpJson(out);
  }
  if (event.kind == Kind::kChanged) {
    auto changes = ParseJson(event.changes);
    if (!changes || !changes->contains("ranges")) return std::nullopt;
    out = {{"e", "ranges"}, {"ranges", (*changes)["ranges"]}};
    return DumpJson(out);
  }
  if ((event.kind != Kind::kEnded && event.kind != Kind::kPaused) || !event.told)
    return std::nullopt;
  const auto* trial = record.Find(event.trial);
  if (!trial) return std::nullopt;
  out = {{"e", "told"},
         {"id", trial->search_id},
         {"value", event.outcome == TrialState::kFailed ? Json(nullptr) : value}};
  return DumpJson(out);
}

}  // namespace athanor
