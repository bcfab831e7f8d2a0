// Held seconds of an attempt: counted on the monotonic clock from the first agent's start, so that
// a restart of the agent or a jump of the wall clock changes nothing.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/exec/clock.h"
#include "base/io/files.h"
#include "base/text/text.h"

namespace athanor {

class HeldClock {
 public:
  HeldClock(const std::string& dir, const Clock& clock) : clock_(clock) {
    auto boot = ReadFile("/proc/sys/kernel/random/boot_id").value_or("");
    auto path = JoinPath(dir, "held");
    auto kept = ReadFile(path);
    if (kept) {
      auto parts = Split(*kept, ' ');
      if (parts.size() == 2 && parts[0] == Trim(boot)) {
        start_ = Millis(std::strtoll(parts[1].c_str(), nullptr, 10));
        return;
      }
    }
    start_ = clock.Monotonic();
    (void)ReplaceFile(path, std::string(Trim(boot)) + " " + std::to_string(start_.count())).ok();
  }
  int64_t held_ms() const { return (clock_.Monotonic() - start_).count(); }

 private:
  const Clock& clock_;
  Millis start_{0};
};

}  // namespace athanor
