// Params or tags of one run, packed: a million runs have ten million of them, and most are a few
// bytes long. Keys are numbers (RunBook::KeyName has the words) and come in their order.
//
// Threads: its owner guards it. A view of a value is valid until the next change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace athanor {

struct RunLabel {
  uint32_t key = 0;
  std::string_view value;
};

class RunLabels {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = RunLabel;
    using difference_type = std::ptrdiff_t;
    using pointer = const RunLabel*;
    using reference = RunLabel;

    Iterator() = default;
    RunLabel operator*() const { return label_; }
    const RunLabel* operator->() const { return &label_; }
    Iterator& operator++() {
      at_ = next_;
      Read();
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    friend class RunLabels;
    Iterator(const char* at, const char* end) : at_(at), end_(end) { Read(); }
    void Read();

    const char* at_ = nullptr;
    const char* next_ = nullptr;
    const char* end_ = nullptr;
    RunLabel label_;
  };

  enum class Was { kNew, kChanged, kSame };
  Was Put(uint32_t key, std::string_view value);
  bool Erase(uint32_t key);  // false: there was none
  std::optional<std::string_view> Find(uint32_t key) const;
  bool empty() const { return bytes_.empty(); }
  void Fit() { bytes_.shrink_to_fit(); }

  Iterator begin() const { return {bytes_.data(), bytes_.data() + bytes_.size()}; }
  Iterator end() const {
    const char* end = bytes_.data() + bytes_.size();
    return {end, end};
  }

 private:
  std::string bytes_;  // of each: key, size (both as varints), value
};

}  // namespace athanor
