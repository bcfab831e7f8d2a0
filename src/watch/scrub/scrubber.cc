#include "watch/scrub/scrubber.h"

#include <algorithm>
#include <cstring>

#include "base/text/format.h"
#include "base/text/text.h"
#include "watch/scrub/encodings.h"

namespace athanor {
namespace {

uint16_t Pair(const char* at) {
  uint16_t pair = 0;
  std::memcpy(&pair, at, sizeof pair);
  return pair;
}

}  // namespace

Result<std::shared_ptr<const SecretPatterns>> SecretPatterns::Make(
    const std::vector<SecretValue>& secrets) {
  std::shared_ptr<SecretPatterns> made(new SecretPatterns);
  for (const SecretValue& secret : secrets) {
    const std::string_view value = Trim(secret.value);
    if (value.size() < kMinValue) {
      return Fail(Error{ErrorCode::kInvalid,
                        fmt::format("the value of secret {} is too short to be kept out of logs",
                                    Printable(secret.name)),
                        fmt::format("ath secret set {}   # with at least {} bytes",
                                    ShellQuote(secret.name), kMinValue)}
                      .Why(fmt::format("it has {} bytes", value.size()))
                      .Id({})
                      .Where({}));
    }
    const uint32_t marker = static_cast<uint32_t>(made->markers_.size());
    made->markers_.push_back(fmt::format("***{}***", Printable(secret.name)));
    for (std::string& form : EncodedForms(value)) made->Add(std::move(form), marker);
  }
  made->Index();
  return std::shared_ptr<const SecretPatterns>(std::move(made));
}

void SecretPatterns::Add(std::string bytes, uint32_t marker) {
  for (const Pattern& pattern : patterns_) {
    if (pattern.bytes == bytes) return;
  }
  patterns_.push_back({std::move(bytes), marker});
}

void SecretPatterns::Index() {
  if (patterns_.empty()) return;
  std::stable_sort(patterns_.begin(), patterns_.end(), [](const Pattern& a, const Pattern& b) {
    return a.bytes.size() > b.bytes.size();
  });
  longest_ = patterns_.front().bytes.size();
  shortest_ = std::min<size_t>(patterns_.back().bytes.size(), 256);
  shift_.assign(1u << 16, static_cast<uint8_t>(shortest_ - 1));
  for (uint32_t i = 0; i < patterns_.size(); ++i) {
    const std::string& bytes = patterns_[i].bytes;
    for (size_t at = 0; at + 2 <= shortest_; ++at) {
      uint8_t& shift = shift_[Pair(bytes.data() + at)];
      shift = std::min<uint8_t>(shift, static_cast<uint8_t>(shortest_ - 2 - at));
    }
    ends_[Pair(bytes.data() + shortest_ - 2)].push_back(i);
    begins_[static_cast<uint8_t>(bytes[0])].push_back(i);
  }
  // A name may contain the value of a secret; then its marker must not show it.
  for (std::string& marker : markers_) {
    for (const Pattern& pattern : patterns_) {
      if (marker.find(pattern.bytes) != std::string::npos) marker = "***";
    }
  }
}

size_t SecretPatterns::Find(std::string_view text, size_t from, size_t limit,
                            const Pattern*& found) const {
  const size_t window = shortest_;
  while (from < limit && from + window <= text.size()) {
    const uint16_t pair = Pair(text.data() + from + window - 2);
    if (const uint8_t shift = shift_[pair]; shift > 0) {
      from += shift;
      continue;
    }
    for (const uint32_t index : ends_.find(pair)->second) {
      const std::string& bytes = patterns_[index].bytes;
      if (bytes.size() <= text.size() - from &&
          std::memcmp(bytes.data(), text.data() + from, bytes.size()) == 0) {
        found = &patterns_[index];
        return from;
      }
    }
    ++from;
  }
  return kNone;
}

size_t SecretPatterns::OpenEnd(std::string_view text) const {
  size_t at = text.size() >= longest_ ? text.size() - longest_ + 1 : 0;
  for (; at < text.size(); ++at) {
    const size_t rest = text.size() - at;
    for (const uint32_t index : begins_[static_cast<uint8_t>(text[at])]) {
      const std::string& bytes = patterns_[index].bytes;
      if (bytes.size() <= rest) break;  // longest first: no later one is longer
      if (std::memcmp(bytes.data(), text.data() + at, rest) == 0) return at;
    }
  }
  return at;
}

Scrubber::Scrubber(std::shared_ptr<const SecretPatterns> patterns)
    : patterns_(std::move(patterns)) {}

std::string_view Scrubber::Feed(std::string_view bytes) {
  if (patterns_ == nullptr || patterns_->empty()) return bytes;
  std::string_view text = bytes;
  if (!held_.empty()) {
    work_.assign(held_).append(bytes);
    text = work_;
  }
  const size_t open = patterns_->OpenEnd(text);
  const std::string_view shown = Pass(text, open);
  // covered_ counts from the beginning of what is held now; text may be a view of work_, not of
  // held_.
  held_.assign(text.substr(open));
  return shown;
}

std::string_view Scrubber::Flush() {
  work_ = std::move(held_);
  held_.clear();
  const std::string_view shown = Pass(work_, work_.size());
  covered_ = 0;
  return shown;
}

// Decides about text[0, limit): no pattern that begins there is still open. Overlapping matches get
// one marker together, so that no part of either is left.
std::string_view Scrubber::Pass(std::string_view text, size_t limit) {
  out_.clear();
  size_t covered = covered_;  // up to here a marker replaces the text
  size_t from = 0;
  const SecretPatterns::Pattern* found = nullptr;
  size_t at = patterns_ == nullptr || text.empty() ? SecretPatterns::kNone
                                                   : patterns_->Find(text, 0, limit, found);
  if (at == SecretPatterns::kNone && covered == 0) return text.substr(0, limit);
  size_t shown = std::min(covered, limit);
  while (at != SecretPatterns::kNone) {
    if (at >= covered) {
      out_.append(text.substr(shown, at - shown)).append(patterns_->markers_[found->marker]);
      ++replaced_;
    }
    covered = std::max(covered, at + found->bytes.size());
    shown = std::min(covered, limit);
    from = at + 1;
    at = patterns_->Find(text, from, limit, found);
  }
  out_.append(text.substr(shown, limit - shown));
  covered_ = covered > limit ? covered - limit : 0;
  return out_;
}

}  // namespace athanor
