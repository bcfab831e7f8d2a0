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

struct ContractPaths {
  std::string outside;
  std::string inside;
};

// Creates the folders and writes input/config/*.json.
Status LayOutContract(const AttemptPlan& plan, const ContractPaths& paths);

// The environment of a rank, without secrets: what the submitting shell gave, what
// the job asks for, and the contract's own names, which win.
std::map<std::string, std::string> ContractEnvironment(const AttemptPlan& plan,
                                                       const ContractPaths& paths, uint32_t rank);

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

// Below the contract's tree: files between the agent and the script.
inline constexpr char kOwnFolder[] = ".athanor";
inline constexpr char kNoticeName[] = "notice.json";
inline constexpr char kCaptureName[] = "capture";
inline constexpr char kParamsName[] = "params";
std::string StacksName(uint32_t rank);
std::string SpoolName(uint32_t rank);  // of a folder, in two parts
// For programs that are not Python: JSON {"cause", "deadline_unix_ms"}, exists once a stop was
// requested.
std::string NoticeFile(const std::string& root);
std::string StacksFile(const std::string& root, uint32_t rank);
std::string CaptureDir(const std::string& root);
// The parameters with their types, for any program; and a folder only for athanor.params, with a
// copy (`values.json`) and its notes of what the script read (`read`, see run/agent/param_reads.h).
std::string ParamsFile(const std::string& root);
std::string ParamsDir(const std::string& root);

std::string HostName(const AttemptPlan& plan);  // "algo-1"
std::string SpoolDir(const std::string& root, uint32_t rank);

}  // namespace athanor
