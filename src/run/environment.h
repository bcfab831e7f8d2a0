// The environment a job runs in: the submitting shell's ("host"), or a venv built
// from the job's requirements and cached by content, so that the second job with
// the same requirements, interpreter and index waits for nothing, and ten that
// ask at once build it once. Everything the installer says goes to the set-up log.
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
  // Over the contract's: PATH, VIRTUAL_ENV or CONDA_PREFIX. One that must not be set is
  // empty, which Python takes for the same.
  std::map<std::string, std::string> variables;
  std::string dir;  // where it lies in the cache, for the script to see; empty: the host's
  bool cached = false;
  std::string packages;  // "name==version" lines, for diff; empty: not known
};

struct EnvironmentOptions {
  std::string source_dir;   // where the source is laid out
  std::string cache_dir;
  std::string index_token;  // TOKEN or NAME:PASSWORD; see run/installer.h for where it goes
  std::map<std::string, std::string> base;  // the environment installers run in
  // The set-up log; of secrets, only the index token has been scrubbed.
  std::function<void(std::string_view)> log;
  std::function<bool()> cancelled;            // a stop was asked for
};

// Blocks for as long as a build takes, but not when there is nothing to build. Safe
// from any thread and process. kCancelled when a stop was asked for; kExhausted when
// the disk is full; all others carry a Cause's words: what failed, why, what to type.
Result<BuiltEnvironment> BuildEnvironment(const JobSpec& spec, const EnvironmentOptions& options);

}  // namespace athanor
