// AttemptPlan is all an agent needs to know of one host of one attempt, the same on any machine.
// With HostPaths it is a HostPlan, which is plan.json in the host's folder before its agent starts.
// It contains no secret except the attempt's own ingest token; the file is 0600.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/record.h"
#include "link/host_paths.h"

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
  Placement placement;            // of this host
  uint32_t host = 0;              // index of this host
  std::vector<PeerHost> peers;    // all hosts of the attempt, this one too, by index
  uint16_t master_port = 0;       // on the first host; 0: the usual one
  std::string server;             // unix:/…, or https://… for hosts on other machines
  std::string pin;                // of https: the server's key (net/certificate.h)
  std::string token;              // ingest, bound to this attempt and host
  std::string kept_files;         // manifest of files that earlier attempts left; empty: none
  std::string resume_job;         // to continue from while this job has no checkpoint; empty: none
  std::string resume_from;        // the checkpoint of that one; empty: the newest complete one
  int64_t mtbf_ms = 0;            // mean time between losses of this kind of machine; 0: unknown
  std::string mtbf_source;        // "measured: 3 in 41 h", "assumed"
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

struct HostPlan {
  AttemptPlan attempt;
  HostPaths paths;
};

std::string EncodePlan(const AttemptPlan& plan);
Result<AttemptPlan> DecodePlan(std::string_view text);
std::string EncodeHostPlan(const HostPlan& plan);
Result<HostPlan> DecodeHostPlan(std::string_view text);

}  // namespace athanor
