// The JSON lines of `ath tune --stdio`: one request per line, one answer per line.
//
//   -> {"op":"init","space":[...],"seed":7}              <- {"ok":true}
//        optional: "strategy": "auto", "goal": "minimize" | "maximize". Going on from a journal,
//        the answer has "trials", how many there are, and "running", those not told yet
//   -> {"op":"ask"}                                      <- {"id":0,"params":{"lr":0.01,...}}
//        "repeated":true in the answer: the space is used up, this is the best trial again
//   -> {"op":"tell","id":0,"params":{...},"value":0.31}  <- {"ok":true}
//        value null: failed; id null: a trial made elsewhere, by its params
//   -> {"op":"running","params":{...}}                   <- {"id":1}
//        a trial that somebody else has begun; it is told by this id
//   -> {"op":"best"}                                     <- {"id":0,"params":{...},"value":0.31}
//   -> {"op":"quit"}
// Errors are answered with {"error":"what: why","code":"invalid","hint":"..."} and change nothing.
// Only quit ends the process.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tune/session.h"

namespace athanor::tune {

class StdioProtocol {
 public:
  // Lines of the journal go to `sink`, if given. `resumed`, if given, is continued by an init
  // with the same space, seed and settings.
  explicit StdioProtocol(Session::Sink sink = nullptr, std::unique_ptr<Session> resumed = nullptr);
  ~StdioProtocol();

  // The answer, without a newline; empty for quit, and only for quit.
  std::string Answer(std::string_view line);

 private:
  Result<Json> Handle(const Json& request);
  Result<Json> Init(const Json& request);
  Result<Json> Tell(const Json& request);

  Session::Sink sink_;
  std::unique_ptr<Session> session_;
  bool resumed_ = false;  // session_ waits for its init
};

}  // namespace athanor::tune
