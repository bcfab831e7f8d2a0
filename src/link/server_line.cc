#include "link/server_line.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace athanor {
namespace {

// Lines to other machines may be slow, and TLS goes back and forth on them.
constexpr Millis kConnectWithin{10'000};

bool IsLoopback(const std::string& host) {
  return host == "127.0.0.1" || host == "::1" || host == "localhost";
}

// The far side, or the way to it, failed; not what was asked, and not this machine.
bool IsAway(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout ||
         error.code == ErrorCode::kCorrupt || IsStranger(error);
}

bool IsBusy(int status) {
  return status == 408 || status == 429 || (status >= 502 && status <= 504);
}

}  // namespace

Result<ServerLine> ServerLine::To(const std::string& server, std::string pin, std::string token) {
  ServerLine line;
  ATHANOR_TRY(line.endpoint, Endpoint::Parse(server));
  if (!line.endpoint.tls && !line.is_local() && !IsLoopback(line.endpoint.host)) {
    return Fail(ErrorCode::kInvalid,
                "an agent does not send its token to " + server + " without TLS",
                "use the address that starts with https://");
  }
  if (line.endpoint.tls && pin.empty()) {
    return Fail(ErrorCode::kInvalid, "an agent does not know " + server + " by a key",
                "its plan needs the pin of the server");
  }
  line.pin = std::move(pin);
  line.token = std::move(token);
  return line;
}

Result<ServerLine> ServerLine::Of(const AttemptPlan& plan) {
  return To(plan.server, plan.pin, plan.token);
}

HttpClient ServerLine::Client() const {
  HttpClientOptions options;
  options.pin = pin;
  if (endpoint.tls) options.connect_timeout = kConnectWithin;
  return HttpClient(endpoint, std::move(options));
}

void ServerLine::Sign(HttpCall& call) const {
  call.headers.Set("Authorization", "Bearer " + token);
}

bool IsStranger(const Error& error) { return error.code == ErrorCode::kDenied; }

LinePauses::LinePauses(Millis of_stranger)
    : of_stranger_(of_stranger), random_(std::random_device()()) {}

Millis LinePauses::After(const Error& error) {
  const bool stranger = IsStranger(error);
  const Millis most = stranger ? of_stranger_ : next_;
  if (!stranger) next_ = std::min(next_ * 2, kLongest);
  return Millis(std::uniform_int_distribution<int64_t>(most.count() / 2, most.count())(random_));
}

void LinePauses::Answered() {
  next_ = kFirst;
  told_ = false;
}

void LinePauses::Tell(Logger& log, const Error& error) {
  if (!IsStranger(error) || std::exchange(told_, true)) return;
  log.Log(LogLevel::kError,
          error.what +
              ": this attempt is another server's, or its certificate was changed; the "
              "script goes on, and its own server is asked for again",
          {{"why", error.why}});
}

Result<HttpReply> AskPatiently(const ServerLine& line, HttpClient& client, const HttpCall& call,
                               Logger* log, const std::function<Status()>& again,
                               Millis of_stranger) {
  LinePauses pauses(of_stranger);
  for (;;) {
    auto reply = client.Do(call);
    if (line.is_local() || (reply && !IsBusy(reply->status))) return reply;
    Error error{ErrorCode::kUnavailable, "the server is busy"};
    if (!reply) error = reply.error();
    if (!IsAway(error)) return reply;
    if (log) pauses.Tell(*log, error);
    std::this_thread::sleep_for(pauses.After(error));
    if (again) ATHANOR_CHECK_OK(again());
  }
}

}  // namespace athanor
