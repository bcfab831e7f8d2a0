#include "record/runs/run_writer.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "record/runs/run_store.h"

namespace athanor {
namespace {

constexpr std::chrono::milliseconds kSoon{50};
constexpr size_t kFew = 64;  // batches without a waiter, in one transaction
constexpr size_t kMany = 128;

}  // namespace

struct RunWriter::Parts : std::enable_shared_from_this<RunWriter::Parts> {
  Parts(RunStore& kept_in, Pool& writes, Executor& loop, std::function<void()> loss, RowsOf rows)
      : store(kept_in),
        pool(writes),
        executor(loop),
        on_loss(std::move(loss)),
        rows_of(std::move(rows)) {}

  struct Waiting {
    RunBatch batch;
    Done done;
  };

  RunStore& store;
  Pool& pool;
  Executor& executor;
  const std::function<void()> on_loss;
  const RowsOf rows_of;
  std::vector<Waiting> next;
  std::deque<JobId> later;      // nothing waits for them; written with the next Write
  std::map<JobId, bool> whole;  // of each in `later`
  bool writing = false;
  bool soon = false;  // a timer will call Trickle
  bool lost = false;

  void Go() {
    if (writing || next.empty()) return;
    writing = true;
    auto now = std::make_shared<std::vector<Waiting>>(std::move(next));
    next.clear();
    const bool taken = pool.Submit([self = shared_from_this(), now] {
      auto outcomes = std::make_shared<std::vector<Status>>(self->Commit(*now));
      self->executor.Post([self, now, outcomes] { self->Tell(*now, *outcomes); });
    });
    if (!taken) {
      const Status stopping = Fail(ErrorCode::kUnavailable, "the server is stopping");
      Tell(*now, std::vector<Status>(now->size(), stopping));
    }
  }

  void TakeLater(size_t most) {
    for (; most > 0 && !later.empty(); --most) {
      const auto run = whole.extract(later.front());
      later.pop_front();
      next.push_back({rows_of(run.key(), run.mapped()), {}});
    }
  }

  // A few at a time: a long transaction would make other writers wait.
  void Trickle() {
    soon = false;
    if (!writing) TakeLater(std::clamp(later.size() / 20, kFew, kMany));
    Go();
    Arm();
  }

  void Arm() {
    if (soon || later.empty()) return;
    soon = true;
    executor.After(kSoon, [parts = weak_from_this()] {
      if (const auto self = parts.lock()) self->Trickle();
    });
  }

  // If one batch cannot be stored, the others must not suffer: each is then tried alone.
  std::vector<Status> Commit(const std::vector<Waiting>& now) const {
    std::vector<const RunBatch*> batches;
    for (const auto& waiting : now) {
      if (!waiting.batch.empty()) batches.push_back(&waiting.batch);
    }
    std::vector<Status> outcomes(now.size());
    if (batches.empty() || store.Commit(batches).ok()) return outcomes;
    for (size_t i = 0; i < now.size(); ++i) outcomes[i] = store.Commit(now[i].batch);
    return outcomes;
  }

  void Tell(const std::vector<Waiting>& now, const std::vector<Status>& outcomes) {
    writing = false;
    for (size_t i = 0; i < now.size(); ++i) {
      lost |= !outcomes[i].ok();
      if (now[i].done) now[i].done(outcomes[i]);
    }
    // What waits is in memory but not in the store: a reload must not lose it.
    if (lost && next.empty() && later.empty()) {
      lost = false;
      if (on_loss) on_loss();
    }
    Go();
  }
};

RunWriter::RunWriter(RunStore& store, Pool& pool, Executor& executor, std::function<void()> on_loss,
                     RowsOf rows_of)
    : parts_(
          std::make_shared<Parts>(store, pool, executor, std::move(on_loss), std::move(rows_of))) {}
RunWriter::~RunWriter() = default;

void RunWriter::WriteSoon(JobId run, bool whole) {
  const auto [at, fresh] = parts_->whole.try_emplace(run, whole);
  at->second |= whole;
  if (fresh) parts_->later.push_back(run);
  parts_->Arm();
}

void RunWriter::Write(RunBatch batch, Done done) {
  if (batch.empty() && !done) return;
  parts_->TakeLater(SIZE_MAX);
  parts_->next.push_back({std::move(batch), std::move(done)});
  parts_->Go();
}

}  // namespace athanor
