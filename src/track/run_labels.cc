#include "track/run_labels.h"

namespace athanor {
namespace {

uint32_t TakeNumber(const char*& at) {
  uint32_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    value |= static_cast<uint32_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

void PutNumber(std::string& out, uint32_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

}  // namespace

void RunLabels::Iterator::Read() {
  if (at_ == end_) return;
  const char* at = at_;
  label_.key = TakeNumber(at);
  const uint32_t size = TakeNumber(at);
  label_.value = {at, size};
  next_ = at + size;
}

RunLabels::Was RunLabels::Put(uint32_t key, std::string_view value) {
  auto at = begin();
  while (at != end() && at->key < key) ++at;
  const bool known = at != end() && at->key == key;
  if (known && at->value == value) return Was::kSame;
  const auto from = static_cast<size_t>(at.at_ - bytes_.data());
  const size_t gone = known ? static_cast<size_t>(at.next_ - at.at_) : 0;
  std::string entry;
  PutNumber(entry, key);
  PutNumber(entry, static_cast<uint32_t>(value.size()));
  entry += value;
  bytes_.replace(from, gone, entry);
  return known ? Was::kChanged : Was::kNew;
}

bool RunLabels::Erase(uint32_t key) {
  for (auto at = begin(); at != end(); ++at) {
    if (at->key != key) continue;
    bytes_.erase(static_cast<size_t>(at.at_ - bytes_.data()),
                 static_cast<size_t>(at.next_ - at.at_));
    return true;
  }
  return false;
}

std::optional<std::string_view> RunLabels::Find(uint32_t key) const {
  for (auto at = begin(); at != end() && at->key <= key; ++at) {
    if (at->key == key) return at->value;
  }
  return std::nullopt;
}

}  // namespace athanor
