#include "steer/sim/simulation.h"

#include "steer/sim/checker.h"
#include "steer/sim/cluster.h"
#include "steer/sim/server.h"
#include "steer/sim/users.h"
#include "steer/sim/world.h"

namespace athanor::sim {
namespace {

constexpr size_t kMachines = 50;
constexpr Millis kSubmits = std::chrono::minutes(3);
constexpr Millis kFaults = std::chrono::minutes(6);
// Long after the faults: what has not ended by then never will.
constexpr Millis kHorizon = std::chrono::hours(12);
constexpr Millis kSettle = std::chrono::minutes(1);

Inventory SomeInventory(Dice& dice) {
  Inventory all;
  all.host = "cluster";
  // Small enough that jobs wait, large enough for the largest.
  all.cpu_millis = 16'000 + 1'000 * static_cast<uint32_t>(dice.Below(kMachines * 4));
  all.memory_bytes = (64 + dice.Below(400)) << 30;
  all.gpus = 2 + static_cast<uint32_t>(dice.Below(7));
  return all;
}

class Simulation {
 public:
  Simulation(uint64_t seed, const std::string& dir, bool trace, size_t jobs)
      : seed_(seed),
        jobs_(jobs),
        world_(seed, trace),
        inventory_(SomeInventory(world_.dice)),
        cluster_(world_, kMachines),
        checker_(world_, cluster_, inventory_),
        server_(world_, cluster_.backend(), {dir, inventory_, seed % 32 == 3},
                {[this](const JobRecord& record, const std::vector<StoredEvent>& events) {
                   checker_.Durable(record, events);
                   if (record.current()) cluster_.Nudge(record.current()->id);
                 },
                 [this](AttemptId attempt, uint32_t host, int64_t held) {
                   checker_.UsageTaken(attempt, host, held);
                 },
                 [this] { checker_.CameUp(); }}),
        users_(world_, cluster_, server_, checker_) {
    checker_.Use(server_);
    cluster_.Connect(server_, [this](const HostAttempt& attempt) { checker_.Began(attempt); });
  }

  Outcome Run() {
    server_.Start();
    // Sometimes a long line: the queue is then planned in another rhythm.
    const size_t some = seed_ % 20 == 10 ? 100 : 6 + world_.dice.Below(20);
    users_.Begin(jobs_ > 0 ? jobs_ : some, kSubmits);
    fault_every_ = world_.dice.Between(1'500, 12'000);
    world_.executor.After(Millis(500), [this] { KeepUp(); });
    world_.executor.After(fault_every_, [this] { SomeFault(); });
    world_.executor.After(kFaults, [this] { Heal(); });
    const auto end = world_.now() + kHorizon;
    uint64_t turns = 0;
    std::optional<Millis> over;
    while (world_.broken.empty() && world_.executor.RunOne()) {
      if (++turns % 64 != 0) continue;
      checker_.EachTurn();
      if (!world_.faults && !over && users_.AllAnswered() && checker_.AllOver()) {
        over = world_.now() + kSettle;
      }
      if (over && world_.now() > *over) break;
      if (world_.now() > end) {
        world_.Break("not everything ended, long after the faults were over");
      }
    }
    if (world_.broken.empty()) checker_.AtTheEnd();
    return {world_.broken,   std::move(world_.trace),
            checker_.jobs(), cluster_.attempts().size(),
            server_.lives(), turns};
  }

 private:
  void KeepUp() {
    if (!server_.up() && !starting_) {
      starting_ = true;
      world_.executor.After(world_.faults ? world_.dice.Between(50, 15'000) : Millis(1), [this] {
        starting_ = false;
        server_.Start();
      });
    }
    world_.executor.After(Millis(500), [this] { KeepUp(); });
  }

  void SomeFault() {
    if (!world_.faults) return;
    auto& dice = world_.dice;
    const auto machine = dice.Below(kMachines);
    const auto later = [this](Millis delay, auto task) { world_.executor.After(delay, task); };
    // In some histories it is the agents that die, again and again.
    switch (seed_ % 5 == 2 && dice.Percent(70) ? 5 : dice.Below(10)) {
      case 0:
      case 1:
        cluster_.Crash(machine);
        later(dice.Between(2'000, 90'000), [this, machine] { cluster_.Restore(machine); });
        break;
      case 2:
      case 3:
        cluster_.CutOff(machine, true);
        later(dice.Between(500, 120'000), [this, machine] { cluster_.CutOff(machine, false); });
        break;
      case 4:
        cluster_.Pause(machine, true);
        later(dice.Between(500, 60'000), [this, machine] { cluster_.Pause(machine, false); });
        break;
      case 5:
      case 6:
        cluster_.KillSomeAgent();
        break;
      case 7:
        dice.Percent(30) ? server_.FailDiskAndCrash() : server_.Crash();
        break;
      case 8:
        if (dice.Percent(30)) server_.StopInOrder();
        break;
      default:
        if (seed_ % 4 == 1) {
          world_.executor.clock().JumpWall(dice.Between(-600'000, 600'000));
        }
        break;
    }
    world_.executor.After(dice.Between(1, 2 * fault_every_.count()), [this] { SomeFault(); });
  }

  void Heal() {
    world_.Note("faults are over");
    world_.faults = false;
    cluster_.HealAll();
  }

  const uint64_t seed_;
  const size_t jobs_;  // 0: as the seed says
  World world_;
  const Inventory inventory_;
  Cluster cluster_;
  Checker checker_;
  SimServer server_;
  Users users_;
  Millis fault_every_{0};
  bool starting_ = false;
};

}  // namespace

Outcome Simulate(uint64_t seed, const std::string& dir, bool trace, size_t jobs) {
  return Simulation(seed, dir, trace, jobs).Run();
}

}  // namespace athanor::sim
