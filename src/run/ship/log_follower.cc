#include "run/ship/log_follower.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

namespace athanor {

LogFollower::LogFollower(std::string path, std::shared_ptr<const SecretPatterns> patterns,
                         Seen seen)
    : path_(std::move(path)),
      patterns_(std::move(patterns)),
      seen_(std::move(seen)),
      scrubber_(patterns_) {}

bool LogFollower::Read(size_t most, Millis now) {
  if (!fd_) {
    fd_.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd_) {
      at_end_ = true;
      return false;
    }
  }
  bool any = false;
  at_end_ = false;
  char buffer[64 << 10];
  while (pending_.size() < most) {
    ssize_t n = ::pread(fd_.get(), buffer, sizeof buffer, static_cast<off_t>(raw_offset_));
    if (n <= 0) {
      at_end_ = true;
      break;
    }
    raw_offset_ += static_cast<uint64_t>(n);
    last_byte_ = now;
    any = true;
    Take(scrubber_.Feed({buffer, static_cast<size_t>(n)}));
  }
  if (ahead_ && ahead_->raw_offset <= raw_offset_) ahead_.reset();
  return any;
}

uint64_t LogFollower::unread() const {
  struct stat info {};
  if (!fd_ || ::fstat(fd_.get(), &info) != 0) return 0;
  return static_cast<uint64_t>(info.st_size) - std::min<uint64_t>(info.st_size, raw_offset_);
}

void LogFollower::LookAhead(size_t most, const Show& show) {
  if (!fd_) return;
  char buffer[64 << 10];
  for (size_t looked = 0; looked < most;) {
    const uint64_t from = ahead_ ? ahead_->raw_offset : raw_offset_;
    const ssize_t n = ::pread(fd_.get(), buffer, sizeof buffer, static_cast<off_t>(from));
    if (n <= 0) return;
    if (!ahead_) ahead_ = Ahead{scrubber_, raw_offset_, produced_};
    looked += static_cast<size_t>(n);
    ahead_->raw_offset += static_cast<uint64_t>(n);
    const auto made = ahead_->scrubber.Feed({buffer, static_cast<size_t>(n)});
    const uint64_t start = ahead_->produced;
    ahead_->produced += made.size();
    const uint64_t known = std::max(seen_offset_, shown_offset_);
    if (ahead_->produced <= known) continue;
    show(made.substr(known > start ? known - start : 0));
    shown_offset_ = ahead_->produced;
  }
}

void LogFollower::Take(std::string_view made) {
  uint64_t start = produced_;
  produced_ += made.size();
  if (produced_ > seen_offset_) {
    // After a restart from the beginning, the first part was seen before.
    auto fresh = made.substr(seen_offset_ > start ? seen_offset_ - start : 0);
    const uint64_t first = produced_ - fresh.size();
    const auto shown =
        std::min<uint64_t>(shown_offset_ > first ? shown_offset_ - first : 0, fresh.size());
    if (shown > 0) seen_(fresh.substr(0, shown), true);
    if (shown < fresh.size()) seen_(fresh.substr(shown), false);
    seen_offset_ = produced_;
  }
  auto skipped = std::min<uint64_t>(skip_, made.size());
  skip_ -= skipped;
  made.remove_prefix(skipped);
  pending_.append(made);
}

std::string_view LogFollower::Sendable(Millis now, Millis patience, bool all) const {
  if (all || now - last_byte_ >= patience) return pending_;
  auto end = pending_.rfind('\n');
  return std::string_view(pending_).substr(0, end == std::string::npos ? 0 : end + 1);
}

void LogFollower::Acknowledge(uint64_t length) {
  if (length < acknowledged_) return StartAnew();
  uint64_t taken = length - acknowledged_;
  uint64_t here = std::min<uint64_t>(taken, pending_.size());
  pending_.erase(0, here);
  acknowledged_ = length;
  skip_ += taken - here;
}

// The server has less than it once acknowledged (its disk was restored): the raw file still exists,
// so the stream is made again from its start.
void LogFollower::StartAnew() {
  scrubber_ = Scrubber(patterns_);
  raw_offset_ = 0;
  produced_ = 0;
  acknowledged_ = 0;
  skip_ = 0;
  pending_.clear();
  at_end_ = false;
  finished_ = false;
}

void LogFollower::Finish() {
  if (finished_ || !at_end_ || unread() > 0) return;
  finished_ = true;
  Take(scrubber_.Flush());
}

bool LogFollower::drained() const { return finished_ && at_end_ && pending_.empty(); }

}  // namespace athanor
