// The contract with scripts: SageMaker's /opt/ml tree, its config files and SM_* variables, plus
// ATHANOR_*. `outside` is the path of the tree on this machine, `inside` the path that the script
// sees (/opt/ml in a mount namespace, otherwise the same).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "link/plan.h"

namespace athanor {

// How the ranks of all hosts meet.
struct Meeting {
  std::string address = "127.0.0.1";  // of the first host
  uint16_t port = 0;                  // there, free for the first rank; 0: SageMaker's, 7777
  std::string interface = "lo";       // that leads to the other hosts
};

struct ContractPaths {
  std::string outside;
  std::string inside;
  Meeting meeting = {};
  std::string python_path = {};  // of our package; empty: none
  std::string job_dir = {};      // of the server, where it is on this machine; else empty
};

// Creates the folders and writes input/config/*.json.
Status LayOutContract(const AttemptPlan& plan, const ContractPaths& paths);

// The environment of a rank (`local`: counted on this host), without secrets: what the submitting
// shell gave, what the job asks for, and the contract's own names, which win.
std::map<std::string, std::string> ContractEnvironment(const AttemptPlan& plan,
                                                       const ContractPaths& paths, uint32_t local);
// Of these, the variables in which the ranks of a host differ, and those that every launcher of
// ranks sets (RANK, MASTER_ADDR...), unless the job sets them itself.
std::map<std::string, std::string> RankVariables(const AttemptPlan& plan,
                                                 const ContractPaths& paths, uint32_t local);

uint32_t HostCount(const AttemptPlan& plan);
uint32_t RanksHere(const AttemptPlan& plan);  // of this host

// Where the script's checkpoints are.
struct CheckpointPlace {
  std::string inside;   // as the script sees it
  std::string outside;  // as the agent does
  bool bound = false;   // `outside` must be mounted at `inside`
  bool shared = false;  // outlives the machine: stays in place
};
// In the attempt's own tree, so that what a killed attempt half wrote is removed with it; except
// with `store: shared` and, where no mount is possible, with a folder that belongs to the user.
CheckpointPlace PlaceOfCheckpoints(const AttemptPlan& plan, const ContractPaths& paths);
// Whether checkpoints with `store: shared` stay where a later attempt finds them. On another
// machine than the server's that is a folder of the user, which must be there: kInvalid otherwise.
Status CheckSharedPlace(const JobSpec& spec, bool is_server_here);

// Below the contract's tree: files between the agent and the script.
inline constexpr char kOwnFolder[] = ".athanor";
inline constexpr char kNoticeName[] = "notice.json";
inline constexpr char kCaptureName[] = "capture";
inline constexpr char kParamsName[] = "params";
// By the number of the rank on this host.
std::string StacksName(uint32_t local);
std::string SpoolName(uint32_t local);  // of a folder, in two parts
// For programs that are not Python: JSON {"cause", "deadline_unix_ms"}, exists once a stop was
// requested.
std::string NoticeFile(const std::string& root);
std::string StacksFile(const std::string& root, uint32_t local);
std::string CaptureDir(const std::string& root);
// The parameters with their types, for any program; and a folder only for athanor.params, with a
// copy (`values.json`) and its notes of what the script read (`read`, see run/agent/param_reads.h).
std::string ParamsFile(const std::string& root);
std::string ParamsDir(const std::string& root);

std::string HostName(const AttemptPlan& plan);                // "algo-1"
std::vector<std::string> HostNames(const AttemptPlan& plan);  // of all hosts, by index
std::string SpoolDir(const std::string& root, uint32_t local);

}  // namespace athanor
