#include "run/events/event_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/io/files.h"
#include "eventfile/event_reader.h"
#include "eventfile/tfrecord.h"

namespace athanor {

Result<EventCopy> EventCopy::Open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) return FailErrno("open " + path, errno);
  UniqueFd again(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!again) return FailErrno("open " + path, errno);
  EventCopy copy(std::move(fd));
  EventReader reader(std::move(again));
  ATHANOR_TRY([[maybe_unused]] const bool more,
              reader.Poll([&copy](uint64_t, std::string_view) { ++copy.passed_; }));
  copy.size_ = reader.offset();
  if (::ftruncate(copy.fd_.get(), static_cast<off_t>(copy.size_)) != 0) {
    return FailErrno("cut " + path, errno);
  }
  return copy;
}

void EventCopy::Add(std::string_view payload) {
  if (passed_ > 0) {
    --passed_;
    return;
  }
  AppendTfRecord(buffer_, payload);
}

Status EventCopy::Flush() {
  while (!buffer_.empty()) {
    const auto written =
        ::pwrite(fd_.get(), buffer_.data(), buffer_.size(), static_cast<off_t>(size_));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FailErrno("write a copy of an event file", errno);
    size_ += static_cast<uint64_t>(written);
    buffer_.erase(0, static_cast<size_t>(written));
  }
  return Ok();
}

}  // namespace athanor
