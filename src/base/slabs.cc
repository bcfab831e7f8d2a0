#include "base/slabs.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace athanor {
namespace {

constexpr size_t kSlabBytes = 256 << 10;  // and aligned to it: an address gives its slab

constexpr size_t kFewSlabs = 8;

constexpr size_t RoundUp(size_t bytes) {
  constexpr size_t kAlign = alignof(std::max_align_t);
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

}  // namespace

struct Slabs::Slab {
  size_t node_bytes;
  size_t fresh_at = RoundUp(sizeof(Slab));  // offset of the first slot that was never used
  void* freed = nullptr;  // slots that were freed, each with the address of the next one
  size_t used = 0;
  Slab* before = nullptr;  // among those with a free slot
  Slab* next = nullptr;

  bool full() const { return freed == nullptr && fresh_at + node_bytes > kSlabBytes; }
};

Slabs::~Slabs() {
  assert(count_ <= 1);
  if (roomy_ != nullptr) Unmap(roomy_);
}

void Slabs::Unmap(Slab* slab) {
  ASAN_UNPOISON_MEMORY_REGION(slab, kSlabBytes);
  ::munmap(slab, kSlabBytes);
}

Slabs::Slab* Slabs::Map(size_t node_bytes) {
  void* mapped =
      ::mmap(nullptr, 2 * kSlabBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  const auto begin = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t at = (begin + kSlabBytes - 1) / kSlabBytes * kSlabBytes;
  const uintptr_t end = begin + 2 * kSlabBytes;
  if (at > begin) ::munmap(mapped, at - begin);
  if (at + kSlabBytes < end) {
    ::munmap(reinterpret_cast<void*>(at + kSlabBytes), end - at - kSlabBytes);
  }
  return new (reinterpret_cast<void*>(at)) Slab{node_bytes};
}

// If there are many slabs already, this one will be filled, too. Getting its pages in one call is
// cheaper than faulting them in one by one. Older kernels do not know the call.
void Slabs::Populate([[maybe_unused]] Slab* slab) {
#ifdef MADV_POPULATE_WRITE
  (void)::madvise(slab, kSlabBytes, MADV_POPULATE_WRITE);
#endif
}

void Slabs::Link(Slab* slab) {
  slab->before = nullptr;
  slab->next = roomy_;
  if (roomy_ != nullptr) roomy_->before = slab;
  roomy_ = slab;
}

void Slabs::Unlink(Slab* slab) {
  (slab->before != nullptr ? slab->before->next : roomy_) = slab->next;
  if (slab->next != nullptr) slab->next->before = slab->before;
}

void* Slabs::Take(size_t bytes) {
  bytes = RoundUp(bytes);
  if (roomy_ == nullptr) {
    Link(Map(bytes));
    if (++count_ > kFewSlabs) Populate(roomy_);
  }
  Slab* slab = roomy_;
  assert(slab->node_bytes == bytes && bytes <= kSlabBytes / 4);
  void* node = slab->freed;
  if (node != nullptr) {
    ASAN_UNPOISON_MEMORY_REGION(node, bytes);
    slab->freed = *static_cast<void**>(node);
  } else {
    node = reinterpret_cast<char*>(slab) + slab->fresh_at;
    slab->fresh_at += bytes;
  }
  ++slab->used;
  if (slab->full()) Unlink(slab);
  return node;
}

void Slabs::Give(void* node) {
  auto* slab = reinterpret_cast<Slab*>(reinterpret_cast<uintptr_t>(node) & ~(kSlabBytes - 1));
  if (slab->full()) Link(slab);
  *static_cast<void**>(node) = slab->freed;
  slab->freed = node;
  ASAN_POISON_MEMORY_REGION(node, slab->node_bytes);  // so that a use after this is detected
  // The last slab with room stays. Otherwise, one job that comes and goes would map a slab each
  // time.
  if (--slab->used > 0 || (slab == roomy_ && slab->next == nullptr)) return;
  Unlink(slab);
  Unmap(slab);
  --count_;
}

}  // namespace athanor
