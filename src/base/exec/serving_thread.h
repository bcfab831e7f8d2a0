// The thread that serves all requests must never wait for a disk. It marks itself, and code that
// may read a lot reports its reads. Reads on that thread are counted, and a test checks that there
// are none.
#pragma once

#include <cstdint>

namespace athanor {

void MarkServingThread(bool serves);  // the calling one

// Reading this much at once does not matter: data that is read often is in memory.
inline constexpr uint64_t kLittleToRead = 64 << 10;

// Called with the number of bytes by code that reads. Costs nothing on other threads.
void NoteRead(uint64_t bytes);
uint64_t LongReadsWhileServing();  // of this process

}  // namespace athanor
