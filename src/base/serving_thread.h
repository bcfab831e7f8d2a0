// The thread that serves everybody must never wait for a disk. It marks itself, and what may read
// much says so: work that happens there all the same is counted, and a test holds the count at 0.
#pragma once

#include <cstdint>

namespace athanor {

void MarkServingThread(bool serves);  // the calling one

// Reading this much at once is no matter: what is read often is in memory.
inline constexpr uint64_t kLittleToRead = 64 << 10;

// Called with what was read, by whoever reads. Costs nothing elsewhere.
void NoteRead(uint64_t bytes);
uint64_t LongReadsWhileServing();  // of this process

}  // namespace athanor
