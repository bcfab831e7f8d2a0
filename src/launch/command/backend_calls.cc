#include "launch/command/backend_calls.h"

#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"
#include "job/codec.h"

namespace athanor::backend_calls {
namespace {

using State = HostStatus::State;

constexpr std::array<std::pair<State, std::string_view>, 6> kStates = {{
    {State::kPending, "pending"},
    {State::kAlive, "alive"},
    {State::kAgentGone, "agent-gone"},
    {State::kEvicted, "evicted"},
    {State::kEnded, "ended"},
    {State::kGone, "gone"},
}};

Json ErrorToJson(const Error& error) {
  return {{"code", RowOf(error.code).name},
          {"what", error.what},
          {"why", error.why},
          {"hint", error.hint},
          {"id", error.id},
          {"where", error.where}};
}

Error ErrorFromJson(const Json& json) {
  return Error{ErrorCodeNamed(json.at("code").get<std::string>()),
               json.at("what").get<std::string>(), json.value("hint", "")}
      .Why(json.value("why", ""))
      .Id(json.value("id", ""))
      .Where(json.value("where", ""));
}

Json StatusToJson(const HostStatus& status) {
  Json json = {{"detail", status.detail}};
  for (const auto& [state, name] : kStates) {
    if (state == status.state) json["state"] = name;
  }
  if (status.deadline) json["deadline_ms"] = status.deadline->ms;
  if (status.exit) json["exit"] = ToJson(*status.exit);
  return json;
}

Result<HostStatus> StatusFromJson(const Json& json) {
  HostStatus status;
  const auto said = json.at("state").get<std::string>();
  bool known = false;
  for (const auto& [state, name] : kStates) {
    if (name != said) continue;
    status.state = state;
    known = true;
  }
  if (!known) return Fail(ErrorCode::kInvalid, "no state of a host: " + Printable(said));
  status.detail = json.value("detail", "");
  if (json.contains("deadline_ms")) {
    status.deadline = WallTime{json.at("deadline_ms").get<int64_t>()};
  }
  if (json.contains("exit")) {
    ATHANOR_TRY(status.exit, ExitFromJson(json.at("exit")));
  }
  return status;
}

std::string Answer(const Json& json) { return std::string(kAnswer) + DumpJson(json) + "\n"; }

// `read` may throw what the library does.
template <class T, class Read>
Result<T> Guarded(const Read& read) {
  try {
    return read();
  } catch (const nlohmann::json::exception& e) {
    return Fail(ErrorCode::kInvalid, std::string("not a call of a back end: ") + e.what());
  }
}

// The last line that is an answer.
Result<Json> AnswerIn(std::string_view printed) {
  const auto at = printed.rfind(kAnswer);
  if (at == std::string_view::npos || (at > 0 && printed[at - 1] != '\n')) {
    return Fail(ErrorCode::kUnavailable, "no answer came");
  }
  auto line = printed.substr(at + kAnswer.size());
  line = line.substr(0, line.find('\n'));
  auto json = ParseJson(line);
  if (!json || !json->is_object()) {
    return Fail(ErrorCode::kUnavailable, "the answer was cut short");
  }
  if (json->contains("error")) {
    ATHANOR_TRY(auto error, Guarded<Error>([&]() -> Result<Error> {
                  return ErrorFromJson(json->at("error"));
                }));
    return Fail(std::move(error));
  }
  return json;
}

}  // namespace

std::string Encode(const Call& call) {
  Json json;
  if (const auto* launch = std::get_if<LaunchCall>(&call)) {
    json = {{"call", "launch"}, {"hosts", Json::array()}, {"over", launch->plan.over}};
    for (const auto& host : launch->plan.hosts) json["hosts"].push_back(EncodePlan(host));
  } else if (const auto* poll = std::get_if<PollCall>(&call)) {
    json = {{"call", "poll"}, {"handles", poll->handles}};
  } else {
    json = {{"call", "release"}, {"handle", std::get<ReleaseCall>(call).handle}};
  }
  return DumpJson(json) + "\n";
}

Result<Call> DecodeCall(std::string_view text) {
  ATHANOR_TRY(const auto json, ParseJson(text));
  return Guarded<Call>([&]() -> Result<Call> {
    const auto name = json.at("call").get<std::string>();
    if (name == "poll") return PollCall{json.at("handles").get<std::vector<std::string>>()};
    if (name == "release") return ReleaseCall{json.at("handle").get<std::string>()};
    if (name != "launch") return Fail(ErrorCode::kInvalid, "no such call: " + Printable(name));
    LaunchCall launch;
    launch.plan.over = json.at("over").get<std::vector<bool>>();
    for (const auto& host : json.at("hosts")) {
      ATHANOR_TRY(auto plan, DecodePlan(host.get<std::string>()));
      launch.plan.hosts.push_back(std::move(plan));
    }
    if (launch.plan.hosts.empty()) return Fail(ErrorCode::kInvalid, "a launch of no host");
    for (uint32_t i = 0; i < launch.plan.hosts.size(); ++i) {
      const auto& host = launch.plan.hosts[i];
      if (host.attempt != launch.plan.attempt() || host.host != i) {
        return Fail(ErrorCode::kInvalid, "a launch of hosts that are not of one attempt");
      }
    }
    return launch;
  });
}

std::string EncodeHandle(const Result<std::string>& handle) {
  return Answer(handle ? Json{{"handle", *handle}} : Json{{"error", ErrorToJson(handle.error())}});
}

std::string EncodeDone(const Status& done) {
  return Answer(done ? Json::object() : Json{{"error", ErrorToJson(done.error())}});
}

std::string EncodePolled(const Polled& polled) {
  Json all = Json::array();
  for (const auto& one : polled) {
    if (!one) {
      all.push_back({{"error", ErrorToJson(one.error())}});
      continue;
    }
    Json hosts = Json::array();
    for (const auto& host : *one) hosts.push_back(StatusToJson(host));
    all.push_back({{"hosts", std::move(hosts)}});
  }
  return Answer({{"polled", std::move(all)}});
}

Result<std::string> DecodeHandle(std::string_view printed) {
  ATHANOR_TRY(const auto json, AnswerIn(printed));
  return Guarded<std::string>(
      [&]() -> Result<std::string> { return json.at("handle").get<std::string>(); });
}

Result<Polled> DecodePolled(std::string_view printed) {
  ATHANOR_TRY(const auto json, AnswerIn(printed));
  return Guarded<Polled>([&]() -> Result<Polled> {
    Polled polled;
    for (const auto& one : json.at("polled")) {
      if (one.contains("error")) {
        polled.emplace_back(Fail(ErrorFromJson(one.at("error"))));
        continue;
      }
      std::vector<HostStatus> hosts;
      for (const auto& host : one.at("hosts")) {
        ATHANOR_TRY(auto status, StatusFromJson(host));
        hosts.push_back(std::move(status));
      }
      polled.emplace_back(std::move(hosts));
    }
    return polled;
  });
}

Status DecodeDone(std::string_view printed) {
  ATHANOR_TRY([[maybe_unused]] const auto json, AnswerIn(printed));
  return Ok();
}

}  // namespace athanor::backend_calls
