// Random histories of a machine: jobs come, are planned, run and end. After
// every plan the promises of queue.h are checked against plain sums. A failure
// prints its seed; ATHANOR_SEED=n runs that history alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>

#include "place/amounts.h"
#include "place/queue.h"

namespace athanor {
namespace {

constexpr uint64_t kGib = 1ull << 30;

JobId IdOf(uint32_t n) {
  JobId id;
  for (int i = 0; i < 4; ++i) id.value.bytes[15 - i] = static_cast<uint8_t>(n >> (8 * i));
  return id;
}

class History {
 public:
  // With `exact`, every job holds its room for exactly its limit and all are
  // of one priority; then back-fill must never delay the head.
  History(uint32_t seed, bool exact) : random_(seed), exact_(exact) {
    view_.now = WallTime{1'763'211'600'000};
    view_.inventory.cpu_millis = 1000 * Pick(1, 8);
    view_.inventory.memory_bytes = Pick(4, 32) * kGib;
    view_.inventory.gpus = Pick(0, 3);
  }

  void Run(int jobs) {
    int left = jobs;
    for (int turn = 0; left > 0 || !view_.waiting.empty() || !view_.running.empty(); ++turn) {
      ASSERT_LT(turn, 100 * jobs) << "the queue stands still";
      for (uint64_t n = left > 0 ? Pick(0, 3) : 0; n > 0 && left > 0; --n, --left) Submit();
      Turn();
      if (::testing::Test::HasFatalFailure()) return;
      Pass(left > 0);
    }
    EXPECT_EQ(started_.size(), static_cast<size_t>(jobs)) << "a job never started";
  }

 private:
  uint64_t Pick(uint64_t low, uint64_t high) {
    return std::uniform_int_distribution<uint64_t>(low, high)(random_);
  }

  void Submit() {
    WaitingJob job;
    job.id = IdOf(++last_id_);
    job.name = "job-" + std::to_string(last_id_);
    job.created = view_.now;
    job.priority = exact_ || Pick(0, 4) > 0 ? 0 : static_cast<int32_t>(Pick(0, 2));
    const Inventory& all = view_.inventory;
    job.need.cpu_millis = static_cast<uint32_t>(500 * Pick(1, all.cpu_millis / 500));
    if (Pick(0, 2) == 0) job.need.memory_bytes = Pick(1, all.memory_bytes / kGib) * kGib;
    if (Pick(0, 2) == 0) job.need.gpus = static_cast<uint32_t>(Pick(0, all.gpus));
    job.need.auto_gpus = job.need.gpus == 0 && all.gpus > 0 && Pick(0, 1) == 0;
    // Only a few sizes, so that equal requests occur.
    if (Pick(0, 1) == 0) job.need = {1000, 0, 0, false};
    // Some are gangs that fit as a whole.
    if (Pick(0, 3) == 0) {
      job.need.nodes = static_cast<uint32_t>(Pick(2, 4));
      while (!Amounts::Of(all).Holds(Amounts::Of(job.need))) --job.need.nodes;
    }
    if (exact_ || Pick(0, 1) == 0) job.hold_limit = std::chrono::minutes(Pick(1, 4) * 10);
    if (!exact_ && Pick(0, 9) == 0) job.not_before = WallTime{view_.now.ms + 60'000};
    view_.waiting.push_back(job);
  }

  void Turn() {
    const auto plan = Plan(view_);
    ASSERT_EQ(plan.size(), view_.waiting.size());
    CheckOrder(plan);
    std::vector<WaitingJob> still;
    for (size_t i = 0; i < plan.size(); ++i) {
      WaitingJob job = view_.waiting[i];
      ASSERT_EQ(plan[i].job, job.id);
      if (plan[i].placed()) {
        Start(job, plan[i].hosts);
        continue;
      }
      CheckReason(job, plan[i]);
      ASSERT_GE(plan[i].overtaken, job.overtaken);
      job.overtaken = plan[i].overtaken;
      still.push_back(job);
    }
    view_.waiting = std::move(still);
    CheckSums();
    if (exact_) PromiseToHead();
  }

  void CheckReason(const WaitingJob& job, const Decision& decision) {
    static const std::set<std::string> kinds = {"waiting_cpus", "waiting_memory", "waiting_gpus",
                                                "waiting_turn", "backoff"};
    ASSERT_TRUE(kinds.count(decision.wait.kind)) << decision.wait.kind;
    ASSERT_FALSE(decision.wait.hint.empty());
    ASSERT_NE(decision.wait.text.find_first_of("0123456789"), std::string::npos)
        << "no amount in: " << decision.wait.text;
    ASSERT_EQ(decision.wait.kind == "backoff", job.not_before > view_.now);
  }

  // Of two equal requests the earlier one never waits while the later one starts.
  void CheckOrder(const std::vector<Decision>& plan) {
    for (size_t i = 0; i < plan.size(); ++i) {
      for (size_t k = i + 1; k < plan.size(); ++k) {
        const WaitingJob& a = view_.waiting[i];
        const WaitingJob& b = view_.waiting[k];
        if (a.priority != b.priority || !(a.need == b.need) || a.hold_limit != b.hold_limit)
          continue;
        if (a.not_before > view_.now || b.not_before > view_.now) continue;
        ASSERT_TRUE(plan[i].placed() || !plan[k].placed()) << a.name << " before " << b.name;
      }
    }
  }

  void CheckSums() {
    uint64_t cpu = 0;
    uint64_t memory = 0;
    std::set<uint32_t> devices;
    for (const RunningJob& job : view_.running) {
      cpu += job.placement.cpu_millis;
      memory += job.placement.memory_bytes;
      for (uint32_t device : job.placement.gpus) {
        ASSERT_LT(device, view_.inventory.gpus);
        ASSERT_TRUE(devices.insert(device).second) << "GPU " << device << " has two holders";
      }
    }
    ASSERT_LE(cpu, view_.inventory.cpu_millis);
    ASSERT_LE(memory, view_.inventory.memory_bytes);
  }

  void Start(const WaitingJob& job, const std::vector<Placement>& hosts) {
    ASSERT_EQ(hosts.size(), job.need.nodes) << job.name << " was placed in part";
    for (const Placement& placement : hosts) {
      ASSERT_EQ(placement.cpu_millis, job.need.cpu_millis);
      ASSERT_EQ(placement.memory_bytes, job.need.memory_bytes);
      ASSERT_EQ(placement.gpus.size(), job.need.gpus);
      ASSERT_TRUE(job.need.auto_gpus || placement.auto_gpus.empty());
      for (const RunningJob& other : view_.running) {
        for (uint32_t device : other.placement.gpus) {
          ASSERT_EQ(std::count(placement.auto_gpus.begin(), placement.auto_gpus.end(), device), 0)
              << job.name << " was shown a GPU of " << other.name;
        }
      }
    }
    ASSERT_TRUE(started_.insert(job.id).second) << job.name << " started twice";
    if (const auto promise = promised_.find(job.id); promise != promised_.end()) {
      ASSERT_LE(view_.now.ms, promise->second) << job.name << " was delayed by back-fill";
    }
    RunningJob running{job.id, job.name, Together(hosts), {}};
    const int64_t limit = job.hold_limit.count();
    if (limit > 0) running.ends_by = WallTime{view_.now.ms + limit};
    const int64_t held = limit > 0 ? (exact_ ? limit : 1 + Pick(0, limit - 1)) : Pick(1, 3'600'000);
    ends_[job.id] = view_.now.ms + held;
    view_.running.push_back(std::move(running));
  }

  // When the first job in line would start if nothing behind it ever did. Jobs
  // that this very turn let pass are left out: they are what could delay it.
  void PromiseToHead() {
    if (view_.waiting.empty()) return;
    const WaitingJob& head =
        *std::min_element(view_.waiting.begin(), view_.waiting.end(),
                          [](const WaitingJob& a, const WaitingJob& b) { return a.id < b.id; });
    if (promised_.count(head.id)) return;
    uint64_t cpu = view_.inventory.cpu_millis;
    uint64_t memory = view_.inventory.memory_bytes;
    uint64_t gpus = view_.inventory.gpus;
    std::multimap<int64_t, const RunningJob*> ends;
    for (const RunningJob& job : view_.running) {
      if (head.id < job.id && !ran_before_.count(job.id)) continue;
      ends.emplace(ends_[job.id], &job);
      cpu -= job.placement.cpu_millis;
      memory -= job.placement.memory_bytes;
      gpus -= job.placement.gpus.size();
    }
    int64_t at = view_.now.ms;
    for (const auto& [end, job] : ends) {
      if (Amounts{cpu, memory, gpus}.Holds(Amounts::Of(head.need))) break;
      at = end;
      cpu += job->placement.cpu_millis;
      memory += job->placement.memory_bytes;
      gpus += job->placement.gpus.size();
    }
    promised_[head.id] = at;
  }

  // On to the next end, or to the next submission if that is sooner.
  void Pass(bool more_to_come) {
    for (const RunningJob& job : view_.running) ran_before_.insert(job.id);
    int64_t next = more_to_come ? view_.now.ms + static_cast<int64_t>(Pick(1, 900'000)) : INT64_MAX;
    for (const auto& [id, end] : ends_) next = std::min(next, end);
    for (const WaitingJob& job : view_.waiting) {
      if (job.not_before > view_.now) next = std::min(next, job.not_before.ms);
    }
    if (next == INT64_MAX) return;
    view_.now.ms = next;
    std::erase_if(view_.running, [this](const RunningJob& job) {
      const auto end = ends_.find(job.id);
      if (end->second > view_.now.ms) return false;
      ends_.erase(end);
      return true;
    });
  }

  std::mt19937 random_;
  const bool exact_;
  QueueView view_;
  uint32_t last_id_ = 0;
  std::map<JobId, int64_t> ends_;      // of running jobs; the planner sees only the limits
  std::map<JobId, int64_t> promised_;  // heads: when they start at the latest
  std::set<JobId> started_;
  std::set<JobId> ran_before_;  // running before the current turn
};

constexpr int kJobs = 20;

void RunSeeds(bool exact) {
  if (const char* given = std::getenv("ATHANOR_SEED")) {
    History(static_cast<uint32_t>(std::atoi(given)), exact).Run(kJobs);
    return;
  }
  for (uint32_t seed = 1; seed <= 1'000; ++seed) {
    History(seed, exact).Run(kJobs);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "ATHANOR_SEED=" << seed;
  }
}

TEST(QueueHistory, NeverOversubscribesNeverStarvesAndAlwaysGivesAReason) { RunSeeds(false); }

TEST(QueueHistory, BackFillNeverDelaysTheHeadWhenRunTimesAreKnown) { RunSeeds(true); }

}  // namespace
}  // namespace athanor
