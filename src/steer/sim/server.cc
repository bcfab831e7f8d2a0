#include "steer/sim/server.h"

#include <utility>

#include "price/catalogue.h"

namespace athanor::sim {

SimServer::SimServer(World& world, Backend& backend, Options options, Watch watch)
    : world_(world),
      backend_(backend),
      options_(std::move(options)),
      watch_(std::move(watch)),
      log_(-1, world.executor.clock(), LogLevel::kOff) {
  if (options_.power_cuts) vfs_ = std::make_unique<FaultVfs>();
}

SimServer::~SimServer() { End(); }

void SimServer::Start() {
  if (life_) return;
  world_.Note("server starts");
  auto life = std::make_unique<Life>(world_);
  auto database = Database::Open(options_.dir + "/athanor.db", ServerMigrations());
  if (!database) return world_.Break("the store does not open: " + database.error().what);
  life->database = std::move(*database);
  life->jobs = std::make_unique<JobStore>(*life->database);
  Engine::Parts parts{life->executor,
                      world_.executor.clock(),
                      *life->jobs,
                      life->writer,
                      life->effects,
                      backend_,
                      log_,
                      options_.inventory,
                      Catalogue::Builtin(),
                      true,
                      [](const JobRecord& record) {
                        AttemptPlan plan;
                        plan.job = record.id;
                        plan.attempt = record.current()->id;
                        plan.number = record.current()->number;
                        plan.spec = record.spec;
                        plan.placement = record.current()->placement;
                        return LaunchPlan{{std::move(plan)}};
                      },
                      [this](const JobRecord& record, const std::vector<StoredEvent>& events) {
                        watch_.durable(record, events);
                      },
                      [this](const Error& error) {
                        if (!disk_failing_)
                          world_.Break("a commit failed: " + error.what + "; " + error.why);
                        world_.executor.Post([this] { Crash(); });
                      }};
  life->engine = std::make_unique<Engine>(std::move(parts));
  life_ = std::move(life);
  ++lives_;
  watch_.came_up();
  if (auto started = life_->engine->Start(); !started) {
    world_.Break("the engine does not start: " + started.error().what);
  }
}

void SimServer::End() {
  if (!life_) return;
  life_->engine.reset();
  life_->jobs.reset();
  life_->database.reset();
  life_.reset();
  if (disk_failing_) {
    vfs_->CutPower();
    vfs_->Heal();
    disk_failing_ = false;
  }
}

void SimServer::Crash() {
  if (!life_) return;
  world_.Note("server dies");
  End();
}

void SimServer::FailDiskAndCrash() {
  if (!life_) return;
  if (!vfs_) return Crash();
  world_.Note("the server's disk begins to fail");
  disk_failing_ = true;
  vfs_->FailAt(static_cast<int>(world_.dice.Below(6)), FaultVfs::Fault::kIoError, true);
  world_.executor.After(Millis(3'000), [this, life = lives_] {
    if (lives_ == life) Crash();
  });
}

void SimServer::StopInOrder() {
  if (!life_) return;
  world_.Note("server stops in order");
  life_->engine->Stop();
  End();
}

void SimServer::Answer(JobId job, AttemptId attempt, bool refused,
                       const std::function<void(Reply)>& answer) {
  Reply reply;
  const auto* live = life_->engine->Live(job);
  const auto* current = live ? live->current() : nullptr;
  const bool over = !current || current->id != attempt || current->ended.ms != 0;
  if (refused && !over) world_.Break(live->spec.name + ": a live attempt was fenced off");
  reply.fenced = refused;
  if (live && live->stop) {
    reply.stop = StopFrame{live->stop->cause, live->stop->grace.count()};
  } else if (current && current->interrupt) {
    reply.stop = StopFrame{current->interrupt->cause, current->interrupt->grace.count(), true};
  }
  answer(std::move(reply));
}

namespace {

std::optional<JobEvent> EventOf(AttemptId attempt, const ReportFrame& frame) {
  if (std::holds_alternative<HelloFrame>(frame)) return AgentUp{attempt};
  if (const auto* f = std::get_if<StartedFrame>(&frame)) {
    return ScriptStarted{attempt, f->setup_ms, f->off};
  }
  if (const auto* f = std::get_if<PrepareFailedFrame>(&frame)) {
    return PrepareFailed{attempt, f->cause};
  }
  if (const auto* f = std::get_if<EndedFrame>(&frame))
    return ScriptEnded{attempt, f->exit, f->cause};
  if (const auto* f = std::get_if<UploadedFrame>(&frame)) {
    return Uploaded{attempt, f->outputs, f->failure, f->packages};
  }
  if (const auto* f = std::get_if<NoteFrame>(&frame)) return Noted{attempt, f->cause};
  if (const auto* f = std::get_if<ResumedFrame>(&frame)) {
    return Resumed{attempt, f->checkpoint, f->step};
  }
  if (const auto* f = std::get_if<CheckpointFrame>(&frame)) {
    return CheckpointKept{attempt, f->checkpoint, f->advice};
  }
  if (const auto* f = std::get_if<FiringFrame>(&frame)) return RuleFired{attempt, f->firing};
  return std::nullopt;
}

}  // namespace

void SimServer::Report(AttemptId attempt, const std::vector<ReportFrame>& frames,
                       std::function<void(Reply)> answer) {
  if (!life_) return;
  const auto job = life_->engine->JobOf(attempt);
  if (!job) return answer(Reply{true, std::nullopt});
  auto waiting = std::make_shared<int>(1);
  auto refused = std::make_shared<bool>(false);
  auto done = [this, job = *job, attempt, waiting, refused, answer](const Status& status) {
    if (!status && status.error().code == ErrorCode::kConflict) *refused = true;
    if (--*waiting == 0) Answer(job, attempt, *refused, answer);
  };
  for (const auto& frame : frames) {
    if (const auto* usage = std::get_if<UsageFrame>(&frame)) {
      life_->engine->Touch(attempt, usage->held_ms);
      watch_.usage_taken(*job, attempt, usage->held_ms);
    } else if (auto event = EventOf(attempt, frame)) {
      ++*waiting;
      life_->engine->Apply(*job, std::move(*event), done);
    }
  }
  done(Ok());
}

void SimServer::Submit(JobRecord draft, std::function<void(Result<Engine::Accepted>)> answer) {
  if (life_) life_->engine->Submit(std::move(draft), std::move(answer));
}

void SimServer::Ask(JobId job, const JobEvent& event, std::function<void(Status)> answer) {
  if (life_) life_->engine->Apply(job, event, std::move(answer));
}

}  // namespace athanor::sim
