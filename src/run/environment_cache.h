// Environments by content, shared by all jobs of this machine's agents:
//
//   <cache>/envs/<key>/lock       held while one is built, found or swept away
//   <cache>/envs/<key>/current    names the finished build; the commit point. Its time
//                                 tells when it was last used
//   <cache>/envs/<key>/<build>/   the environment
//
// Programs in an environment know their own path, so a build is made where it stays
// and each has a folder of its own: an installer that outlives its killed agent
// writes into a folder that nobody uses, which the next builder removes.
//
// Threads: safe from any thread and process. A finished build is never changed here.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
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

// The environment of that key; when there is none, `build` makes it in the folder it
// is given, which does not exist yet. Of several callers one builds, the others wait.
// kCancelled; otherwise errors of `build` (nothing is left of it) and of files.
Result<CachedEnvironment> FindOrBuild(const CacheRequest& request,
                                      const std::function<Status(const std::string& dir)>& build);

struct CacheSwept {
  uint64_t removed = 0;
  uint64_t bytes = 0;
  uint64_t kept = 0;
};
// Removes environments that no job was given since then. The caller sees to it that no job
// which was given one earlier still runs.
Result<CacheSwept> SweepEnvironments(const std::string& cache_dir, WallTime unused_since,
                                     bool dry_run);
int64_t MillisOf(const timespec& time);
// Of the files below a folder, without those names right in it that are left out; what cannot be
// read counts nothing.
uint64_t TreeBytes(const std::string& path, const std::vector<std::string>& leave = {});

}  // namespace athanor
