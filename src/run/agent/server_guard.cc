#include "run/agent/server_guard.h"

#include <thread>

#include "base/exec/process.h"
#include "link/server_record.h"

namespace athanor {
namespace {

// Longer than the spare agent takes: it is the first to notice.
constexpr Millis kLater{2'000};
constexpr Millis kRetry{10'000};
constexpr int kTries = 8;

}  // namespace

void ServerGuard::Unanswered() {
  if (child_ > 0 && ReapIfEnded(child_)) child_ = 0;
  if (home_.empty()) return;
  const auto record = ReadServerRecord(home_);
  if (!record || record->by != StartedBy::kCommand) return;
  const auto now = clock_.Monotonic();
  if (start_at_ == Millis(0)) start_at_ = now + kLater + PauseBeforeRevival(*record);
  if (now < start_at_) return;
  start_at_ = now + kRetry;
  if (auto started = ReviveServer(home_, ThisProgram())) child_ = *started;
}

void StartServerAgain(const std::string& home) {
  for (int tries = 0; tries < kTries; ++tries) {
    const auto record = ReadServerRecord(home);
    if (!record || record->by != StartedBy::kCommand) return;
    std::this_thread::sleep_for(PauseBeforeRevival(*record) + Millis(500) * tries);
    // A child that a killed server was starting may hold its lock for a moment: so try again. This
    // ends when another server runs.
    if (const auto now = ReadServerRecord(home); !now || now->pid != record->pid) return;
    (void)ReviveServer(home, ThisProgram());
  }
}

}  // namespace athanor
