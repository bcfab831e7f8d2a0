// Users of the simulated server: they submit jobs of every kind with their own keys, ask again if
// no answer comes, sometimes twice at once, and stop or interrupt what they started.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job/record.h"
#include "steer/sim/checker.h"
#include "steer/sim/cluster.h"
#include "steer/sim/server.h"
#include "steer/sim/world.h"

namespace athanor::sim {

class Users {
 public:
  Users(World& world, Cluster& cluster, SimServer& server, Checker& checker)
      : world_(world), cluster_(cluster), server_(server), checker_(checker) {}

  // `jobs` submits, spread over `span`.
  void Begin(size_t jobs, Millis span);
  bool AllAnswered() const { return answered_ == wanted_.size(); }

 private:
  struct Wanted {
    std::string key;
    JobSpec spec;
    std::string spec_hash;
    bool answered = false;
  };
  JobSpec SomeSpec(size_t number);
  void SomeGang(JobSpec& spec);
  void SomeSpot(JobSpec& spec, ScriptPlan& script);
  void SomeScript(JobSpec& spec, ScriptPlan& script);
  void Submit(size_t number);
  void Answered(size_t number, JobId id);
  void TryAnotherSpec(size_t number);
  void Meddle(JobId id, const JobSpec& spec);
  JobRecord DraftOf(const Wanted& wanted);

  World& world_;
  Cluster& cluster_;
  SimServer& server_;
  Checker& checker_;
  std::vector<Wanted> wanted_;
  size_t answered_ = 0;
  uint64_t next_id_ = 1;
};

}  // namespace athanor::sim
