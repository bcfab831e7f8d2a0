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

std::string HostName(const AttemptPlan& plan);  // "algo-1"
std::string SpoolDir(const std::string& root, uint32_t rank);

}  // namespace athanor
