// The contract with scripts: SageMaker's /opt/ml tree, its config files and SM_*
// variables, plus ATHANOR_*. `outside` is where the tree lies on this machine,
// `inside` where the script sees it (/opt/ml in a mount namespace, else the same).
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

// Makes the folders and writes input/config/*.json.
Status LayOutContract(const AttemptPlan& plan, const ContractPaths& paths);

// The environment of a rank, without secrets: what the submitting shell gave, what
// the job asks for, and the contract's own names, which win.
std::map<std::string, std::string> ContractEnvironment(const AttemptPlan& plan,
                                                       const ContractPaths& paths, uint32_t rank);

// Where the script's checkpoints lie.
struct CheckpointPlace {
  std::string inside;   // as the script sees it
  std::string outside;  // as the agent does
  bool bound = false;   // `outside` must be mounted at `inside`
  bool shared = false;  // outlives the machine: kept in place
};
// In the attempt's own tree, so that what a killed attempt half wrote is gone with it; except
// with `store: shared`, and, where no mount is possible, a folder of the user's own.
CheckpointPlace PlaceOfCheckpoints(const AttemptPlan& plan, const ContractPaths& paths);

// Below the contract's tree: what passes between the agent and the script.
inline constexpr char kOwnFolder[] = ".athanor";
inline constexpr char kNoticeName[] = "notice.json";
inline constexpr char kCaptureName[] = "capture";
inline constexpr char kParamsName[] = "params";
std::string StacksName(uint32_t rank);
std::string SpoolName(uint32_t rank);  // of a folder, in two parts
// For programs that are not Python: JSON {"cause", "deadline_unix_ms"}, there once a stop came.
std::string NoticeFile(const std::string& root);
std::string StacksFile(const std::string& root, uint32_t rank);
std::string CaptureDir(const std::string& root);
// The parameters with their types, for any program; and a folder of athanor.params alone, with a
// copy (`values.json`) and its notes of what was asked for (`read`, see run/param_reads.h).
std::string ParamsFile(const std::string& root);
std::string ParamsDir(const std::string& root);

std::string HostName(const AttemptPlan& plan);  // "algo-1"
std::string SpoolDir(const std::string& root, uint32_t rank);

}  // namespace athanor
