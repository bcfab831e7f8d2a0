// ServerLine is how an agent reaches its server: where it is, the key by which it is known, and the
// token that says who calls. On the server's own machine that is a Unix socket; everywhere else TLS
// to the one that has the pinned key, and nothing is sent to another.
//
// A server that is silent, or a stranger that answers in its place ("a plan from another server",
// "a certificate that changed"), says nothing about the attempt: whoever asks goes on asking, with
// growing pauses. LinePauses has them, and says what is worth a line in the agent's log.
//
// Threads: a ServerLine is a value; each user of it has its own HttpClient and LinePauses.
#pragma once

#include <functional>
#include <random>
#include <string>

#include "base/exec/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "link/plan.h"
#include "net/http/http_client.h"

namespace athanor {

struct ServerLine {
  Endpoint endpoint;
  std::string pin;    // of https
  std::string token;  // of the attempt and host

  // kInvalid: no address of a server, or one that would carry the token in the open.
  static Result<ServerLine> To(const std::string& server, std::string pin, std::string token);
  static Result<ServerLine> Of(const AttemptPlan& plan);

  bool is_local() const { return !endpoint.unix_path.empty(); }
  HttpClient Client() const;
  void Sign(HttpCall& call) const;  // adds who calls
};

// Whether another server than the one that was expected answered a call: nothing was sent to it.
bool IsStranger(const Error& error);

// The pauses between the tries of one caller.
class LinePauses {
 public:
  static constexpr Millis kFirst{100};
  static constexpr Millis kLongest{20'000};
  // A stranger is not soon replaced by the right one.
  static constexpr Millis kOfStranger{30'000};

  explicit LinePauses(Millis of_stranger = kOfStranger);
  // How long to wait after a try that failed like this; with jitter, so that many agents do not
  // come back at once.
  Millis After(const Error& error);
  void Answered();
  // Of a stranger, at the first try that met it: a line for the agent's log.
  void Tell(Logger& log, const Error& error);

 private:
  Millis of_stranger_;
  Millis next_ = kFirst;
  bool told_ = false;
  std::minstd_rand random_;
};

// Asks until the server of another machine answers, however long that takes. One on this machine is
// asked once: whoever waits for it, starts it again. `again`, if any, makes the call ready for
// another try, or ends them with its error. `log` may be null.
Result<HttpReply> AskPatiently(const ServerLine& line, HttpClient& client, const HttpCall& call,
                               Logger* log = nullptr, const std::function<Status()>& again = {},
                               Millis of_stranger = LinePauses::kOfStranger);

}  // namespace athanor
