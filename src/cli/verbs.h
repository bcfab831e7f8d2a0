// The verbs of the CLI. Each returns the process's exit status, prints results on
// stdout and talk on stderr, and knows --json.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/home.h"
#include "cli/serve.h"
#include "cli/submission.h"

namespace athanor {

struct Common {
  Home home;
  bool json = false;
  bool quiet = false;
};

struct ListOptions {
  bool all = false;
  size_t limit = 20;
  std::string state;
  std::string experiment;
};

struct LogOptions {
  std::string job;
  bool follow = false;
  std::string tail;
  std::string since;
  std::string grep;
  std::string phase = "run";
  std::string rank;
};

int RunVerb(const Common& common, const RunOptions& options);
int PsVerb(const Common& common, const ListOptions& options);
int ShowVerb(const Common& common, const std::string& job);
int LogsVerb(const Common& common, const LogOptions& options);
int WhyVerb(const Common& common, const std::string& job);
int StopVerb(const Common& common, const std::vector<std::string>& jobs, bool now);
int WaitVerb(const Common& common, const std::vector<std::string>& jobs, const std::string& timeout);
int MetricsVerb(const Common& common, const std::string& job, const std::string& name);
int EventsVerb(const Common& common, const std::string& job, bool follow);
int ServerStatusVerb(const Common& common);
int ServerStopVerb(const Common& common);
int VersionVerb(const Common& common);

}  // namespace athanor
