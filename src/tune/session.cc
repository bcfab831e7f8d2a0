#include "tune/session.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor::tune {
namespace {

constexpr int kVersion = 1;

Json Number(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

tl::unexpected<Error> Broken(size_t line, const std::string& why) {
  return Fail(
      Error{ErrorCode::kCorrupt, fmt::format("line {} of the journal cannot be", line),
            fmt::format("keep the first {} lines in a new file to go on from there", line - 1)}
          .Why(why)
          .Id("ATH-T0005"));
}

Result<std::optional<double>> ValueIn(const Json& event) {
  const auto value = event.find("value");
  if (value == event.end() || value->is_null()) return std::nullopt;
  if (!value->is_number()) return Fail(ErrorCode::kCorrupt, "a value is not a number");
  return value->get<double>();
}

}  // namespace

Session::Session(Space space, const SessionOptions& options, Sink sink)
    : space_(std::move(space)),
      options_(options),
      sink_(std::move(sink)),
      history_(std::make_unique<History>(space_)) {}

Result<std::unique_ptr<Session>> Session::Create(const Json& space, const SessionOptions& options,
                                                 Sink sink) {
  ATHANOR_TRY(auto parsed, Space::Parse(space));
  std::unique_ptr<Session> session(new Session(std::move(parsed), options, std::move(sink)));
  session->space_json_ = DumpJson(space);
  ATHANOR_CHECK_OK(session->Write({{"e", "created"},
                                   {"version", kVersion},
                                   {"space", space},
                                   {"seed", options.settings.seed},
                                   {"strategy", std::string(NameOf(options.settings.strategy))},
                                   {"goal", options.maximize ? "maximize" : "minimize"}}));
  return session;
}

Result<std::unique_ptr<Session>> Session::Replay(const JournalText& journal, Sink sink) {
  if (journal.events.empty()) return Broken(1, "there is none");
  ATHANOR_TRY(const Json created, ParseJson(journal.events.front()));
  const auto text = [&](const char* key) {
    const auto found = created.find(key);
    return found != created.end() && found->is_string() ? found->get<std::string>() : "";
  };
  const auto seed = created.find("seed");
  if (text("e") != "created" || created.value("version", Json()) != Json(kVersion) ||
      seed == created.end() || !seed->is_number_unsigned() || !created.contains("space")) {
    return Broken(1, "it does not create a search of this version");
  }
  SessionOptions options;
  options.settings.seed = seed->get<uint64_t>();
  options.maximize = text("goal") == "maximize";
  ATHANOR_TRY(options.settings.strategy, StrategyNamed(text("strategy")));
  ATHANOR_TRY(auto space, Space::Parse(created["space"]));
  std::unique_ptr<Session> session(new Session(std::move(space), options, std::move(sink)));
  session->space_json_ = DumpJson(created["space"]);
  for (size_t i = 1; i < journal.events.size(); ++i) {
    ATHANOR_TRY(const Json event, ParseJson(journal.events[i]));
    if (auto applied = session->Apply(event); !applied) {
      return Broken(i + 1, applied.error().what);
    }
  }
  session->writer_ = JournalWriter(journal.checksum);
  return session;
}

Status Session::Write(const Json& event) {
  if (!sink_) return Ok();
  auto writer = writer_;
  ATHANOR_CHECK_OK(sink_(writer.Line(event)));
  writer_ = writer;
  return Ok();
}

// Events of a journal come through the same checks as calls.
Status Session::Apply(const Json& event) {
  const auto kind = event.find("e");
  const auto id = event.find("id");
  const bool has_id = id != event.end() && id->is_number_integer();
  if (kind == event.end() || !kind->is_string())
    return Fail(ErrorCode::kCorrupt, "no kind of event");
  const auto name = kind->get<std::string>();
  if (name == "asked" && has_id && event.contains("params")) {
    ATHANOR_TRY(auto values, space_.FromJson(event["params"], false));
    return history_->Asked(id->get<int64_t>(), std::move(values));
  }
  if (name == "ranges" && event.contains("ranges")) return Take(event["ranges"]);
  ATHANOR_TRY(auto value, ValueIn(event));
  const double sign = options_.maximize ? -1.0 : 1.0;
  if (name == "told" && has_id) {
    return value ? history_->Told(id->get<int64_t>(), sign * *value)
                 : history_->Failed(id->get<int64_t>());
  }
  if (name == "imported" && event.contains("params")) {
    ATHANOR_TRY(auto values, space_.FromJson(event["params"], true));
    history_->Imported(std::move(values), value ? sign * *value : 0, !value);
    return Ok();
  }
  return Fail(ErrorCode::kCorrupt, "an unknown event: " + Printable(name));
}

Result<Session::Asked> Session::Ask() {
  ATHANOR_TRY(auto suggestion, tune::Ask(space_, options_.settings, *history_, &memory_));
  Asked asked{history_->next_id(), std::move(suggestion.values), suggestion.repeated};
  ATHANOR_CHECK_OK(
      Write({{"e", "asked"}, {"id", asked.id}, {"params", space_.ToJson(asked.values)}}));
  ATHANOR_CHECK_OK(history_->Asked(asked.id, asked.values));
  return asked;
}

Status Session::Tell(int64_t id, std::optional<double> value) {
  const bool failed = !value || !std::isfinite(*value);
  const auto* trial = history_->Find(id);
  const bool news = trial && trial->state == Trial::State::kRunning;
  if (news) ATHANOR_CHECK_OK(Write({{"e", "told"}, {"id", id}, {"value", Number(value)}}));
  // If it does not run, nothing was written: then this is an error, or the same value again.
  return failed ? history_->Failed(id) : history_->Told(id, options_.maximize ? -*value : *value);
}

Result<int64_t> Session::Import(const Json& params, std::optional<double> value) {
  ATHANOR_TRY(auto values, space_.FromJson(params, true));
  const Json kept = space_.ToJson(values);
  ATHANOR_CHECK_OK(Write({{"e", "imported"}, {"params", kept}, {"value", Number(value)}}));
  const bool failed = !value || !std::isfinite(*value);
  const double told = failed ? 0 : options_.maximize ? -*value : *value;
  return history_->Imported(std::move(values), told, failed);
}

Result<int64_t> Session::ImportRunning(const Json& params) {
  ATHANOR_TRY(auto values, space_.FromJson(params, false));
  const int64_t id = history_->next_id();
  ATHANOR_CHECK_OK(Write({{"e", "asked"}, {"id", id}, {"params", space_.ToJson(values)}}));
  ATHANOR_CHECK_OK(history_->Asked(id, std::move(values)));
  return id;
}

Status Session::ChangeRanges(const Json& ranges) {
  ATHANOR_TRY(const auto parameters, ParseJson(space_json_));
  ATHANOR_CHECK_OK(WithRanges(parameters, ranges));
  ATHANOR_CHECK_OK(Write({{"e", "ranges"}, {"ranges", ranges}}));
  return Take(ranges);
}

Status Session::Take(const Json& ranges) {
  ATHANOR_TRY(const auto parameters, ParseJson(space_json_));
  ATHANOR_TRY(const auto changed, WithRanges(parameters, ranges));
  ATHANOR_TRY(space_, Space::Parse(changed));
  space_json_ = DumpJson(changed);
  history_->Recode();
  memory_ = Memory();  // its fits are of points that have moved
  return Ok();
}

std::optional<Session::BestTrial> Session::Best() const {
  const auto* best = history_->Best();
  if (!best) return std::nullopt;
  return BestTrial{best->id, best->values, options_.maximize ? -best->value : best->value};
}

}  // namespace athanor::tune
