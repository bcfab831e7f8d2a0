// SpoolWriter appends records to one rank's spool from inside the training process: it maps a
// segment that the agent prepared, and copies. It creates no file, grows none, never waits for a
// lock, and tries to claim a segment at most once per millisecond among at most 64 files at a time.
// Records without room are counted and dropped; the count is in the next segment that it claims.
//
// Threads: none; the caller serialises (the GIL does). After fork() the child calls
// ForgetAfterFork() before anything else, and then claims its own segment. Errors: it returns none.
// Header only and independent of the project, so that the Python package compiles without it.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "link/spool_layout.h"

namespace athanor::spool {

inline std::string SegmentName(uint32_t serial) {
  std::string digits = std::to_string(serial);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return "seg-" + digits + ".spool";
}

// 0 if `name` is not the name of a segment.
inline uint32_t SerialOf(std::string_view name) {
  if (name.size() != 18 || name.substr(0, 4) != "seg-" || name.substr(12) != ".spool") return 0;
  uint32_t serial = 0;
  for (char c : name.substr(4, 8)) {
    if (c < '0' || c > '9') return 0;
    serial = serial * 10 + static_cast<uint32_t>(c - '0');
  }
  return serial;
}

class SpoolWriter {
 public:
  explicit SpoolWriter(std::string dir) : dir_(std::move(dir)) {}
  SpoolWriter(const SpoolWriter&) = delete;
  SpoolWriter& operator=(const SpoolWriter&) = delete;
  ~SpoolWriter() { Close(); }

  // Changes with every segment; name ids that the caller remembers are valid for one value.
  uint64_t generation() const { return generation_; }
  uint64_t dropped() const { return dropped_total_; }
  uint64_t written() const { return written_; }

  // A point under a name that this segment already defines as `name_id` (from an
  // earlier AppendNamed in this generation). False: it needs AppendNamed.
  bool Append(uint32_t name_id, uint32_t flags, int64_t step, int64_t wall_ns, double value) {
    if (capacity_ - used_ < kPointBytes) return false;
    PutPoint(name_id, flags, step, wall_ns, value);
    Commit();
    return true;
  }

  // Defines `name` and appends the point after it, in a new segment if they do not fit together.
  // Returns the name's id, or 0 if the point was dropped. `name` has 1 to kMaxNameBytes bytes of
  // UTF-8.
  uint32_t AppendNamed(std::string_view name, uint32_t flags, int64_t step, int64_t wall_ns,
                       double value) {
    if (!Reserve(NameBytes(name.size()) + kPointBytes, wall_ns)) return 0;
    const uint32_t id = ++names_;
    PutHead(NameBytes(name.size()), kName);
    const NameBody body{id, static_cast<uint32_t>(name.size())};
    std::memcpy(records_ + used_, &body, sizeof body);
    std::memcpy(records_ + used_ + sizeof body, name.data(), name.size());
    used_ += NameBytes(name.size()) - sizeof(RecordHead);
    PutPoint(id, flags, step, wall_ns, value);
    Commit();
    return id;
  }

  bool AppendMark(uint32_t code, int64_t wall_ns) {
    return AppendBody(kMark, MarkBody{code, 0, wall_ns}, wall_ns);
  }
  bool AppendProgress(int64_t done, int64_t total, int64_t wall_ns) {
    return AppendBody(kProgress, ProgressBody{done, total, wall_ns}, wall_ns);
  }
  bool AppendCheckpoint(int64_t step, int64_t save_ns, int64_t wall_ns) {
    return AppendBody(kCheckpoint, CheckpointBody{step, save_ns, wall_ns}, wall_ns);
  }

  // Marks the segment closed and releases it.
  void Close() {
    if (header_ == nullptr) return;
    std::atomic_ref(header_->state).store(kClosed, std::memory_order_release);
    Release();
  }

  // In a forked child: the segment, and the drops before it, still belong to the parent.
  // Async-signal-safe. Closing matters: an open copy would keep the parent's lock alive.
  void ForgetAfterFork() {
    Release();
    dropped_pending_ = 0;
  }

 private:
  static constexpr int64_t kRetryNs = 1'000'000;
  static constexpr size_t kTriesAtOnce = 64;

  void Release() {
    if (header_ != nullptr) {
      ::munmap(header_, sizeof(SegmentHeader) + capacity_);
      ::close(fd_);
    }
    header_ = nullptr;
    records_ = nullptr;
    fd_ = -1;
    capacity_ = used_ = 0;
    ++generation_;
  }

  void PutHead(size_t length, uint32_t kind) {
    const RecordHead head{static_cast<uint32_t>(length), kind};
    std::memcpy(records_ + used_, &head, sizeof head);
    used_ += sizeof head;
  }

  void PutPoint(uint32_t id, uint32_t flags, int64_t step, int64_t wall_ns, double value) {
    PutHead(kPointBytes, kPoint);
    const PointBody body{id, flags, step, wall_ns, value};
    std::memcpy(records_ + used_, &body, sizeof body);
    used_ += sizeof body;
  }

  template <class Body>
  bool AppendBody(uint32_t kind, const Body& body, int64_t now_ns) {
    if (!Reserve(sizeof(RecordHead) + sizeof body, now_ns)) return false;
    PutHead(sizeof(RecordHead) + sizeof body, kind);
    std::memcpy(records_ + used_, &body, sizeof body);
    used_ += sizeof body;
    Commit();
    return true;
  }

  void Commit() {
    ++written_;
    std::atomic_ref(header_->committed).store(used_, std::memory_order_release);
  }

  bool Reserve(size_t bytes, int64_t now_ns) {
    if (capacity_ - used_ >= bytes) return true;
    Close();
    // Unsigned, so that a clock that was set back does not stop the tries.
    const bool soon = static_cast<uint64_t>(now_ns - last_try_ns_) < uint64_t{kRetryNs};
    if (!soon) {
      if (Claim() && capacity_ >= bytes) return true;
      Close();  // a segment too small for one record is of no use
      last_try_ns_ = now_ns;
    }
    ++dropped_total_;
    ++dropped_pending_;
    return false;
  }

  // The free segment with the lowest serial above those already seen in use.
  bool Claim() {
    uint32_t serials[kTriesAtOnce];
    const size_t found = LowestSerials(serials);
    for (size_t i = 0; i < found; ++i) {
      seen_ = serials[i];
      if (ClaimOne(serials[i])) return true;
    }
    // Start from the beginning next time: a process that died while claiming leaves a low one free.
    if (found < kTriesAtOnce) seen_ = 0;
    return false;
  }

  size_t LowestSerials(uint32_t (&serials)[kTriesAtOnce]) const {
    DIR* dir = ::opendir(dir_.c_str());
    if (dir == nullptr) return 0;
    size_t found = 0;
    while (const dirent* entry = ::readdir(dir)) {
      const uint32_t serial = SerialOf(entry->d_name);
      if (serial <= seen_ || (found == kTriesAtOnce && serial >= serials[found - 1])) continue;
      size_t at = found < kTriesAtOnce ? found++ : found - 1;
      for (; at > 0 && serials[at - 1] > serial; --at) serials[at] = serials[at - 1];
      serials[at] = serial;
    }
    ::closedir(dir);
    return found;
  }

  bool ClaimOne(uint32_t serial) {
    const std::string path = dir_ + "/" + SegmentName(serial);
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return false;
    SegmentHeader header;
    struct stat about;
    // Checked before locking: a lock on a segment in use would make the tests of the agent and of
    // other writers fail for no reason. Checked again under the lock.
    if (::fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && IsFree(fd, serial, about, header) &&
        ::flock(fd, LOCK_EX | LOCK_NB) == 0 && IsFree(fd, serial, about, header)) {
      const size_t bytes = sizeof(SegmentHeader) + header.capacity;
      // Populated at once: a page fault in the middle of a training step may wait for a disk.
      void* map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_SHARED | (bytes <= (1u << 20) ? MAP_POPULATE : 0), fd, 0);
      if (map != MAP_FAILED) {
        Take(static_cast<SegmentHeader*>(map), fd);
        return true;
      }
    }
    ::close(fd);
    return false;
  }

  static bool IsFree(int fd, uint32_t serial, const struct stat& about, SegmentHeader& header) {
    return ::pread(fd, &header, sizeof header, 0) == ssize_t{sizeof header} &&
           std::memcmp(header.magic, kSegmentMagic, sizeof kSegmentMagic) == 0 &&
           header.serial == serial && header.state == kFree && header.committed == 0 &&
           static_cast<uint64_t>(about.st_size) <= kMaxSegmentBytes &&
           static_cast<uint64_t>(about.st_size) == sizeof header + uint64_t{header.capacity};
  }

  void Take(SegmentHeader* header, int fd) {
    header_ = header;
    records_ = reinterpret_cast<char*>(header + 1);
    fd_ = fd;
    capacity_ = header->capacity;
    used_ = 0;
    names_ = 0;
    ++generation_;
    header->writer_pid = static_cast<uint32_t>(::getpid());
    header->dropped = dropped_pending_;
    dropped_pending_ = 0;
    std::atomic_ref(header->state).store(kClaimed, std::memory_order_release);
  }

  const std::string dir_;
  SegmentHeader* header_ = nullptr;
  char* records_ = nullptr;
  int fd_ = -1;
  size_t capacity_ = 0;
  size_t used_ = 0;
  uint32_t names_ = 0;
  uint32_t seen_ = 0;
  uint64_t generation_ = 0;
  int64_t last_try_ns_ = INT64_MIN / 2;
  uint64_t dropped_pending_ = 0;
  uint64_t dropped_total_ = 0;
  uint64_t written_ = 0;
};

}  // namespace athanor::spool
