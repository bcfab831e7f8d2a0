// AttemptPlan is all an agent needs to run one host of one attempt; the back end writes it as
// plan.json into the attempt's folder before it starts the agent. It contains no secret except the
// attempt's own ingest token; the file is 0600.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/record.h"

namespace athanor {

// Another host of the attempt.
struct PeerHost {
  std::string name;     // "algo-2"
  std::string address;  // empty: resolved by name
  bool operator==(const PeerHost&) const = default;
};

struct AttemptPlan {
  JobId job;
  AttemptId attempt;
  uint32_t number = 1;
  JobSpec spec;
  Placement placement;          // of this host
  uint32_t host = 0;            // index of this host
  std::vector<PeerHost> peers;  // all hosts of the attempt, this one too, by index
  uint16_t master_port = 0;     // on the first host; 0: the usual one
  std::string dir;              // the attempt's folder: all its files are below
  std::string server;           // unix:/… or http://…
  std::string url;          // of the server's TCP port, for the script's own clients; empty: none
  std::string token;        // ingest, bound to this attempt
  std::string blob_dir;     // the object store's blobs, readable and writable
  std::string cache_dir;    // environments and data caches, shared by jobs
  std::string job_dir;      // shared by the job's attempts: checkpoints and their manifests
  std::string hide_dir;     // the server's home, hidden but for what the script needs; empty: none
  std::string supervisor;   // path of athanor-supervisor
  std::string aws_dir;      // overlay for AWS clients (link/aws_environment.h); empty: none
  std::string python_path;  // where the athanor package is; empty: none
  std::string kept_files;   // manifest of files that earlier attempts left; empty: none
  std::string resume_dir;   // job_dir to continue from while this job has no checkpoint
  std::string resume_from;  // the checkpoint there; empty: the newest complete one
  int64_t mtbf_ms = 0;      // mean time between losses of this kind of machine; 0: unknown
  std::string mtbf_source;  // "measured: 3 in 41 h", "assumed"
  bool webhooks_private = false;  // webhooks may go to addresses that are not public
  // What a door adds to the contract: files of input/config by name, which replace the contract's
  // own, and sagemaker_* parameters as they were sent.
  std::map<std::string, std::string> config_files;
  std::vector<Param> platform_params;
  std::string instance_type;  // as shown to the script; the machine's if none was asked for
};

// Ranks are counted over all hosts.
inline uint32_t FirstRank(const AttemptPlan& plan) {
  return plan.host * plan.spec.resources.processes;
}

std::string EncodePlan(const AttemptPlan& plan);
Result<AttemptPlan> DecodePlan(std::string_view text);

}  // namespace athanor
