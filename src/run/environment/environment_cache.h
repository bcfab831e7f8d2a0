// Environments by content, shared by all jobs of this machine's agents:
//
//   <cache>/envs/<key>/lock       held while one is built, found or swept away
//   <cache>/envs/<key>/current    names the finished build; the commit point. Its time
//                                 tells when it was last used
//   <cache>/envs/<key>/<build>/   the environment
//
// Programs in an environment know their own path, so an environment is built where it stays, and
// each build has its own folder: an installer that outlives its killed agent writes into a folder
// that is not used, which the next builder removes.
//
// Threads: safe from any thread and process. A finished build is never changed here.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/exec/clock.h"
#include "base/result.h"

namespace athanor {

struct CachedEnvironment {
  std::string dir;
  bool built = false;  // by this call
};

struct CacheRequest {
  std::string cache_dir;
  std::string key;  // a file name
  std::function<void(std::string_view)> log;
  std::function<bool()> cancelled;
};

// The environment of that key; if there is none, `build` creates it in the given folder, which does
// not exist yet. Of several callers one builds, the others wait. kCancelled; otherwise errors of
// `build` (nothing is left of it) and of files.
Result<CachedEnvironment> FindOrBuild(const CacheRequest& request,
                                      const std::function<Status(const std::string& dir)>& build);

struct CacheSwept {
  uint64_t removed = 0;
  uint64_t bytes = 0;
  uint64_t kept = 0;
};
// Removes environments that no job was given since then. The caller makes sure that no job that got
// one earlier is still running.
Result<CacheSwept> SweepEnvironments(const std::string& cache_dir, WallTime unused_since,
                                     bool dry_run);
int64_t MillisOf(const timespec& time);

}  // namespace athanor
