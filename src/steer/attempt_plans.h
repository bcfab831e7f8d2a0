// AttemptPlans makes what the agents of an attempt are told to run, one plan for each host, from
// the job's record. The same record always gives the same plan: a launch may be repeated, and a
// server that was started again finds agents that have an earlier one's.
//
// Threads: the executor's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "job/record.h"
#include "launch/backend.h"
#include "link/plan.h"

namespace athanor {

class LossRates;

class AttemptPlans {
 public:
  struct Parts {
    std::string key;  // makes the tokens of agents and scripts
    bool webhooks_private = false;
    const LossRates& losses;
    // Where the agents find this server. An error: they cannot be led there, and why.
    std::function<Status(AttemptPlan&)> lead;
    // What the door by which the job came adds to the contract with the script.
    std::function<void(const JobSpec&, AttemptPlan&)> contract;
  };
  explicit AttemptPlans(Parts parts) : parts_(std::move(parts)) {}

  // Of the current attempt. Errors: of `lead`.
  Result<LaunchPlan> Of(const JobRecord& record) const;

 private:
  AttemptPlan OfHost(const JobRecord& record, uint32_t host) const;

  Parts parts_;
};

}  // namespace athanor
