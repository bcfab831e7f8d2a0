// Everything between an agent's start and the script's: secrets, source,
// environment, data, the contract's tree, limits, and the supervisor's plan.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/exec/clock.h"
#include "base/io/fd.h"
#include "base/io/held_folder.h"
#include "base/log.h"
#include "base/result.h"
#include "link/job_files.h"
#include "link/plan.h"
#include "run/isolate/cgroup_policy.h"
#include "run/ship/shipper.h"
#include "run/supervisor/launch_supervisor.h"
#include "watch/scrub/scrubber.h"

namespace athanor {

struct Preparation {
  const HostPaths& paths;
  const HeldFolder& ml;  // in paths.dir
  const AttemptPlan& plan;
  JobFiles& files;
  const Clock& clock;
  Logger& log;
  Shipper& shipper;
  const std::vector<SecretValue>& secrets;
  const std::shared_ptr<const SecretPatterns>& patterns;
  std::function<bool()> cancelled;
  bool own_network = false;  // each host has one, with the addresses of plan.peers
};

struct Prepared {
  // The supervisor's plan, which contains the secrets: kept open until the supervisor has read it;
  // then `plan_path`, which names it, is removed.
  UniqueFd plan;
  std::string plan_path;
  Isolation isolation;
  AttemptCgroup cgroup;
  HeldFolder checkpoint_dir;            // where the script's checkpoints are
  std::optional<int64_t> resumed_step;  // of the checkpoint restored there
  std::string packages;                 // blob: what is installed; empty if unknown
};

// Also writes the supervisor's plan, without secrets, into the attempt's folder, for
// the next agent and for `ath exec`. An error's id is the kind
// of the Cause to report: "source_failed", "install_failed", "data_failed",
// "restore_failed", "disk_full".
Result<Prepared> Prepare(const Preparation& preparation);

// Whether Prepare may have to install, copy data or restore a checkpoint.
bool MayTakeLong(const AttemptPlan& plan);

// Values of the job's secrets, from wherever each comes; kNotFound names the secret. Waits for a
// server on another machine.
Result<std::vector<SecretValue>> FetchSecrets(const AttemptPlan& plan, Logger& log);
// The attempt's own credentials for the server: its tokens and access key. These are secrets, too.
std::vector<SecretValue> OwnTokens(const AttemptPlan& plan, const HostPaths& paths);

Cause CauseOf(const std::string& kind, const Error& error);
// Lets the shipper follow the script's streams and event files, which are stored in `files`.
void FollowScript(Shipper& shipper, const HostPaths& paths, const HeldFolder& ml,
                  const AttemptPlan& plan, JobFiles& files);
// Where checkpoints are, as PlaceOfCheckpoints says. `first`: no script has run yet, so the current
// target of a folder of the user is what the user means; it is recorded in the attempt's folder for
// later agents.
Result<HeldFolder> HoldCheckpoints(const std::string& dir, const HeldFolder& ml,
                                   const std::string& place, bool first);

}  // namespace athanor
