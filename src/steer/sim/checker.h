// The guarantees, compared with what the hosts know, what users were told and what is stored.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "job/inventory.h"
#include "steer/sim/cluster.h"
#include "steer/sim/server.h"
#include "steer/sim/world.h"

namespace athanor::sim {

class Checker {
 public:
  Checker(World& world, Cluster& cluster, Inventory inventory)
      : world_(world), cluster_(cluster), inventory_(std::move(inventory)) {}
  void Use(SimServer& server) { server_ = &server; }

  // A change was reported as durable: it is, its events have no gap, an end is final, and what
  // released its room runs nowhere. A gang is placed as a whole, and its first fall stays the
  // first.
  void Durable(const JobRecord& record, const std::vector<StoredEvent>& events);
  void UsageTaken(AttemptId attempt, uint32_t host, int64_t held_ms);
  // A life begins: nothing that was reported before is missing.
  void CameUp();
  // An agent or a script starts on a host: it was decided durably, it is the only one of its job,
  // and there is room for it.
  void Began(const HostAttempt& attempt);
  void Acknowledged(const std::string& key, JobId id);
  // Every wait has a reason; what is placed fits the machines.
  void EachTurn();
  bool AllOver();
  // Every key has one job, every job has ended, its history is complete, its cost is what was held,
  // nothing is left.
  void AtTheEnd();
  size_t jobs() const { return told_.size(); }

 private:
  struct Told {
    uint64_t seq = 0;
    JobState state = JobState::kQueued;
    std::string name;
  };
  void CheckRoom();
  void CheckHosts(const JobRecord& record);
  void CheckFall(const JobRecord& record, const Attempt& attempt);
  void CheckHistory(const JobRecord& record);
  void CheckCost(const JobRecord& record, const std::vector<StoredEvent>& events);
  void CheckCostOf(const std::string& of, const Host& host, const HostAttempt* known, bool said);
  void Break(const std::string& job, const std::string& what) { world_.Break(job + ": " + what); }

  World& world_;
  Cluster& cluster_;
  SimServer* server_ = nullptr;
  const Inventory inventory_;
  std::map<JobId, Told> told_;
  std::map<std::string, JobId> acknowledged_;  // by key
  // Held time that this life of the server was told.
  std::map<std::pair<AttemptId, uint32_t>, int64_t> taken_;
  std::map<AttemptId, FirstFall> fell_;  // as first told
};

}  // namespace athanor::sim
