#include "base/exec/sim_executor.h"

#include <algorithm>

namespace athanor {

void SimExecutor::Post(Task task) { After(Millis(0), std::move(task)); }

Executor::TimerId SimExecutor::After(std::chrono::milliseconds delay, Task task) {
  const TimerId id = next_id_++;
  const Millis due = clock_.Monotonic() + std::max(delay, Millis(0));
  tasks_.emplace(Key{due, id}, std::move(task));
  due_.emplace(id, due);
  return id;
}

void SimExecutor::Cancel(TimerId timer) {
  const auto found = due_.find(timer);
  if (found == due_.end()) return;
  tasks_.erase(Key{found->second, timer});
  due_.erase(found);
}

bool SimExecutor::RunOne() {
  if (tasks_.empty()) return false;
  auto first = tasks_.begin();
  const auto [due, id] = first->first;
  // Removed before it runs: the task may post, or cancel itself.
  const Task task = std::move(first->second);
  tasks_.erase(first);
  due_.erase(id);
  // A test may have moved the clock past the task itself.
  if (due > clock_.Monotonic()) clock_.Advance(due - clock_.Monotonic());
  task();
  return true;
}

size_t SimExecutor::RunUntilIdle(size_t most) {
  size_t ran = 0;
  while (ran < most && RunOne()) ++ran;
  return ran;
}

size_t SimExecutor::RunFor(std::chrono::milliseconds span) {
  const Millis end = clock_.Monotonic() + span;
  size_t ran = 0;
  while (!tasks_.empty() && tasks_.begin()->first.first <= end) {
    RunOne();
    ++ran;
  }
  if (end > clock_.Monotonic()) clock_.Advance(end - clock_.Monotonic());
  return ran;
}

}  // namespace athanor
