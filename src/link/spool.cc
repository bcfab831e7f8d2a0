#include "link/spool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/io/exact_io.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "link/spool_writer.h"

namespace athanor {
namespace {

using spool::SegmentHeader;

constexpr size_t kChunkBytes = 256 * 1024;
constexpr uint32_t kMaxSerial = 99'999'999;  // eight digits in the name
constexpr std::string_view kTemporaryPrefix = ".new-";
constexpr char kWriting[] = "write to the spool";

template <class T>
T Load(std::string_view bytes, size_t offset = 0) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Allocates and touches every byte, so that a full disk is an error here and not a SIGBUS in the
// process that maps the file.
Status FillWithZeros(int fd, size_t size) {
  if (const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(size)); error != 0) {
    return FailErrno("allocate a spool file", error);
  }
  const std::string zeros(std::min(size, kChunkBytes), '\0');
  for (size_t at = 0; at < size; at += zeros.size()) {
    const size_t piece = std::min(zeros.size(), size - at);
    ATHANOR_CHECK_OK(WriteExactly(fd, zeros.data(), piece, at, kWriting));
  }
  return Ok();
}

// A file of `size` zeros after `head`, which gets `name` only when it is complete.
Result<UniqueFd> MakeWhole(int dir_fd, const std::string& name, std::string_view head, size_t size,
                           mode_t mode) {
  const std::string temporary = std::string(kTemporaryPrefix) + name;
  ATHANOR_TRY(UniqueFd fd, OpenBeneath(dir_fd, temporary, O_RDWR | O_CREAT | O_EXCL, mode));
  Status status = FillWithZeros(fd.get(), size);
  if (status.ok()) status = WriteExactly(fd.get(), head.data(), head.size(), 0, kWriting);
  // The umask must not decide whether the script, perhaps another user, may write.
  if (status.ok() && ::fchmod(fd.get(), mode) != 0) status = FailErrno("chmod a spool file", errno);
  if (status.ok() && ::renameat(dir_fd, temporary.c_str(), dir_fd, name.c_str()) != 0) {
    status = FailErrno(fmt::format("rename {}", name), errno);
  }
  if (!status.ok()) {
    ::unlinkat(dir_fd, temporary.c_str(), 0);
    return Fail(status.error());
  }
  return fd;
}

bool IsOurs(const SegmentHeader& header, uint32_t serial, uint64_t file_bytes) {
  return std::memcmp(header.magic, spool::kSegmentMagic, sizeof header.magic) == 0 &&
         header.serial == serial && header.state <= spool::kClosed &&
         file_bytes <= spool::kMaxSegmentBytes &&
         file_bytes == sizeof header + uint64_t{header.capacity};
}

// Called only for a claimed segment: its writer has held the lock since before it wrote that state,
// so if the lock can be taken, the writer is gone.
bool WriterIsGone(int fd) {
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) return false;
  ::flock(fd, LOCK_UN);
  return true;
}

}  // namespace

SpoolParser::Stop SpoolParser::Parse(std::string_view bytes, SpoolBatch& batch, size_t& used) {
  used = 0;
  while (used < bytes.size()) {
    const std::string_view rest = bytes.substr(used);
    if (rest.size() < sizeof(spool::RecordHead)) return Stop::kCut;
    const auto head = Load<spool::RecordHead>(rest);
    if (head.length < sizeof head || head.length % 8 != 0 || head.length > spool::kMaxRecordBytes) {
      return Stop::kBad;
    }
    if (head.length > rest.size()) return Stop::kCut;
    const auto body = rest.substr(sizeof head, head.length - sizeof head);
    if (!ParseRecord(head.kind, body, batch)) return Stop::kBad;
    used += head.length;
  }
  return Stop::kEnd;
}

bool SpoolParser::ParseRecord(uint32_t kind, std::string_view body, SpoolBatch& batch) {
  switch (kind) {
    case spool::kName:
      return DefineName(body);
    case spool::kPoint: {
      if (body.size() != sizeof(spool::PointBody)) return false;
      const auto point = Load<spool::PointBody>(body);
      const auto name = names_.find(point.name_id);
      if (name == names_.end()) return false;
      std::optional<int64_t> step;
      if ((point.flags & spool::kHasStep) != 0) step = point.step;
      batch.points.push_back({name->second, ++points_, step, point.wall_ns, point.value});
      return true;
    }
    case spool::kMark: {
      if (body.size() != sizeof(spool::MarkBody)) return false;
      const auto mark = Load<spool::MarkBody>(body);
      batch.marks.push_back({mark.code, mark.wall_ns});
      return true;
    }
    case spool::kProgress: {
      if (body.size() != sizeof(spool::ProgressBody)) return false;
      const auto progress = Load<spool::ProgressBody>(body);
      batch.progress.push_back({progress.done, progress.total, progress.wall_ns});
      return true;
    }
    case spool::kCheckpoint: {
      if (body.size() != sizeof(spool::CheckpointBody)) return false;
      const auto saved = Load<spool::CheckpointBody>(body);
      batch.checkpoints.push_back({saved.step, saved.save_ns, saved.wall_ns});
      return true;
    }
    default:  // from a newer package; its length is all we need
      ++unknown_;
      return true;
  }
}

bool SpoolParser::DefineName(std::string_view body) {
  if (body.size() < sizeof(spool::NameBody)) return false;
  const auto head = Load<spool::NameBody>(body);
  if (head.name_length == 0 || head.name_length > spool::kMaxNameBytes) return false;
  if (body.size() + sizeof(spool::RecordHead) != spool::NameBytes(head.name_length)) return false;
  const auto name = body.substr(sizeof head, head.name_length);
  // Points refer to the text, so a second definition must not change it.
  return IsUtf8(name) && names_.try_emplace(head.name_id, name).first->second == name;
}

Result<SpoolSegments> SpoolSegments::Open(const std::string& dir, Options options) {
  ATHANOR_CHECK_OK(MakeDirs(dir));
  ATHANOR_TRY(UniqueFd dir_fd, OpenDir(dir));
  return Open(std::move(dir_fd), options);
}

Result<SpoolSegments> SpoolSegments::Open(UniqueFd dir, Options options) {
  options.segment_bytes = std::clamp(options.segment_bytes, size_t{4096}, spool::kMaxSegmentBytes);
  SpoolSegments segments;
  segments.dir_fd_ = std::move(dir);
  segments.options_ = options;
  ATHANOR_CHECK_OK(segments.Adopt());
  (void)segments.TopUp();  // reported again by the first Poll
  return segments;
}

Status SpoolSegments::Adopt() {
  ATHANOR_TRY(const std::vector<std::string> names, ListDirAt(dir_fd_.get()));
  for (const std::string& name : names) {
    if (StartsWith(name, std::string(kTemporaryPrefix) + "seg-") && options_.spare > 0) {
      ::unlinkat(dir_fd_.get(), name.c_str(), 0);
    }
    const uint32_t serial = spool::SerialOf(name);
    if (serial == 0) continue;
    struct stat about = {};
    if (::fstatat(dir_fd_.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) continue;
    Segment& segment = segments_[serial];
    segment.bytes = static_cast<uint64_t>(about.st_size);
    SegmentHeader header;
    auto fd = OpenBeneath(dir_fd_.get(), name, O_RDONLY | O_NONBLOCK);
    segment.free =
        fd && ReadExactly(fd->get(), &header, sizeof header, 0) && header.state == spool::kFree;
    last_serial_ = std::max(last_serial_, serial);
  }
  return Ok();
}

Status SpoolSegments::TopUp() {
  size_t free = 0;
  uint64_t bytes = 0;
  for (const auto& [serial, segment] : segments_) {
    free += segment.free ? 1 : 0;
    bytes += segment.bytes;
  }
  for (; free < options_.spare && bytes + options_.segment_bytes <= options_.budget_bytes; ++free) {
    ATHANOR_CHECK_OK(Create(last_serial_ + 1));
    bytes += options_.segment_bytes;
  }
  return Ok();
}

Status SpoolSegments::Create(uint32_t serial) {
  if (serial > kMaxSerial) return Fail(ErrorCode::kExhausted, "the spool has no serial left");
  SegmentHeader header = {};
  std::memcpy(header.magic, spool::kSegmentMagic, sizeof header.magic);
  header.serial = serial;
  header.capacity = static_cast<uint32_t>(options_.segment_bytes - sizeof header);
  ATHANOR_TRY(const UniqueFd made,
              MakeWhole(dir_fd_.get(), spool::SegmentName(serial),
                        {reinterpret_cast<const char*>(&header), sizeof header},
                        options_.segment_bytes, options_.mode));
  last_serial_ = serial;
  Segment& segment = segments_[serial];
  segment.bytes = options_.segment_bytes;
  segment.free = true;
  return Ok();
}

Status SpoolSegments::Poll(const Callback& callback, size_t max_points) {
  // From the highest serial down: a writer that is seen in one segment had closed its earlier one
  // before, so the earlier one is then seen completely.
  for (auto at = segments_.rbegin(); at != segments_.rend(); ++at) {
    if (!at->second.done && !at->second.gone) Look(at->first, at->second);
  }
  size_t left = max_points;
  for (auto& [serial, segment] : segments_) {
    if (left == 0) break;
    if (!segment.done && !segment.free) Read(serial, segment, callback, left);
  }
  RemoveFinished();
  return TopUp();
}

// Opened for each use: hundreds of segments may wait while the server is away.
Result<UniqueFd> SpoolSegments::OpenSegment(uint32_t serial, Segment& segment) {
  auto fd = OpenBeneath(dir_fd_.get(), spool::SegmentName(serial), O_RDONLY | O_NONBLOCK);
  if (!fd && fd.error().code == ErrorCode::kNotFound) {
    segment.bytes = 0;
    GiveUp(segment, counts_.lost_segments);
  } else if (!fd && fd.error().code == ErrorCode::kDenied) {
    GiveUp(segment, counts_.corrupt_segments);  // it is a link now
  }
  return fd;  // anything else, such as no descriptors left, may be temporary
}

void SpoolSegments::Look(uint32_t serial, Segment& segment) {
  const auto fd = OpenSegment(serial, segment);
  if (!fd) return;
  struct stat about = {};
  SegmentHeader header;
  if (::fstat(fd->get(), &about) != 0 || !S_ISREG(about.st_mode) ||
      !ReadExactly(fd->get(), &header, sizeof header, 0) ||
      !IsOurs(header, serial, static_cast<uint64_t>(about.st_size))) {
    return GiveUp(segment, counts_.corrupt_segments);
  }
  segment.bytes = static_cast<uint64_t>(about.st_size);
  segment.free = header.state == spool::kFree;
  if (segment.free) return;
  segment.gone = header.state == spool::kClosed || WriterIsGone(fd->get());
  // Read again, now that `gone` is known: everything from before the end is then in it.
  if (!ReadExactly(fd->get(), &header, sizeof header, 0)) {
    return GiveUp(segment, counts_.corrupt_segments);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  counts_.dropped += header.dropped - segment.dropped;
  segment.dropped = header.dropped;
  segment.writer_pid = header.writer_pid;
  segment.committed = header.committed;
}

void SpoolSegments::Read(uint32_t serial, Segment& segment, const Callback& callback,
                         size_t& left) {
  Cursor& taken = segment.taken;
  if (taken.position != segment.committed) {
    const auto fd = OpenSegment(serial, segment);
    if (!fd) return;
    const uint64_t unknown = taken.parser.unknown();
    const uint64_t points = taken.parser.points();
    bool sense = true;
    if (segment.ahead && taken.position < segment.ahead->position) {
      sense = ReadRecords(fd->get(), serial, segment, taken, segment.ahead->position, true,
                          callback, left);
    }
    if (sense && left > 0) {
      sense =
          ReadRecords(fd->get(), serial, segment, taken, segment.committed, false, callback, left);
    }
    if (segment.ahead && taken.position >= segment.ahead->position) segment.ahead.reset();
    counts_.points += taken.parser.points() - points;
    counts_.unknown_records += taken.parser.unknown() - unknown;
    if (!sense) {
      // Read twice before judging a live writer: pread does not guarantee that `committed` was
      // copied in one piece.
      if (segment.gone || segment.suspect == taken.position) {
        return GiveUp(segment, counts_.corrupt_segments);
      }
      segment.suspect = taken.position;
      return;
    }
  }
  segment.done = segment.gone && taken.position == segment.committed;
}

void SpoolSegments::LookAhead(const Callback& callback) {
  for (auto& [serial, segment] : segments_) {
    if (segment.done || segment.free || segment.ahead_bad) continue;
    if (!segment.ahead) {
      if (segment.taken.position == segment.committed) continue;
      segment.ahead = segment.taken;
    }
    if (segment.ahead->position == segment.committed) continue;
    const auto fd = OpenSegment(serial, segment);
    if (!fd) continue;
    size_t left = SIZE_MAX;
    // Only Poll judges invalid data.
    segment.ahead_bad = !ReadRecords(fd->get(), serial, segment, *segment.ahead, segment.committed,
                                     false, callback, left);
  }
}

bool SpoolSegments::ReadRecords(int fd, uint32_t serial, const Segment& segment, Cursor& at,
                                uint64_t end, bool seen, const Callback& callback, size_t& left) {
  if (end > segment.bytes - sizeof(SegmentHeader) || end < at.position) return false;
  SpoolBatch batch{.serial = serial,
                   .writer_pid = segment.writer_pid,
                   .dropped = segment.dropped,
                   .seen = seen,
                   .points = {},
                   .marks = {},
                   .progress = {},
                   .checkpoints = {}};
  std::string bytes;
  while (at.position < end && left > 0) {
    bytes.resize(std::min<uint64_t>(kChunkBytes, end - at.position));
    if (!ReadExactly(fd, bytes.data(), bytes.size(), sizeof(SegmentHeader) + at.position)) {
      return false;
    }
    batch.points.clear();
    batch.marks.clear();
    batch.progress.clear();
    batch.checkpoints.clear();
    size_t used = 0;
    const SpoolParser::Stop stop = at.parser.Parse(bytes, batch, used);
    const bool last = at.position + bytes.size() == end;
    at.position += used;
    left -= std::min(left, batch.points.size());
    if (!batch.points.empty() || !batch.marks.empty() || !batch.progress.empty() ||
        !batch.checkpoints.empty()) {
      callback(batch);
    }
    if (stop == SpoolParser::Stop::kBad || (stop == SpoolParser::Stop::kCut && last)) return false;
  }
  return true;
}

void SpoolSegments::GiveUp(Segment& segment, uint64_t& counter) {
  ++counter;
  segment.free = false;
  segment.done = true;
}

void SpoolSegments::Acknowledge(uint32_t serial, uint64_t seq) {
  const auto found = segments_.find(serial);
  if (found == segments_.end()) return;
  found->second.acknowledged = std::max(found->second.acknowledged, seq);
  RemoveFinished();
}

void SpoolSegments::RemoveFinished() {
  if (options_.spare == 0) return;
  for (auto at = segments_.begin(); at != segments_.end();) {
    const Segment& segment = at->second;
    // The last one stays: its name tells a restarted agent which serials are used up.
    if (!segment.done || segment.acknowledged < segment.taken.parser.points() ||
        at->first == last_serial_) {
      ++at;
      continue;
    }
    ::unlinkat(dir_fd_.get(), spool::SegmentName(at->first).c_str(), 0);
    at = segments_.erase(at);
  }
}

bool SpoolSegments::Drained() const {
  return std::all_of(segments_.begin(), segments_.end(),
                     [](const auto& entry) { return entry.second.free || entry.second.done; });
}

Result<ControlPage> ControlPage::Open(const std::string& dir, mode_t mode) {
  ATHANOR_CHECK_OK(MakeDirs(dir));
  ATHANOR_TRY(const UniqueFd dir_fd, OpenDir(dir));
  return Open(dir_fd.get(), mode);
}

Result<ControlPage> ControlPage::Open(int dir_fd, mode_t mode) {
  ControlPage page;
  spool::ControlBytes bytes = {};
  if (auto fd = OpenBeneath(dir_fd, spool::kControlName, O_RDWR | O_NONBLOCK)) {
    struct stat about = {};
    if (::fstat(fd->get(), &about) == 0 && about.st_size == ssize_t{spool::kControlBytes} &&
        ReadExactly(fd->get(), &bytes, sizeof bytes, 0) &&
        std::memcmp(bytes.magic, spool::kControlMagic, sizeof bytes.magic) == 0) {
      page.fd_ = std::move(*fd);
      page.seqlock_ = bytes.seqlock;
      return page;
    }
  }
  std::memcpy(bytes.magic, spool::kControlMagic, sizeof bytes.magic);
  bytes.seqlock = bytes.stop = 0;
  bytes.deadline_unix_ms = 0;
  bytes.stop_at_step = spool::kNoStopStep;
  std::memset(bytes.cause, 0, sizeof bytes.cause);
  bytes.checkpoint_every_ms = 0;
  bytes.checkpoint_now = bytes.capture_now = 0;
  ::unlinkat(dir_fd, (std::string(kTemporaryPrefix) + spool::kControlName).c_str(), 0);
  ATHANOR_TRY(page.fd_, MakeWhole(dir_fd, spool::kControlName,
                                  {reinterpret_cast<const char*>(&bytes), sizeof bytes},
                                  spool::kControlBytes, mode));
  return page;
}

Status ControlPage::Set(const ControlState& state) {
  spool::ControlBytes bytes = {};
  std::memcpy(bytes.magic, spool::kControlMagic, sizeof bytes.magic);
  bytes.stop = state.stop ? 1 : 0;
  bytes.deadline_unix_ms = state.deadline_unix_ms;
  bytes.stop_at_step = state.stop_at_step;
  state.cause.copy(bytes.cause, sizeof bytes.cause - 1);
  bytes.checkpoint_every_ms = state.checkpoint_every_ms;
  bytes.checkpoint_now = state.checkpoint_now;
  bytes.capture_now = state.capture_now;
  constexpr size_t kLock = offsetof(spool::ControlBytes, seqlock);
  constexpr size_t kBody = offsetof(spool::ControlBytes, stop);
  bytes.seqlock = seqlock_ | 1;
  ATHANOR_CHECK_OK(WriteExactly(fd_.get(), &bytes.seqlock, sizeof bytes.seqlock, kLock, kWriting));
  ATHANOR_CHECK_OK(WriteExactly(fd_.get(), reinterpret_cast<const char*>(&bytes) + kBody,
                                sizeof bytes - kBody, kBody, kWriting));
  seqlock_ = bytes.seqlock + 1;
  return WriteExactly(fd_.get(), &seqlock_, sizeof seqlock_, kLock, kWriting);
}

Result<ControlState> ReadControl(const std::string& dir) {
  ATHANOR_TRY(const UniqueFd dir_fd, OpenDir(dir));
  return ReadControl(dir_fd.get());
}

Result<ControlState> ReadControl(int dir_fd) {
  // Not blocking: the script may have put a FIFO there.
  ATHANOR_TRY(const UniqueFd fd, OpenBeneath(dir_fd, spool::kControlName, O_RDONLY | O_NONBLOCK));
  for (int tries = 0; tries < 100; ++tries) {
    spool::ControlBytes before;
    spool::ControlBytes after;
    if (!ReadExactly(fd.get(), &before, sizeof before, 0) ||
        std::memcmp(before.magic, spool::kControlMagic, sizeof before.magic) != 0) {
      return Fail(ErrorCode::kCorrupt, "the spool has no control page");
    }
    if (!ReadExactly(fd.get(), &after, sizeof after, 0)) continue;
    if (before.seqlock % 2 != 0 || std::memcmp(&before, &after, sizeof before) != 0) continue;
    return ControlState{before.stop != 0,
                        before.deadline_unix_ms,
                        before.stop_at_step,
                        std::string(before.cause, ::strnlen(before.cause, sizeof before.cause)),
                        before.checkpoint_every_ms,
                        before.checkpoint_now,
                        before.capture_now};
  }
  return Fail(ErrorCode::kUnavailable, "the control page is being written");
}

}  // namespace athanor
