// Removes the values of secrets from a byte stream. It finds the value itself (without the white
// space at its ends), its base64 in either alphabet at any of the three alignments, its usual URL
// encodings, and its form inside a JSON string; each is replaced by ***NAME***. Everything else
// passes byte for byte. Not found: a value that was hashed, compressed, reversed or printed letter
// by letter, or base64 that was wrapped in the middle of the value.
//
// SecretPatterns is immutable and may be shared by threads; a Scrubber belongs to
// one stream of one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace athanor {

struct SecretValue {
  std::string name;
  std::string value;
};

class SecretPatterns {
 public:
  static constexpr size_t kMinValue = 6;

  // kInvalid: a value has fewer than kMinValue bytes; the error names the secret only.
  static Result<std::shared_ptr<const SecretPatterns>> Make(
      const std::vector<SecretValue>& secrets);

  bool empty() const { return patterns_.empty(); }
  size_t longest() const { return longest_; }

 private:
  friend class Scrubber;
  struct Pattern {
    std::string bytes;
    uint32_t marker;
  };
  static constexpr size_t kNone = SIZE_MAX;

  SecretPatterns() = default;
  void Add(std::string bytes, uint32_t marker);
  void Index();
  // The first position at or after `from` and before `limit` where a pattern begins and is within
  // `text`; the longest one there. kNone if there is none.
  size_t Find(std::string_view text, size_t from, size_t limit, const Pattern*& found) const;
  // The first position from which `text` could continue to a pattern; its size if none.
  size_t OpenEnd(std::string_view text) const;

  std::vector<Pattern> patterns_;
  std::vector<std::string> markers_;
  size_t shortest_ = 0;
  size_t longest_ = 0;
  // Wu and Manber: how far a window of `shortest_` bytes may move on, by its last two bytes.
  std::vector<uint8_t> shift_;
  // For windows that may not: patterns whose window ends so, longest first.
  std::unordered_map<uint16_t, std::vector<uint32_t>> ends_;
  std::array<std::vector<uint32_t>, 256> begins_;
};

class Scrubber {
 public:
  // With no patterns, Feed returns its argument and costs nothing.
  explicit Scrubber(std::shared_ptr<const SecretPatterns> patterns);

  // What may be shown after these bytes. Only an end that may be the beginning of a pattern is held
  // back, at most longest() - 1 bytes. The result is a view of `bytes` or of this object and is
  // valid until the next call.
  std::string_view Feed(std::string_view bytes);
  // The stream has ended: what was held back.
  std::string_view Flush();

  uint64_t replaced() const { return replaced_; }
  size_t held() const { return held_.size(); }

 private:
  std::string_view Pass(std::string_view text, size_t limit);

  std::shared_ptr<const SecretPatterns> patterns_;
  std::string held_;
  size_t covered_ = 0;  // bytes at the beginning of held_ that a marker already replaces
  std::string work_;
  std::string out_;
  uint64_t replaced_ = 0;
};

}  // namespace athanor
