// The environment a job runs in: the submitting shell's ("host"), or a venv built from the job's
// requirements and cached by content, so that the second job with the same requirements,
// interpreter and index does not wait, and ten jobs that need it at once build it once. All output
// of the installer goes to the set-up log.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "job/record.h"
#include "link/plan.h"

namespace athanor {

struct BuiltEnvironment {
  // In addition to the contract's: PATH, VIRTUAL_ENV or CONDA_PREFIX. A variable that must not be
  // set is empty, which Python treats as unset.
  std::map<std::string, std::string> variables;
  std::string dir;  // its path in the cache, for the script to see; empty: the host's
  bool cached = false;
  std::string packages;  // "name==version" lines, for diff; empty: unknown
};

struct EnvironmentOptions {
  std::string source_dir;  // where the source is unpacked
  std::string cache_dir;
  std::string
      index_token;  // TOKEN or NAME:PASSWORD; see run/environment/installer.h for where it goes
  std::map<std::string, std::string> base;  // the environment installers run in
  // The set-up log; only the index token has been removed from it, no other secrets.
  std::function<void(std::string_view)> log;
  std::function<bool()> cancelled;  // a stop was requested
};

// Blocks for as long as a build takes, but not if there is nothing to build. Safe from any thread
// and process. kCancelled if a stop was requested; kExhausted if the disk is full; all others have
// the texts of a Cause: what failed, why, what to type.
Result<BuiltEnvironment> BuildEnvironment(const JobSpec& spec, const EnvironmentOptions& options);

}  // namespace athanor
