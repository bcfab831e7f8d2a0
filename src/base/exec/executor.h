// An Executor runs functions one after the other: net's Loop in the server,
// a virtual one in simulation. Post is safe from any thread; what was posted
// runs in order on the executor's own thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace athanor {

class Executor {
 public:
  using Task = std::function<void()>;
  using TimerId = uint64_t;

  virtual ~Executor() = default;
  virtual void Post(Task task) = 0;
  // Runs `task` once after `delay`, unless cancelled before.
  virtual TimerId After(std::chrono::milliseconds delay, Task task) = 0;
  virtual void Cancel(TimerId timer) = 0;
};

}  // namespace athanor
