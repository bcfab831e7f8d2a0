#include "cli/lost_server.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>

#include "base/exec/process.h"
#include "base/io/files.h"
#include "base/text/text.h"
#include "link/server_record.h"

namespace athanor {
namespace {

constexpr Millis kLook{100};        // at a socket of this machine
constexpr Millis kLookAway{1'000};  // at another machine
constexpr Millis kRetryStart{5'000};
constexpr int kMostFailures = 100;

}  // namespace

void LostServer::Say(const std::string& text) const {
  if (!quiet_) std::fprintf(stderr, "  %s\n", text.c_str());
}

std::string LostServer::WhatHappens() const {
  const std::string goes_on = who_ + (who_.empty() ? "jobs continue" : " continues");
  if (client_.remote()) {
    return "the server at " + client_.address() + " does not answer; " + goes_on +
           ". Trying again until it does";
  }
  const auto record = ReadServerRecord(client_.home().root);
  if (!record) {
    return "the server was stopped; " + goes_on + ". To follow on, start the server:\n" +
           "    ath server start\n  waiting for the server";
  }
  switch (record->by) {
    case StartedBy::kCommand:
      return "the server has died; " + goes_on + ". Starting the server again";
    case StartedBy::kHand:
      return "the server has died; " + goes_on +
             ". You started it by hand, so start it again:\n    " + record->again +
             "\n  waiting for the server";
    case StartedBy::kService:
      return "the server has died; " + goes_on + ". Waiting for its service to restart it:\n    " +
             record->again;
  }
  return "";
}

Status LostServer::Wait(const Error& why, int cancel_fd, Millis until) {
  if (!RowOf(why.code).retry) return Fail(why);
  client_.http().Disconnect();
  // A broken connection does not mean that the server is gone.
  if (client_.Reachable()) {
    if (++failures_ > kMostFailures) return Fail(why);
    ::pollfd wait{cancel_fd, POLLIN, 0};
    ::poll(&wait, cancel_fd >= 0 ? 1 : 0, static_cast<int>(kLook.count()));
    return Ok();
  }
  Say(WhatHappens());
  ATHANOR_CHECK_OK(WaitForOne(cancel_fd, until));
  Say("connected to the server again");
  return Ok();
}

Status LostServer::WaitForOne(int cancel_fd, Millis until) {
  const std::string& home = client_.home().root;
  constexpr Millis kNotYet{-1};
  Millis start_at = kNotYet;
  pid_t child = 0;
  for (;;) {
    if (client_.Reachable()) return Ok();
    if (child > 0 && ReapIfEnded(child)) child = 0;
    const auto now = clock_.Monotonic();
    if (now >= until) return Fail(ErrorCode::kTimeout, "no server answered in time");
    if (!client_.remote()) {
      if (!Exists(home)) {
        return Fail(Error{ErrorCode::kUnavailable, home + " was removed, and its jobs with it"}.Id(
            "ATH-C0004"));
      }
      const auto record = ReadServerRecord(home);
      const bool ours = record && record->by == StartedBy::kCommand;
      if (ours && start_at == kNotYet) {
        start_at = now + (record->revivals > 0 ? PauseBeforeRevival(*record) : Millis(0));
      }
      if (ours && now >= start_at && MayReviveServer(home)) {
        if (auto started = ReviveServer(home, ProgramPath())) child = *started;
        start_at = now + kRetryStart;
      }
    }
    ::pollfd wait{cancel_fd, POLLIN, 0};
    const Millis look = std::min(client_.remote() ? kLookAway : kLook, until - now);
    ::poll(&wait, cancel_fd >= 0 ? 1 : 0, static_cast<int>(look.count()));
    if (wait.revents != 0) return Fail(ErrorCode::kCancelled, "interrupted");
  }
}

}  // namespace athanor
