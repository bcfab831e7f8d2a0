#include "eventfile/event_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace athanor {
namespace {

constexpr size_t kChunk = 256u << 10;
constexpr size_t kHead = 12;
constexpr size_t kMaxZeros = 1u << 20;

}  // namespace

void EventReader::Damaged(uint64_t bytes) {
  if (!damage_.empty() && damage_.back().offset + damage_.back().bytes == offset_) {
    damage_.back().bytes += bytes;
  } else {
    damage_.push_back({offset_, bytes});
  }
}

size_t EventReader::PassDamage(std::string_view rest) {
  auto passed = FindTfRecord(rest, 1);
  if (passed == std::string_view::npos) {
    // The last bytes may begin a record; so may zeros at the end, when more is written.
    passed = rest.size() - std::min(rest.size(), kHead - 1);
    const auto zeros = rest.find_last_not_of('\0') + 1;  // 0 when there is nothing else
    if (rest.size() - zeros <= kMaxZeros) passed = std::min(passed, zeros);
  }
  if (passed > 0) Damaged(passed);
  return passed;
}

Result<bool> EventReader::Poll(
    const std::function<void(uint64_t offset, std::string_view payload)>& on_record,
    uint64_t most) {
  uint64_t taken = 0;
  while (taken < most) {
    if (buffer_.size() < held_ + kChunk) buffer_.resize(held_ + kChunk);
    const auto n = ::pread(fd_.get(), buffer_.data() + held_, buffer_.size() - held_,
                           static_cast<off_t>(offset_ + held_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("read an event file", errno);
    if (n == 0) return false;
    held_ += static_cast<size_t>(n);
    taken += static_cast<uint64_t>(n);
    HandOut(on_record);
  }
  return true;
}

void EventReader::HandOut(
    const std::function<void(uint64_t offset, std::string_view payload)>& on_record) {
  std::string_view rest(buffer_.data(), held_);
  for (bool more = true; more;) {
    const auto record = ReadTfRecord(rest);
    size_t passed = 0;
    switch (record.state) {
      case TfRecord::State::kWhole:
        on_record(offset_, record.payload);
        passed = record.size;
        break;
      case TfRecord::State::kBadData:
        passed = record.size;
        Damaged(passed);
        break;
      case TfRecord::State::kBadLength:
        passed = PassDamage(rest);
        break;
      case TfRecord::State::kTorn:
        if (record.size > longest_) {
          offset_ += record.size;
          held_ = 0;
          return;
        }
        // A long record is read in one piece.
        if (record.size > buffer_.size()) wanted_ = record.size;
        break;
    }
    offset_ += passed;
    rest.remove_prefix(passed);
    more = passed > 0;
  }
  std::memmove(buffer_.data(), rest.data(), rest.size());
  held_ = rest.size();
  if (wanted_ > buffer_.size()) buffer_.resize(wanted_);
  wanted_ = 0;
}

}  // namespace athanor
