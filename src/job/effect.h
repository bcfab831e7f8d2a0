// What must be done after a decision is durable. Effects are values in an
// outbox: performed at least once, idempotent by (attempt, sequence), removed
// when done; a restarted server performs what is left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "job/ids.h"

namespace athanor {

enum class EffectKind {
  kLaunch,   // start the attempt on its back end
  kStop,     // tell its agent to stop the script
  kRelease,  // the attempt is over: forget it at the back end, remove its scratch
};

struct Effect {
  uint64_t id = 0;  // rises; given by the control thread
  EffectKind kind = EffectKind::kLaunch;
  JobId job;
  AttemptId attempt;
  bool operator==(const Effect&) const = default;
};

constexpr std::string_view NameOf(EffectKind kind) {
  switch (kind) {
    case EffectKind::kLaunch:
      return "launch";
    case EffectKind::kStop:
      return "stop";
    case EffectKind::kRelease:
      return "release";
  }
  return "";
}

}  // namespace athanor
