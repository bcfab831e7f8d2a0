#include "link/remote_job_files.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <set>

#include <nlohmann/json.hpp>

#include "base/exec/mutex.h"
#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/io/unnamed_file.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "link/job_files_wire.h"
#include "link/server_line.h"
#include "net/http/http_client.h"

namespace athanor {
namespace {

namespace wire = files_wire;

constexpr Millis kFirstPause{100};
constexpr Millis kLongestPause{20'000};
// A large upload goes in pieces of this size, between which `pace` is asked.
constexpr uint64_t kPiece = 16ull << 20;
// Smaller ones are sent without asking first what is there.
constexpr uint64_t kSmall = 64ull << 10;
constexpr size_t kHashPiece = 1 << 20;
// Large bodies are hashed and synced before they are answered.
constexpr Millis kLongAnswer = std::chrono::minutes(10);
constexpr int kTriesOfChanged = 3;
constexpr Millis kHastyAnswer = std::chrono::seconds(30);

// Rises with each call of this process, and from one agent of a host to the next.
uint64_t NextCall() {
  static std::atomic<uint64_t> last = 0;
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto by_clock =
      static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1'000;
  uint64_t before = last;
  uint64_t next = 0;
  do {
    next = std::max(before + 1, by_clock);
  } while (!last.compare_exchange_weak(before, next));
  return next;
}

// What the server says for good, as an error; none: it may say something else later.
std::optional<Error> Refusal(const HttpReply& reply) {
  Error error{ErrorCode::kBug, "the server refused: " + std::to_string(reply.status)};
  const auto body = ParseJson(reply.body);
  const auto said = body && body->is_object() ? body->find("error") : Json::const_iterator();
  const bool understood = body && body->is_object() && said != body->end() && said->is_object();
  if (understood) {
    const auto text = [&](const char* name) {
      const auto found = said->find(name);
      return found != said->end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    error.code = ErrorCodeNamed(text("code"));
    if (!text("what").empty()) error.what = text("what");
    error.why = text("why");
    error.hint = text("hint");
  }
  switch (reply.status) {
    case 401:
    case 403:
      error.code = ErrorCode::kDenied;
      break;
    case 404:
      error.code = ErrorCode::kNotFound;
      break;
    case 409:
    case 410:
      error.code = ErrorCode::kConflict;
      break;
    case 408:  // the line was silent for too long
    case 429:
    case 502:
    case 503:
    case 504:
      return std::nullopt;
    case 507:
      error.code = ErrorCode::kExhausted;
      break;
    default:
      if (!understood && reply.status >= 500) return std::nullopt;
      if (!understood) error.code = ErrorCode::kInvalid;
  }
  return error;
}

// The far side, or the way to it, failed; not what was asked, and not this machine.
bool IsAway(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kTimeout ||
         code == ErrorCode::kCorrupt;
}

Result<std::string> HashOf(int fd, uint64_t offset, uint64_t bytes, const JobFiles::Pace& pace) {
  Sha256 hash;
  std::string buffer(std::clamp<uint64_t>(bytes, 1, kHashPiece), '\0');
  for (uint64_t done = 0; done < bytes;) {
    const size_t want = std::min<uint64_t>(buffer.size(), bytes - done);
    const ssize_t got = ::pread(fd, buffer.data(), want, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno("read", errno);
    if (got == 0) return Fail(ErrorCode::kCorrupt, "the file became shorter while it was read");
    hash.Update({buffer.data(), static_cast<size_t>(got)});
    done += static_cast<uint64_t>(got);
    if (pace && !pace(static_cast<uint64_t>(got))) {
      return Fail(ErrorCode::kCancelled, "interrupted");
    }
  }
  return hash.HexDigest();
}

std::string EntryTarget(const std::string& name) {
  return std::string(wire::kRoot) + "/entry?name=" + UrlEncode(name);
}

std::string BlobTarget(const char* what, Shelf shelf, const std::string& sha256) {
  return std::string(wire::kRoot) + what + std::string(wire::NameOf(shelf)) + "/" + sha256;
}

}  // namespace

class RemoteJobFiles::Work {
 public:
  Work(Options options, ServerLine line) : options_(std::move(options)), line_(std::move(line)) {}

  // Pauses of one call, until something gets through.
  class Tries {
   public:
    explicit Tries(Work& work) : work_(work), since_(std::chrono::steady_clock::now()) {}
    void Progress() {
      pause_ = kFirstPause;
      since_ = std::chrono::steady_clock::now();
    }
    // Waits for the next try; otherwise why there is none.
    Status Again(const Error& error) {
      const auto patience = work_.options_.patience;
      if (patience.count() > 0 && std::chrono::steady_clock::now() - since_ >= patience) {
        return Fail(error);
      }
      if (!work_.Pause(work_.Jittered(pause_))) {
        return Fail(ErrorCode::kCancelled, "gave up asking the server: " + error.what);
      }
      pause_ = std::min(pause_ * 2, kLongestPause);
      return Ok();
    }

   private:
    Work& work_;
    Millis pause_ = kFirstPause;
    std::chrono::steady_clock::time_point since_;
  };

  // The right to send a blob, which one has at a time: who waited for it finds the bytes stored.
  class Turn {
   public:
    Turn(Work& work, const std::string& sha256) : work_(work), sha256_(sha256) {
      MutexLock lock(work_.mutex_);
      work_.sent_.wait(
          lock, [this]() REQUIRES(work_.mutex_) { return work_.sending_.insert(sha256_).second; });
    }
    ~Turn() {
      const MutexLock lock(work_.mutex_);
      work_.sending_.erase(sha256_);
      work_.sent_.notify_all();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Work& work_;
    const std::string sha256_;
  };

  // One try. kUnavailable, kTimeout, kCorrupt: it may be tried again; everything else is for good.
  Result<HttpReply> Once(HttpCall call) {
    Address(call);
    auto client = Borrow();
    auto reply = client->Do(call);
    if (!reply) return MayComeBack(std::move(reply));
    Return(std::move(client));
    if (reply->ok()) return reply;
    if (auto refusal = Refusal(*reply)) {
      // Not to be mistaken for bytes that were damaged on the way.
      if (IsAway(refusal->code)) refusal->code = ErrorCode::kInvalid;
      return Fail(std::move(*refusal));
    }
    return Fail(Busy(reply->status));
  }

  // Until there is an answer.
  Result<HttpReply> Ask(const HttpCall& call) {
    Tries tries(*this);
    for (;;) {
      auto reply = Once(call);
      if (reply || !IsAway(reply.error().code)) return reply;
      ATHANOR_CHECK_OK(tries.Again(reply.error()));
    }
  }

  // One try of a call whose refusals the caller reads itself.
  Result<HttpReply> Raw(HttpCall call) {
    Address(call);
    auto client = Borrow();
    auto reply = client->Do(call);
    if (!reply) return MayComeBack(std::move(reply));
    Return(std::move(client));
    return reply;
  }

  // How long an answer may take that has to be written to disk first. Who has little patience must
  // not wait that long for a line that fell silent.
  Millis LongAnswer() const { return options_.patience.count() > 0 ? kHastyAnswer : kLongAnswer; }
  const Options& options() const { return options_; }
  Result<UniqueFd> Scratch() const { return UnnamedFile(options_.scratch_dir); }
  Error Busy(int status) const {
    return Error{ErrorCode::kUnavailable,
                 line_.endpoint.ToString() + " is busy (" + std::to_string(status) + ")"};
  }

 private:
  void Address(HttpCall& call) const {
    line_.Sign(call);
    call.headers.Set(wire::kCallHeader, std::to_string(NextCall()));
    call.cancel_fd = options_.cancel_fd;
    call.idempotent = true;
  }
  std::unique_ptr<HttpClient> Borrow() {
    const MutexLock lock(mutex_);
    if (idle_.empty()) {
      return std::make_unique<HttpClient>(line_.Client());
    }
    auto client = std::move(idle_.back());
    idle_.pop_back();
    return client;
  }
  void Return(std::unique_ptr<HttpClient> client) {
    const MutexLock lock(mutex_);
    idle_.push_back(std::move(client));
  }

  // A stranger in the server's place is waited out like silence, if the caller wants that.
  Result<HttpReply> MayComeBack(Result<HttpReply> failed) const {
    if (IsStranger(failed.error()) && options_.stranger && options_.stranger(failed.error())) {
      failed.error().code = ErrorCode::kUnavailable;
    }
    return failed;
  }

  // Half of it to all of it, so that many agents do not come back at once.
  Millis Jittered(Millis pause) {
    const MutexLock lock(mutex_);
    return Millis(
        std::uniform_int_distribution<int64_t>(pause.count() / 2, pause.count())(random_));
  }

  bool Pause(Millis pause) const {
    const bool own = options_.pause != nullptr;
    pollfd polled{options_.cancel_fd, POLLIN, 0};
    const int ready =
        ::poll(&polled, options_.cancel_fd >= 0 ? 1 : 0, own ? 0 : static_cast<int>(pause.count()));
    return ready <= 0 && (!own || options_.pause(pause));
  }

  const Options options_;
  const ServerLine line_;
  Mutex mutex_;
  std::vector<std::unique_ptr<HttpClient>> idle_ GUARDED_BY(mutex_);
  std::set<std::string> sending_ GUARDED_BY(mutex_);  // blobs
  CondVar sent_;
  std::minstd_rand random_ GUARDED_BY(mutex_){std::random_device()()};
};

RemoteJobFiles::RemoteJobFiles(std::unique_ptr<Work> work) : work_(std::move(work)) {}
RemoteJobFiles::~RemoteJobFiles() = default;

Result<std::unique_ptr<RemoteJobFiles>> RemoteJobFiles::Open(Options options) {
  ATHANOR_TRY(auto line, ServerLine::To(options.server, options.pin, options.token));
  auto work = std::make_unique<Work>(std::move(options), std::move(line));
  return std::unique_ptr<RemoteJobFiles>(new RemoteJobFiles(std::move(work)));
}

std::unique_ptr<JobFiles> RemoteJobFiles::Until(int cancel_fd, Millis patience) const {
  Options options = work_->options();
  UniqueFd either;
  if (options.cancel_fd >= 0) {
    either.reset(::epoll_create1(EPOLL_CLOEXEC));
    for (const int fd : {options.cancel_fd, cancel_fd}) {
      epoll_event event{EPOLLIN, {}};
      (void)::epoll_ctl(either.get(), EPOLL_CTL_ADD, fd, &event);
    }
  }
  options.cancel_fd = either ? either.get() : cancel_fd;
  options.patience = patience;
  auto made = std::move(*Open(std::move(options)));  // as this one was
  made->either_ = std::move(either);
  return made;
}

Result<std::vector<bool>> RemoteJobFiles::Has(Shelf shelf, const std::vector<BlobRef>& blobs) {
  std::vector<bool> all;
  for (size_t at = 0; at < blobs.size(); at += wire::kMostAsked) {
    const size_t end = std::min(blobs.size(), at + wire::kMostAsked);
    HttpCall call;
    call.method = "POST";
    call.target = std::string(wire::kRoot) + "/has";
    call.headers.Add("Content-Type", "application/json");
    call.body = wire::Encode(wire::Question{
        shelf,
        {blobs.begin() + static_cast<ptrdiff_t>(at), blobs.begin() + static_cast<ptrdiff_t>(end)}});
    ATHANOR_TRY(const auto reply, work_->Ask(call));
    ATHANOR_TRY(const auto there, wire::DecodeThere(reply.body));
    if (there.size() != end - at) {
      return Fail(ErrorCode::kBug, "the server answered for another number of blobs");
    }
    all.insert(all.end(), there.begin(), there.end());
  }
  return all;
}

Result<UniqueFd> RemoteJobFiles::Get(Shelf shelf, const std::string& sha256) {
  ATHANOR_TRY(auto file, work_->Scratch());
  Work::Tries tries(*work_);
  uint64_t got = 0;
  for (bool again = false;;) {
    HttpCall call;
    call.target = BlobTarget("/blobs/", shelf, sha256) + "?from=" + std::to_string(got);
    call.body_to_fd = file.get();
    const auto reply = work_->Once(call);
    const off_t now = ::lseek(file.get(), 0, SEEK_END);
    if (now < 0) return FailErrno("seek", errno);
    if (static_cast<uint64_t>(now) > got) tries.Progress();
    got = static_cast<uint64_t>(now);
    if (!reply && !IsAway(reply.error().code)) return Fail(reply.error());
    if (!reply) {
      ATHANOR_CHECK_OK(tries.Again(reply.error()));
      continue;
    }
    if (::lseek(file.get(), 0, SEEK_SET) < 0) return FailErrno("seek", errno);
    ATHANOR_TRY(const std::string found, Sha256File(file.get()));
    if (found == sha256) {
      if (::lseek(file.get(), 0, SEEK_SET) < 0) return FailErrno("seek", errno);
      return file;
    }
    if (std::exchange(again, true)) {
      return Fail(Error{ErrorCode::kCorrupt, "blob " + sha256 + " is damaged"}.Why(
          "the server sent bytes with the sha256 " + found));
    }
    // Once from the beginning: what was put together may be of two files.
    if (::ftruncate(file.get(), 0) != 0 || ::lseek(file.get(), 0, SEEK_SET) < 0) {
      return FailErrno("empty a file", errno);
    }
    got = 0;
  }
}

Result<BlobRef> RemoteJobFiles::Put(Shelf shelf, int fd, uint64_t offset, uint64_t bytes,
                                    const Pace& pace) {
  ATHANOR_TRY(std::string sha256, HashOf(fd, offset, bytes, pace));
  const Work::Turn turn(*work_, sha256);
  const auto target = [&] {
    return BlobTarget("/uploads/", shelf, sha256) + "?bytes=" + std::to_string(bytes);
  };
  const auto state_now = [&]() -> Result<wire::UploadState> {
    HttpCall call;
    call.target = target();
    ATHANOR_TRY(const auto reply, work_->Ask(call));
    return wire::DecodeUpload(reply.body);
  };
  Work::Tries tries(*work_);
  wire::UploadState state;
  if (bytes > kSmall) {
    ATHANOR_TRY(state, state_now());
  }
  for (int changed = 0; !state.stored;) {
    const uint64_t from = std::min(state.received, bytes);
    const uint64_t piece = std::min(kPiece, bytes - from);
    HttpCall call;
    call.method = "PUT";
    call.target = target() + "&from=" + std::to_string(from);
    call.body_fd = fd;
    call.body_offset = offset + from;
    call.body_length = piece;
    call.read_timeout = work_->LongAnswer();
    const auto reply = work_->Raw(call);
    if (!reply && !IsAway(reply.error().code)) {
      // Perhaps the file became shorter while it was sent.
      ATHANOR_TRY(const std::string now, HashOf(fd, offset, bytes, pace));
      if (now != sha256) return Fail(ErrorCode::kCorrupt, "the file changed while it was sent");
      return Fail(reply.error());
    }
    if (!reply || (!reply->ok() && reply->status != 409 && !Refusal(*reply))) {
      ATHANOR_CHECK_OK(tries.Again(reply ? work_->Busy(reply->status) : reply.error()));
      const uint64_t before = state.received;
      ATHANOR_TRY(state, state_now());
      if (state.received > before) tries.Progress();
      continue;
    }
    if (auto now = wire::DecodeUpload(reply->body); now && (reply->ok() || reply->status == 409)) {
      const bool moved = now->stored || now->received > state.received;
      state = *now;
      if (moved) tries.Progress();
      // It has less than we thought: what was there is gone, and it goes on from there.
      if (!moved && ++changed > kTriesOfChanged) {
        return Fail(ErrorCode::kUnavailable, "the server does not keep what is sent to it");
      }
      if (pace && !state.stored && !pace(piece)) return Fail(ErrorCode::kCancelled, "interrupted");
      continue;
    }
    const auto refusal = Refusal(*reply);
    if (!refusal) return Fail(ErrorCode::kBug, "the server's answer was not understood");
    if (refusal->code != ErrorCode::kCorrupt) return Fail(*refusal);
    // The bytes that came have another sha256. Then either the file has changed, or what was there
    // of an earlier try was of other bytes; the server has thrown it away.
    ATHANOR_TRY(const std::string now, HashOf(fd, offset, bytes, pace));
    if (now != sha256 || ++changed > kTriesOfChanged) {
      return Fail(ErrorCode::kCorrupt, "the file changed while it was sent");
    }
    state = {};
  }
  return BlobRef{std::move(sha256), bytes};
}

Result<std::vector<JobEntry>> RemoteJobFiles::List(const std::string& folder) {
  HttpCall call;
  call.target = std::string(wire::kRoot) + "/entries?folder=" + UrlEncode(folder);
  ATHANOR_TRY(const auto reply, work_->Ask(call));
  return wire::DecodeEntries(reply.body);
}

// From the beginning each time: it may be another file by now.
Result<UniqueFd> RemoteJobFiles::Read(const std::string& name) {
  Work::Tries tries(*work_);
  for (;;) {
    ATHANOR_TRY(auto file, work_->Scratch());
    HttpCall call;
    call.target = EntryTarget(name);
    call.body_to_fd = file.get();
    const auto reply = work_->Once(call);
    if (reply) {
      if (::lseek(file.get(), 0, SEEK_SET) < 0) return FailErrno("seek", errno);
      return file;
    }
    if (!IsAway(reply.error().code)) return Fail(reply.error());
    ATHANOR_CHECK_OK(tries.Again(reply.error()));
  }
}

Status RemoteJobFiles::Replace(const std::string& name, int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return FailErrno("stat", errno);
  HttpCall call;
  call.method = "PUT";
  call.target = EntryTarget(name);
  call.body_fd = fd;
  call.body_length = static_cast<uint64_t>(info.st_size);
  call.read_timeout = work_->LongAnswer();
  ATHANOR_TRY([[maybe_unused]] const auto reply, work_->Ask(call));
  return Ok();
}

Result<uint64_t> RemoteJobFiles::Append(const std::string& name, uint64_t offset,
                                        std::string_view bytes) {
  uint64_t size = offset;
  do {
    const auto piece = bytes.substr(0, wire::kMostAppended);
    bytes.remove_prefix(piece.size());
    HttpCall call;
    call.method = "POST";
    call.target = EntryTarget(name) + "&at=" + std::to_string(size);
    call.body = piece;
    ATHANOR_TRY(const auto reply, work_->Ask(call));
    ATHANOR_TRY(const auto now, wire::DecodeUpload(reply.body));
    size = now.received;
  } while (!bytes.empty());
  return size;
}

Status RemoteJobFiles::Remove(const std::string& name) {
  HttpCall call;
  call.method = "DELETE";
  call.target = EntryTarget(name);
  ATHANOR_TRY([[maybe_unused]] const auto reply, work_->Ask(call));
  return Ok();
}

Result<CheckpointInfo> RemoteJobFiles::Commit(const CheckpointManifest& manifest) {
  HttpCall call;
  call.method = "POST";
  call.target = std::string(wire::kRoot) + "/checkpoints";
  call.body = FormatManifest(manifest);
  call.read_timeout = work_->LongAnswer();
  ATHANOR_TRY(const auto reply, work_->Ask(call));
  return wire::DecodeCheckpoint(reply.body);
}

Status RemoteJobFiles::Tend(const CheckpointCare& care) {
  wire::Care asked;
  if (care.keep != nullptr) asked.keep = *care.keep;
  asked.needed = care.needed;
  if (care.keep != nullptr && care.keep->keep_best > 0 && care.value_of) {
    HttpCall steps;
    steps.target = std::string(wire::kRoot) + "/checkpoints";
    ATHANOR_TRY(const auto reply, work_->Ask(steps));
    ATHANOR_TRY(const auto known, wire::DecodeSteps(reply.body));
    for (const int64_t step : known) {
      if (const auto value = care.value_of(step)) asked.values.emplace_back(step, *value);
    }
  }
  HttpCall call;
  call.method = "POST";
  call.target = std::string(wire::kRoot) + "/care";
  call.headers.Add("Content-Type", "application/json");
  call.body = wire::Encode(asked);
  ATHANOR_TRY([[maybe_unused]] const auto reply, work_->Ask(call));
  return Ok();
}

}  // namespace athanor
