#include "tune/stdio.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/text/text.h"

namespace athanor::tune {
namespace {

constexpr size_t kLongest = 16 << 20;

tl::unexpected<Error> BadRequest(std::string what, std::string hint) {
  return Fail(Error{ErrorCode::kInvalid, std::move(what), std::move(hint)}.Id("ATH-T0006"));
}

Json ErrorAnswer(const Error& error) {
  Json out = {{"error", error.why.empty() ? error.what : error.what + ": " + error.why},
              {"code", std::string(RowOf(error.code).name)}};
  if (!error.hint.empty()) out["hint"] = error.hint;
  return out;
}

std::string TextIn(const Json& request, const char* key) {
  const auto found = request.find(key);
  return found != request.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

StdioProtocol::StdioProtocol(Session::Sink sink, std::unique_ptr<Session> resumed)
    : sink_(std::move(sink)), session_(std::move(resumed)), resumed_(session_ != nullptr) {}
StdioProtocol::~StdioProtocol() = default;

std::string StdioProtocol::Answer(std::string_view line) {
  if (line.size() > kLongest) {
    return DumpJson(ErrorAnswer(BadRequest("the line is too long", "at most 16 MiB").value()));
  }
  auto request = ParseJson(line);
  if (!request) return DumpJson(ErrorAnswer(request.error()));
  if (request->is_object() && TextIn(*request, "op") == "quit") return {};
  auto answer = Handle(*request);
  return DumpJson(answer ? *answer : ErrorAnswer(answer.error()));
}

Result<Json> StdioProtocol::Handle(const Json& request) {
  const std::string hint = "op is one of init, ask, tell, running, best, quit";
  if (!request.is_object()) return BadRequest("a request must be an object", hint);
  const auto op = TextIn(request, "op");
  if (op == "init") return Init(request);
  if (op != "ask" && op != "tell" && op != "running" && op != "best") {
    return BadRequest("no such op: " + (op.empty() ? "(none)" : Printable(op)), hint);
  }
  if (!session_ || resumed_) {
    return BadRequest("there is no search yet",
                      "{\"op\": \"init\", \"space\": [...], \"seed\": 7}");
  }
  if (op == "ask") {
    ATHANOR_TRY(auto asked, session_->Ask());
    Json out = {{"id", asked.id}, {"params", session_->space().ToJson(asked.values)}};
    if (asked.repeated) out["repeated"] = true;
    return out;
  }
  if (op == "tell") return Tell(request);
  if (op == "running") {
    ATHANOR_TRY(auto made, session_->ImportRunning(request.value("params", Json())));
    return Json{{"id", made}};
  }
  const auto best = session_->Best();
  if (!best) {
    return Fail(
        Error{ErrorCode::kNotFound, "no trial is done yet", "tell one with a finite value first"}
            .Id("ATH-T0006"));
  }
  return Json{
      {"id", best->id}, {"params", session_->space().ToJson(best->values)}, {"value", best->value}};
}

Result<Json> StdioProtocol::Init(const Json& request) {
  SessionOptions options;
  if (const auto seed = request.find("seed"); seed != request.end()) {
    if (!seed->is_number_unsigned()) {
      return BadRequest("the seed is not a whole number from 0 on", "\"seed\": 7");
    }
    options.settings.seed = seed->get<uint64_t>();
  }
  if (request.contains("strategy")) {
    ATHANOR_TRY(options.settings.strategy, StrategyNamed(TextIn(request, "strategy")));
  }
  const auto goal = request.contains("goal") ? TextIn(request, "goal") : "minimize";
  if (goal != "minimize" && goal != "maximize") {
    return BadRequest("no such goal", "\"goal\": \"minimize\" or \"maximize\"");
  }
  options.maximize = goal == "maximize";
  const Json space = request.contains("space") ? request["space"] : Json();
  if (resumed_) {
    const auto& old = session_->options();
    if (session_->space_json() != DumpJson(space) || old.settings.seed != options.settings.seed ||
        old.settings.strategy != options.settings.strategy || old.maximize != options.maximize) {
      return Fail(Error{ErrorCode::kConflict, "the journal is of another search",
                        "give the space, seed and settings it was made with, or another file"}
                      .Why("space, seed, strategy or goal differ")
                      .Id("ATH-T0006"));
    }
    resumed_ = false;
    Json running = Json::array();
    for (size_t i : session_->history().Running()) {
      const auto& trial = session_->history().trials()[i];
      running.push_back({{"id", trial.id}, {"params", session_->space().ToJson(trial.values)}});
    }
    return Json{{"ok", true},
                {"trials", session_->history().trials().size()},
                {"running", std::move(running)}};
  }
  if (session_ && sink_) {
    return Fail(Error{ErrorCode::kConflict, "one journal holds one search",
                      "end this one with quit and start another with its own file"}
                    .Id("ATH-T0006"));
  }
  ATHANOR_TRY(session_, Session::Create(space, options, sink_));
  return Json{{"ok", true}};
}

Result<Json> StdioProtocol::Tell(const Json& request) {
  const auto value = request.find("value");
  const std::string hint = "{\"op\": \"tell\", \"id\": 0, \"value\": 0.31}; null: failed";
  if (value == request.end()) return BadRequest("a tell has no value", hint);
  std::optional<double> number;
  if (value->is_number()) {
    number = value->get<double>();
  } else if (value->is_string()) {
    // How NaN and the infinities are written where JSON has no word for them.
    const auto text = value->get<std::string>();
    if (text != "NaN" && text != "Infinity" && text != "-Infinity") {
      return BadRequest("the value is not a number", hint);
    }
  } else if (!value->is_null()) {
    return BadRequest("the value is not a number", hint);
  }
  const auto id = request.find("id");
  if (id == request.end() || id->is_null()) {
    if (!request.contains("params")) {
      return BadRequest("a trial made elsewhere needs its params", "\"params\": {...}");
    }
    ATHANOR_TRY(auto made, session_->Import(request["params"], number));
    return Json{{"ok", true}, {"id", made}};
  }
  if (!id->is_number_integer()) return BadRequest("the id is not a whole number", hint);
  ATHANOR_CHECK_OK(session_->Tell(id->get<int64_t>(), number));
  return Json{{"ok", true}};
}

}  // namespace athanor::tune
