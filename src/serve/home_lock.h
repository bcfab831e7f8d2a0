// The lock of a home: only its holder writes there. The server holds it while it runs; verbs that
// work without a server take it while they run.
#pragma once

#include <string>

#include "base/io/fd.h"
#include "base/result.h"
#include "serve/home.h"

namespace athanor {

// Until the descriptor is closed. kConflict: a server runs; `hint` says what to type.
// The home's folder must exist.
Result<UniqueFd> LockHome(const Home& home, std::string hint);

// Whether it is free.
bool HomeIsFree(const Home& home);

}  // namespace athanor
