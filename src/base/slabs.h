// Slabs keep large nodes of one size outside the heap. Ten thousand records that come and go leave
// a heap full of holes, each next to something small that stays. A slab is returned to the system
// with its last node. For maps that grow and shrink a lot:
//
//   SlabMap<JobId, JobRecord> live;
//
// Threads: a map and its slabs belong to one owner.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <utility>

namespace athanor {

class Slabs {
 public:
  Slabs() = default;
  ~Slabs();
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  // Memory for one node. All nodes of these slabs have the same size, at most 64 KiB.
  void* Take(size_t bytes);
  void Give(void* node);

  size_t count() const { return count_; }  // of slabs that the system gave us

 private:
  struct Slab;
  static Slab* Map(size_t node_bytes);
  static void Unmap(Slab* slab);
  static void Populate(Slab* slab);
  void Link(Slab* slab);
  void Unlink(Slab* slab);

  Slab* roomy_ = nullptr;  // slabs with a free slot
  size_t count_ = 0;
};

template <typename T>
class SlabAllocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  SlabAllocator() : slabs_(std::make_shared<Slabs>()) {}
  template <typename U>
  SlabAllocator(const SlabAllocator<U>& other)  // NOLINT(google-explicit-constructor)
      : slabs_(other.slabs()) {}

  T* allocate(size_t count) {
    static_assert(alignof(T) <= alignof(std::max_align_t));
    return static_cast<T*>(count == 1 ? slabs_->Take(sizeof(T))
                                      : ::operator new(count * sizeof(T)));
  }
  void deallocate(T* at, size_t count) { count == 1 ? slabs_->Give(at) : ::operator delete(at); }
  const std::shared_ptr<Slabs>& slabs() const { return slabs_; }

  template <typename U>
  bool operator==(const SlabAllocator<U>& other) const {
    return slabs_ == other.slabs();
  }

 private:
  std::shared_ptr<Slabs> slabs_;
};

template <typename Key, typename Value>
using SlabMap = std::map<Key, Value, std::less<Key>, SlabAllocator<std::pair<const Key, Value>>>;

}  // namespace athanor
