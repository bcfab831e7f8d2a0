#include "cli/run_sender.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "base/exec/mutex.h"
#include "base/io/files.h"
#include "cli/screen/reading.h"

namespace athanor {
namespace {

// Commits of new runs overlap; more connections would gain nothing.
constexpr size_t kLanes = 4;
constexpr size_t kMostUnderWay = 16;  // requests

}  // namespace

RunSender::RunSender(Home home, std::string origin, std::string experiment)
    : home_(std::move(home)), origin_(std::move(origin)), experiment_(std::move(experiment)) {}

RunSender::~RunSender() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (const auto& lane : lanes_) lane->thread.join();
}

void RunSender::Add(Work work) {
  const size_t lane = work.run->lane;
  if (lane == lanes_.size()) {
    lanes_.push_back(std::make_unique<Lane>());
    Lane& added = *lanes_.back();
    added.thread = std::thread([this, &added] { Serve(added); });
  }
  lanes_[lane]->queue.push_back(std::move(work));
  ++under_way_;
  changed_.notify_all();
}

Status RunSender::Take(EventSource::Run points) {
  MutexLock lock(mutex_);
  changed_.wait(lock,
                [this]() REQUIRES(mutex_) { return under_way_ < kMostUnderWay || !failed_.ok(); });
  if (!failed_.ok()) return failed_;
  const size_t next = runs_.size() % kLanes;
  const auto [at, fresh] = runs_.try_emplace(points.name);
  if (fresh) at->second.lane = next;
  Add({&at->second, std::move(points), false});
  return Ok();
}

Status RunSender::Wait() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [this]() REQUIRES(mutex_) { return under_way_ == 0 || !failed_.ok(); });
  return failed_;
}

Status RunSender::Finish() {
  {
    const MutexLock lock(mutex_);
    for (auto& entry : runs_) Add({&entry.second, {}, true});
  }
  return Wait();
}

void RunSender::Serve(Lane& lane) {
  auto client = Client::Connect(home_, false);
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&]() REQUIRES(mutex_) { return stopping_ || !lane.queue.empty(); });
    if (stopping_ || !failed_.ok()) return;
    Work work = std::move(lane.queue.front());
    lane.queue.pop_front();
    lock.unlock();
    Status done = client ? Do(*client, work) : Status(tl::unexpected(client.error()));
    lock.lock();
    --under_way_;
    if (!done.ok() && failed_.ok()) failed_ = std::move(done);
    changed_.notify_all();
  }
}

Status RunSender::Do(Client& client, Work& work) {
  Brought& run = *work.run;
  if (work.finish) {
    const Json body = {{"status", "finished"}, {"ended_ms", run.last_ms}};
    ATHANOR_CHECK_OK(client.Post("/api/v1/runs/" + run.id + "/finish", DumpJson(body)));
    return Ok();
  }
  if (run.id.empty()) ATHANOR_CHECK_OK(MakeRun(client, work.points, run));
  run.read += work.points.points;
  run.last_ms = work.points.last_ms;
  HttpCall call;
  call.method = "POST";
  call.target = "/api/v1/runs/" + run.id + "/points";
  call.headers.Add("Content-Type", "application/octet-stream");
  call.body = std::move(work.points.frames);
  call.idempotent = true;
  ATHANOR_TRY(const auto reply, client.Do(std::move(call)));
  ATHANOR_TRY(const auto answer, ParseJson(reply.body));
  run.stored += static_cast<uint64_t>(Number(answer, "stored"));
  return Ok();
}

Status RunSender::MakeRun(Client& client, const EventSource::Run& points, Brought& run) {
  Json body = {{"name", points.name == "." ? BaseName(origin_) : points.name},
               {"experiment", experiment_},
               {"source", origin_ + "/" + points.name}};
  if (points.first_ms > 0) body["started_ms"] = points.first_ms;
  ATHANOR_TRY(const auto made, client.Post("/api/v1/runs", DumpJson(body)));
  run.id = Text(made, "id");
  run.made = made.value("new", false);
  return Ok();
}

}  // namespace athanor
