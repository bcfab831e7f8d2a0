#include "base/exec/serving_thread.h"

#include <atomic>

namespace athanor {
namespace {

thread_local bool serving = false;
std::atomic<uint64_t> long_reads{0};

}  // namespace

void MarkServingThread(bool serves) { serving = serves; }

void NoteRead(uint64_t bytes) {
  if (serving && bytes > kLittleToRead) ++long_reads;
}

uint64_t LongReadsWhileServing() { return long_reads; }

}  // namespace athanor
