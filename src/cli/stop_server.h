// Stops the server of a home and waits until its process is gone. Jobs continue.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/exec/clock.h"
#include "base/result.h"
#include "serve/home.h"
#include "serve/home_lock.h"

namespace athanor {

inline constexpr Millis kServerStopLimit{60'000};

// Also if none runs; one that was killed is then not started again by others. kTimeout: it is still
// running after `limit`.
Status StopServerHere(const Home& home, Millis limit, bool* was_running = nullptr);

// What to say then. `pid` 0: unknown.
Error ServerStillThere(const std::string& why, Millis limit, pid_t pid);

}  // namespace athanor
