#include "record/jobs/newest_times.h"

#include "base/exec/mutex.h"

#include <algorithm>
#include <functional>

namespace athanor {
namespace {

constexpr size_t kFirstSlots = 1024;
constexpr int64_t kMostTime = (int64_t{1} << 48) - 1;

uint64_t HashOf(NewestTimes::Of kind, std::string_view text) {
  uint64_t hash = std::hash<std::string_view>{}(text) + static_cast<uint64_t>(kind);
  hash *= 0x9e3779b97f4a7c15;  // the kinds far apart
  return std::max<uint64_t>(hash >> 16, 1);
}

uint64_t Wide(const uint16_t* part) {
  return part[0] | uint64_t{part[1]} << 16 | uint64_t{part[2]} << 32;
}

void Narrow(uint64_t value, uint16_t* part) {
  for (int i = 0; i < 3; ++i) part[i] = static_cast<uint16_t>(value >> 16 * i);
}

}  // namespace

// The position of `hash`, or where it would be inserted.
size_t NewestTimes::At(const std::vector<Slot>& slots, uint64_t hash) {
  const size_t mask = slots.size() - 1;
  size_t at = hash & mask;
  for (;; at = (at + 1) & mask) {
    const uint64_t found = Wide(slots[at].data());
    if (found == hash || found == 0) return at;
  }
}

void NewestTimes::Grow() {
  std::vector<Slot> wider(slots_.empty() ? kFirstSlots : slots_.size() * 2);
  for (const Slot& slot : slots_) {
    if (const uint64_t hash = Wide(slot.data()); hash != 0) wider[At(wider, hash)] = slot;
  }
  slots_ = std::move(wider);
}

void NewestTimes::Add(Of kind, std::string_view text, int64_t created) {
  const auto time = static_cast<uint64_t>(std::clamp<int64_t>(created, 0, kMostTime));
  const uint64_t hash = HashOf(kind, text);
  const MutexLock lock(mutex_);
  if (used_ * 4 >= slots_.size() * 3) Grow();
  Slot& slot = slots_[At(slots_, hash)];
  used_ += Wide(slot.data()) == 0;
  Narrow(hash, slot.data());
  Narrow(time, slot.data() + 3);
}

std::optional<int64_t> NewestTimes::Find(Of kind, std::string_view text) const {
  const uint64_t hash = HashOf(kind, text);
  const MutexLock lock(mutex_);
  if (slots_.empty()) return std::nullopt;
  const Slot& slot = slots_[At(slots_, hash)];
  if (Wide(slot.data()) == 0) return std::nullopt;
  return static_cast<int64_t>(Wide(slot.data() + 3));
}

}  // namespace athanor
