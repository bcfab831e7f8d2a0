#include "steer/sim/users.h"

#include <algorithm>

#include "job/codec.h"

namespace athanor::sim {
namespace {

constexpr const char* kTypes[] = {"ml.m5.large", "ml.m5.xlarge", "ml.m5.2xlarge"};
constexpr uint64_t kGiB = 1ull << 30;

}  // namespace

void Users::Begin(size_t jobs, Millis span) {
  for (size_t i = 0; i < jobs; ++i) {
    Wanted wanted;
    wanted.key = "key-" + std::to_string(i);
    wanted.spec = SomeSpec(i);
    wanted.spec_hash = SpecHash(wanted.spec);
    wanted_.push_back(std::move(wanted));
  }
  for (size_t i = 0; i < jobs; ++i) {
    world_.executor.After(world_.dice.Between(0, span.count()), [this, i] { Submit(i); });
  }
}

JobSpec Users::SomeSpec(size_t number) {
  auto& dice = world_.dice;
  JobSpec spec;
  spec.name = "job-" + std::to_string(number);
  spec.experiment = "sim";
  spec.command = {"python", "train.py"};
  spec.priority = static_cast<int32_t>(dice.Below(5)) - 2;
  spec.limits.stop_grace = dice.Between(1'000, 20'000);
  auto& script = cluster_.PlanOf(spec.name);
  script.work = dice.Between(500, dice.Percent(20) ? 240'000 : 40'000);
  if (dice.Percent(60)) script.checkpoint_every = dice.Between(2'000, 10'000);
  script.ignores_notice = dice.Percent(15);
  script.says_done = dice.Percent(10);
  if (dice.Percent(50)) {
    spec.resources.type = kTypes[dice.Below(3)];
  } else {
    spec.resources.cpu_millis = 500 * static_cast<uint32_t>(dice.Below(12));
    spec.resources.memory_bytes = dice.Below(4) * kGiB;
    spec.resources.gpus = dice.Percent(30) ? 1 + static_cast<uint32_t>(dice.Below(2)) : 0;
  }
  if (dice.Percent(25)) SomeGang(spec);
  if (dice.Percent(40)) SomeSpot(spec, script);
  if (dice.Percent(50)) {
    spec.retry.max = static_cast<uint32_t>(dice.Below(4));
    spec.retry.on = {dice.Percent(50) ? "exit:1" : "nonzero_exit", "agent_lost"};
    spec.retry.backoff = dice.Between(0, 5'000);
  }
  if (dice.Percent(10)) spec.limits.max_runtime = dice.Between(5'000, 60'000);
  if (dice.Percent(10)) spec.limits.lost_after = dice.Between(12'000, 60'000);
  SomeScript(spec, script);
  return spec;
}

void Users::SomeGang(JobSpec& spec) {
  auto& resources = spec.resources;
  resources.nodes = 2 + static_cast<uint32_t>(world_.dice.Below(3));
  resources.processes = 1 + static_cast<uint32_t>(world_.dice.Below(2));
  // Small enough that all of it fits the smallest cluster.
  resources.cpu_millis = std::min(resources.cpu_millis, 3'000u);
  resources.gpus = std::min(resources.gpus, 2u / resources.nodes);
}

void Users::SomeSpot(JobSpec& spec, ScriptPlan& script) {
  auto& dice = world_.dice;
  auto& spot = spec.resources.spot;
  spot.use = true;
  if (dice.Percent(40)) {
    spot.max_wait = dice.Between(20'000, 400'000);
    spot.fallback = dice.Percent(50);
  }
  if (dice.Percent(30)) {
    // It makes progress between two interruptions, otherwise it would never end.
    spot.preempt_every = dice.Between(25'000, 60'000);
    spot.preempt_jitter = dice.Between(0, 8'000);
    spot.preempt_seed = dice.Bits();
    script.checkpoint_every = dice.Between(2'000, 6'000);
  } else if (dice.Percent(30)) {
    spot.preempt_after = dice.Between(100, 20'000);
  }
}

void Users::SomeScript(JobSpec& spec, ScriptPlan& script) {
  auto& dice = world_.dice;
  switch (dice.Below(12)) {
    case 0:
      script.prepare_fails = true;
      break;
    case 1:
      script.failures = {{"nonzero_exit", "status 1", "", ""}};
      break;
    case 2:
      script.failures.assign(1 + dice.Below(4), {"python_exception", "ValueError", "", ""});
      break;
    case 3:
      script.failures.assign(1 + dice.Below(3), {"out_of_memory", "killed", "", ""});
      if (!spec.resources.type.empty()) spec.retry.escalate = {"ml.m5.2xlarge", "ml.m5.4xlarge"};
      break;
    case 4:
      script.failures = {{"hung", "no progress", "", ""}};
      spec.limits.hang_action = "retry";
      break;
    case 5:
    case 6: {
      const char* actions[] = {"mark", "stop", "retry"};
      const auto* action = actions[dice.Below(3)];
      script.rule = Firing{"nan", "nan", "loss", 7, "nan", "", action, "", {}};
      if (*action != 'm')
        script.rule_stop = {"rule_" + std::string(action), "a rule fired", "", ""};
      break;
    }
    default:
      break;
  }
}

// As the door makes one for every request; ids are counted, so that a seed gives the same ones.
JobRecord Users::DraftOf(const Wanted& wanted) {
  JobRecord draft;
  uint64_t count = next_id_++;
  for (size_t i = 0; i < 8; ++i) {
    draft.id.value.bytes[15 - i] = static_cast<uint8_t>(count >> (8 * i));
  }
  draft.key = wanted.key;
  draft.spec = wanted.spec;
  draft.spec_hash = wanted.spec_hash;
  draft.user = "ann";
  draft.created = draft.updated = world_.executor.clock().Wall();
  draft.price.micros_per_hour = 96'000;
  return draft;
}

void Users::Submit(size_t number) {
  if (wanted_[number].answered) return;
  const int copies = world_.Loses() ? 0 : world_.faults && world_.dice.Percent(10) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    world_.executor.After(world_.Delay(), [this, number] {
      server_.Submit(DraftOf(wanted_[number]), [this, number](Result<Engine::Accepted> reply) {
        if (!reply) {
          if (reply.error().code == ErrorCode::kConflict) {
            world_.Break(wanted_[number].key + " was refused: " + reply.error().what);
          }
          return;
        }
        checker_.Acknowledged(wanted_[number].key, reply->id);
        if (world_.Loses()) return;
        world_.executor.After(world_.Delay(),
                              [this, number, id = reply->id] { Answered(number, id); });
      });
    });
  }
  world_.executor.After(world_.dice.Between(3'000, 12'000), [this, number] { Submit(number); });
}

void Users::Answered(size_t number, JobId id) {
  auto& wanted = wanted_[number];
  if (wanted.answered) return;
  wanted.answered = true;
  ++answered_;
  auto& dice = world_.dice;
  if (dice.Percent(10)) TryAnotherSpec(number);
  for (int i = dice.Percent(35) ? 1 + static_cast<int>(dice.Below(3)) : 0; i > 0; --i) {
    world_.executor.After(dice.Between(0, 90'000),
                          [this, number, id] { Meddle(id, wanted_[number].spec); });
  }
}

void Users::TryAnotherSpec(size_t number) {
  Wanted other = wanted_[number];
  other.spec.command.push_back("--other");
  other.spec_hash = SpecHash(other.spec);
  server_.Submit(DraftOf(other), [this, key = other.key](const Result<Engine::Accepted>& reply) {
    if (reply) world_.Break(key + " was given to another spec");
  });
}

void Users::Meddle(JobId id, const JobSpec& spec) {
  if (world_.dice.Percent(30)) {
    world_.Note("user stops " + spec.name);
    server_.Ask(
        id,
        StopAsked{{"user_stop", "stopped by ann", "", ""}, "ann", world_.dice.Between(0, 10'000)},
        {});
  } else {
    world_.Note("user interrupts " + spec.name);
    server_.Ask(
        id,
        InterruptAsked{{"preempted", "taken away", "", ""}, "ann", world_.dice.Between(0, 10'000)},
        {});
  }
}

}  // namespace athanor::sim
