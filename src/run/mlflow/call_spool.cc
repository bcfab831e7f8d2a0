#include "run/mlflow/call_spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/exec/mutex.h"
#include "base/ids.h"
#include "base/io/crc32c.h"
#include "base/io/exact_io.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "job/point.h"
#include "link/kept_call.h"

namespace athanor {
namespace {

constexpr std::string_view kFilePrefix = "calls.";
constexpr uint64_t kMostRecord = 256 << 20;
constexpr char kKeeping[] = "keep a call of MLflow's";

// Of one machine, so in its own byte order.
struct RecordHead {
  uint32_t size = 0;  // of the text that follows
  uint32_t crc = 0;   // of `seq` and the text
  uint64_t seq = 0;
};
struct State {
  uint64_t done = 0;
  uint32_t channel = 0;
  uint32_t unused = 0;
};

uint32_t CrcOf(uint64_t seq, std::string_view text) {
  char bytes[sizeof seq];
  std::memcpy(bytes, &seq, sizeof seq);
  return Crc32c(text, Crc32c({bytes, sizeof bytes}));
}

}  // namespace

Result<std::unique_ptr<CallSpool>> CallSpool::Open(std::string dir, Limits limits) {
  ATHANOR_CHECK_OK(MakeDirs(dir));
  std::unique_ptr<CallSpool> spool(new CallSpool(std::move(dir), limits));
  ATHANOR_CHECK_OK(spool->Load());
  return spool;
}

Status CallSpool::Load() {
  const MutexLock lock(mutex_);
  ATHANOR_CHECK_OK(LoadState());
  last_ = done_;
  ATHANOR_TRY(auto names, ListDir(dir_));
  std::erase_if(names, [](const auto& name) { return !StartsWith(name, kFilePrefix); });
  for (const auto& name : names) ATHANOR_CHECK_OK(LoadFile(name, name == names.back()));
  return Ok();
}

Status CallSpool::LoadState() {
  const auto path = JoinPath(dir_, "state");
  State state;
  if (const auto kept = ReadFile(path); kept && kept->size() == sizeof state) {
    std::memcpy(&state, kept->data(), sizeof state);
  } else {
    const auto number = std::strtoul(RandomHex(4).c_str(), nullptr, 16);
    state.channel = ChannelOfKeptCalls(static_cast<uint32_t>(number));
    ATHANOR_CHECK_OK(ReplaceFile(path, {reinterpret_cast<const char*>(&state), sizeof state}));
  }
  channel_ = state.channel;
  done_ = state.done;
  state_.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!state_) return FailErrno("open " + path, errno);
  return Ok();
}

Status CallSpool::LoadFile(const std::string& name, bool newest) {
  File file;
  file.path = JoinPath(dir_, name);
  file.fd.reset(::open(file.path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat info {};
  if (!file.fd || ::fstat(file.fd.get(), &info) != 0) return FailErrno("open " + file.path, errno);
  file.size = static_cast<uint64_t>(info.st_size);
  uint64_t at = 0;
  while (at < file.size) {
    uint64_t next = 0;
    const auto call = ReadAt(file, at, &next);
    if (!call) break;
    if (call->seq <= done_) {
      file.read = next;
    } else {
      waiting_ += next - at;
    }
    last_ = std::max(last_, call->seq);
    at = next;
  }
  if (at < file.size) {
    if (::ftruncate(file.fd.get(), static_cast<off_t>(at)) != 0) {
      return FailErrno("cut " + file.path, errno);
    }
    file.size = at;
    // A torn end of the newest file comes from a death; anywhere else it is damage.
    if (!newest) ++lost_;
  }
  files_.push_back(std::move(file));
  return Ok();
}

std::optional<KeptCall> CallSpool::ReadAt(const File& file, uint64_t offset, uint64_t* next) const {
  RecordHead head;
  if (offset + sizeof head > file.size || !ReadExactly(file.fd.get(), &head, sizeof head, offset)) {
    return std::nullopt;
  }
  if (head.size > kMostRecord || offset + sizeof head + head.size > file.size) return std::nullopt;
  std::string text(head.size, '\0');
  if (!ReadExactly(file.fd.get(), text.data(), text.size(), offset + sizeof head)) {
    return std::nullopt;
  }
  if (CrcOf(head.seq, text) != head.crc) return std::nullopt;
  const auto method = text.find('\n');
  const auto target = method == std::string::npos ? method : text.find('\n', method + 1);
  if (target == std::string::npos) return std::nullopt;
  *next = offset + sizeof head + head.size;
  return KeptCall{head.seq, text.substr(0, method), text.substr(method + 1, target - method - 1),
                  text.substr(target + 1)};
}

Status CallSpool::AddFile() {
  File file;
  file.path = JoinPath(dir_, fmt::format("{}{:020}", kFilePrefix, last_ + 1));
  file.fd.reset(::open(file.path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.fd) return FailErrno("make " + file.path, errno);
  files_.push_back(std::move(file));
  return Ok();
}

Result<uint64_t> CallSpool::Append(std::string_view method, std::string_view target,
                                   std::string_view body) {
  std::string bytes(sizeof(RecordHead), '\0');
  bytes.reserve(bytes.size() + method.size() + target.size() + body.size() + 2);
  bytes.append(method).append("\n").append(target).append("\n").append(body);
  const MutexLock lock(mutex_);
  if (bytes.size() > kMostRecord || waiting_ + bytes.size() > limits_.all_bytes) {
    return Fail(ErrorCode::kExhausted,
                "more MLflow calls wait for the server than are kept: " + HumanBytes(waiting_));
  }
  if (files_.empty() || files_.back().size >= limits_.file_bytes) ATHANOR_CHECK_OK(AddFile());
  File& file = files_.back();
  const std::string_view text = std::string_view(bytes).substr(sizeof(RecordHead));
  const uint64_t seq = last_ + 1;
  const RecordHead head{static_cast<uint32_t>(text.size()), CrcOf(seq, text), seq};
  std::memcpy(bytes.data(), &head, sizeof head);
  if (auto wrote = WriteExactly(file.fd.get(), bytes.data(), bytes.size(), file.size, kKeeping);
      !wrote) {
    (void)!::ftruncate(file.fd.get(), static_cast<off_t>(file.size));
    return Fail(ErrorCode::kExhausted, wrote.error().what);
  }
  file.size += bytes.size();
  waiting_ += bytes.size();
  dirty_ = true;
  return last_ = seq;
}

std::optional<KeptCall> CallSpool::First() {
  const MutexLock lock(mutex_);
  while (!files_.empty()) {
    File& file = files_.front();
    uint64_t next = 0;
    while (file.read < file.size) {
      auto call = ReadAt(file, file.read, &next);
      if (!call) {
        // Damaged by something else after it was checked or written: the rest cannot be found.
        ++lost_;
        waiting_ -= std::min(waiting_, file.size - file.read);
        file.read = file.size;
        break;
      }
      if (call->seq > done_) {
        behind_ = next;
        return call;
      }
      file.read = next;
    }
    if (files_.size() == 1) return std::nullopt;
    ::unlink(file.path.c_str());
    files_.pop_front();
  }
  return std::nullopt;
}

std::optional<KeptCall> CallSpool::Next() {
  const MutexLock lock(mutex_);
  if (files_.empty() || behind_ >= files_.front().size) return std::nullopt;
  // First skips the damage.
  return ReadAt(files_.front(), behind_, &behind_);
}

void CallSpool::Show(uint64_t most_bytes, const std::function<void(const KeptCall&)>& show) const {
  const MutexLock lock(mutex_);
  size_t from = files_.size();
  for (uint64_t sum = 0; from > 0 && sum <= most_bytes; --from) {
    sum += files_[from - 1].size - files_[from - 1].read;
  }
  for (size_t i = from; i < files_.size(); ++i) {
    uint64_t next = 0;
    for (uint64_t at = files_[i].read; at < files_[i].size; at = next) {
      const auto call = ReadAt(files_[i], at, &next);
      if (!call) break;
      if (call->seq > done_) show(*call);
    }
  }
}

void CallSpool::Done(uint64_t seq) {
  const MutexLock lock(mutex_);
  behind_ = UINT64_MAX;
  done_ = std::max(done_, seq);
  State state{done_, channel_, 0};
  // Not known to be done after a crash: delivered again, and recognised by its number.
  (void)WriteExactly(state_.get(), &state, sizeof state, 0, kKeeping).ok();
  if (files_.empty()) return;
  File& file = files_.front();
  while (file.read < file.size) {
    uint64_t next = 0;
    const auto call = ReadAt(file, file.read, &next);
    if (!call || call->seq > done_) break;
    waiting_ -= std::min(waiting_, next - file.read);
    file.read = next;
  }
  // Numbers continue from the state, so an emptied file needs no successor.
  const bool emptied = files_.size() == 1 && file.read == file.size;
  if (emptied && file.size >= limits_.file_bytes / 8 && ::ftruncate(file.fd.get(), 0) == 0) {
    file.size = file.read = 0;
  }
}

void CallSpool::Sync() {
  MutexLock lock(mutex_);
  if (!dirty_ || files_.empty()) return;
  dirty_ = false;
  UniqueFd fd(::fcntl(files_.back().fd.get(), F_DUPFD_CLOEXEC, 0));
  lock.unlock();
  if (fd) ::fdatasync(fd.get());
}

uint64_t CallSpool::last() const {
  const MutexLock lock(mutex_);
  return last_;
}

uint64_t CallSpool::done() const {
  const MutexLock lock(mutex_);
  return done_;
}

uint64_t CallSpool::lost() const {
  const MutexLock lock(mutex_);
  return lost_;
}

}  // namespace athanor
