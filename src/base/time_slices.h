// Short time slices for programs that do little at a time and should do it at once. On a busy
// machine the kernel (Linux 6.12 and later) lets those run sooner that ask for less; their share of the
// processor stays what it is. Older kernels know nothing of it, and nothing changes there.
//
// Threads: for the calling thread, and those and the processes that it makes from then on.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>

namespace athanor {

// The kernel's sched_attr in its first size; its header and glibc's <sched.h> exclude each other.
struct SchedulingAttributes {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;  // runtime: the slice, for ordinary scheduling
};

inline void SetTimeSlice(std::chrono::nanoseconds slice) {
  SchedulingAttributes attributes = {};
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != 0) return;  // somebody chose another kind of scheduling
  attributes.size = sizeof(attributes);
  attributes.runtime = static_cast<uint64_t>(slice.count());
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

inline void TakeShortSlices() { SetTimeSlice(std::chrono::microseconds(100)); }
inline void TakeUsualSlices() { SetTimeSlice(std::chrono::nanoseconds(0)); }

}  // namespace athanor
