// What a waiting verb does if its server is gone. Jobs have their own processes and continue
// without a server; so does the verb. It says at once what happened, starts the server again if a
// command had started it, and otherwise says what to type and waits.
//
//   LostServer lost(client, "train-1", quiet);
//   for (;;) {
//     auto reply = client.Do(call);
//     if (reply) ...
//     if (auto again = lost.Wait(reply.error(), interrupt_fd); !again) return again;
//   }
#pragma once

#include <string>
#include <utility>

#include "base/exec/clock.h"
#include "base/result.h"
#include "cli/client.h"

namespace athanor {

class LostServer {
 public:
  // `who` continues meanwhile: "train-1". `quiet`: prints nothing.
  LostServer(Client& client, std::string who, bool quiet)
      : client_(client), who_(std::move(who)), quiet_(quiet) {}

  // After a call failed with `why`. Ok: a server answers, or may answer: call again. The error
  // itself if another call would fail in the same way. kCancelled: `cancel_fd` is readable (it is
  // not read). kTimeout: `until`, on the monotonic clock, has come.
  Status Wait(const Error& why, int cancel_fd = -1, Millis until = Millis::max());
  // A call succeeded, or its answer began.
  void Answered() { failures_ = 0; }

 private:
  Status WaitForOne(int cancel_fd, Millis until);
  void Say(const std::string& text) const;
  std::string WhatHappens() const;

  Client& client_;
  const std::string who_;
  const bool quiet_;
  SystemClock clock_;
  int failures_ = 0;  // in a row, of a server that takes connections
};

}  // namespace athanor
