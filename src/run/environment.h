// The environment a job runs in: the submitting shell's ("host"), or a venv built
// from the job's requirements and cached by content, so that the second job with
// the same requirements, interpreter and index waits for nothing, and ten that
// ask at once build it once. Everything the installer says goes to the set-up log.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/result.h"
#include "job/record.h"
#include "link/plan.h"

namespace athanor {

struct BuiltEnvironment {
  std::map<std::string, std::string> variables;  // over the contract's: PATH, VIRTUAL_ENV
  bool cached = false;
  std::string packages;  // "name==version" lines, for diff; empty: not known
};

struct EnvironmentOptions {
  std::string source_dir;   // where the source is laid out
  std::string cache_dir;
  std::string index_token;  // never logged, never in argv
  std::map<std::string, std::string> base;  // the environment installers run in
  std::function<void(std::string_view)> log;  // set-up log, unscrubbed
  std::function<bool()> cancelled;            // a stop was asked for
};

// kInvalid and friends carry a Cause's words: what failed, why, what to type.
Result<BuiltEnvironment> BuildEnvironment(const JobSpec& spec, const EnvironmentOptions& options);

}  // namespace athanor
