#include "steer/sim/server.h"

#include <utility>

#include "price/catalogue.h"

namespace athanor::sim {

SimServer::SimServer(World& world, Backend& backend, Options options, Watch watch)
    : world_(world),
      options_(std::move(options)),
      watch_(std::move(watch)),
      log_(-1, world.executor.clock(), LogLevel::kOff) {
  backends_.Add(backend, options_.inventory);
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
                      [this, executor = &life->executor](const std::string&, size_t threads) {
                        return std::make_unique<VirtualPool>(*executor, world_, Millis(250),
                                                             threads);
                      },
                      backends_,
                      log_,
                      Catalogue::Builtin(),
                      true,
                      [](const JobRecord& record) {
                        const auto& attempt = *record.current();
                        LaunchPlan plan;
                        for (uint32_t i = 0; i < attempt.hosts.size(); ++i) {
                          auto& host = plan.hosts.emplace_back();
                          host.job = record.id;
                          host.attempt = attempt.id;
                          host.number = attempt.number;
                          host.spec = record.spec;
                          host.placement = attempt.hosts[i].placement;
                          host.host = i;
                        }
                        return plan;
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
  life->reports = std::make_unique<Reports>(*life->engine, sink_);
  life_ = std::move(life);
  ++lives_;
  watch_.came_up();
  if (auto started = life_->engine->Start(); !started) {
    world_.Break("the engine does not start: " + started.error().what);
  }
}

void SimServer::End() {
  if (!life_) return;
  life_->reports.reset();
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

void SimServer::Report(AttemptId attempt, uint32_t host, const std::vector<ReportFrame>& frames,
                       const std::function<void(const Reports::Answer&)>& answer) {
  if (!life_) return;
  life_->reports->Take(
      attempt, host, frames, [this, attempt, host, answer](const Reports::Answer& said) {
        if (said.refused) world_.Break("a report was refused: " + said.refused->what);
        const auto job = life_->engine->JobOf(attempt);
        const auto* live = job ? life_->engine->Live(*job) : nullptr;
        const auto* current = live ? live->current() : nullptr;
        const bool over = !current || current->id != attempt || current->ended.ms != 0 ||
                          current->hosts[host].over.ms != 0;
        if (said.fenced && !over) world_.Break(live->spec.name + ": a live attempt was fenced off");
        answer(said);
      });
}

void SimServer::Submit(JobRecord draft, std::function<void(Result<Engine::Accepted>)> answer) {
  if (life_) life_->engine->Submit(std::move(draft), std::move(answer));
}

void SimServer::Ask(JobId job, const JobEvent& event, std::function<void(Status)> answer) {
  if (life_) life_->engine->Apply(job, event, std::move(answer));
}

}  // namespace athanor::sim
