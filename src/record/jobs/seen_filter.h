// SeenFilter answers "was this text surely never added?" from memory, so that the usual
// submit, with a new key and a new run, need not ask the store. A Bloom filter: it may say
// "perhaps" of what it never saw (about 1 in 2,000 at ten thousand texts, always at millions),
// never "no" of what it did.
//
// Threads: safe from any. What was added before a call began is seen by it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

namespace athanor {

class SeenFilter {
 public:
  void Add(std::string_view text) {
    const uint64_t hash = std::hash<std::string_view>{}(text);
    for (const uint64_t bit : {hash % kBits, (hash >> 32) % kBits}) {
      words_[bit / 64].fetch_or(uint64_t{1} << bit % 64, std::memory_order_release);
    }
  }
  bool Perhaps(std::string_view text) const {
    const uint64_t hash = std::hash<std::string_view>{}(text);
    for (const uint64_t bit : {hash % kBits, (hash >> 32) % kBits}) {
      const uint64_t word = words_[bit / 64].load(std::memory_order_acquire);
      if ((word >> bit % 64 & 1) == 0) return false;
    }
    return true;
  }

 private:
  static constexpr uint64_t kBits = 1 << 20;
  std::array<std::atomic<uint64_t>, kBits / 64> words_{};
};

}  // namespace athanor
