#include "run/checkpoint/checkpoint_sync.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <set>
#include <thread>
#include <utility>

#include "base/exec/mutex.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "link/job_dir.h"
#include "run/checkpoint/complete_states.h"
#include "run/checkpoint/file_keeper.h"
#include "run/checkpoint/folder_scan.h"
#include "run/checkpoint/kept_values.h"
#include "run/checkpoint/save_signs.h"
#include "run/checkpoint/yielder.h"

namespace athanor {
namespace {

constexpr Millis kFirstRetry{5'000};
constexpr Millis kLastRetry{60'000};
// Scans take at most this part of the time, however many files there are. Waiting for a processor
// does not count: next to a training that uses all of them, every scan would be long.
constexpr int kLookShare = 100;
constexpr Millis kLongestWait{10'000};

enum class How { kRunning, kClean, kKilled };

// A complete state on its way into the store.
struct Pending {
  Snapshot files;
  CheckpointInfo info;  // step, held_ms, save_ms; the rest at the commit
  bool noted = false;   // save_ms is the script's own figure
};

}  // namespace

class CheckpointSync::Work {
 public:
  Work(CheckpointSyncOptions options, const JobFiles& files, const Clock& clock, UniqueFd cancel)
      : options_(std::move(options)),
        clock_(clock),
        cancel_(std::move(cancel)),
        hasty_(files.Until(cancel_.get(), options_.server_patience)),
        patient_(files.Until(cancel_.get(), Millis(0))),
        shared_(options_.spec.store == "shared"),
        watch_(options_.settle, options_.patience) {}

  Status Open();
  Result<std::optional<CheckpointInfo>> Look(How how);
  Result<std::optional<CheckpointInfo>> Final(How how);
  JobFiles& files() { return *files_; }
  void Loop();
  void Start();
  void Stop();
  void NoteSave(const SaveNote& note);

  std::optional<LastWrite> last_write() const;
  int64_t save_cost_ms() const;
  std::optional<CheckpointInfo> newest() const;

 private:
  using Kept = Result<std::optional<CheckpointInfo>>;

  Status Begin();
  void SeeWrites(const FolderScan& scan);
  void TellLeftOut(const FolderScan& scan);
  void TellRestless();
  void Choose(How how, const FolderScan& scan);
  void SetPending(Snapshot files);
  CompleteStates::Writers Writers() const;
  void ForgetGone(const FolderScan& scan);
  void Tend();
  Kept KeepPending();
  Result<bool> KeepFiles();
  CheckpointManifest ManifestOfPending() const;
  void Committed(CheckpointManifest manifest, CheckpointInfo info);
  Kept Trouble(Error error);
  void Log(const std::string& text) const {
    if (options_.log) options_.log(text);
  }
  bool Pause(std::chrono::nanoseconds duration);
  std::optional<SaveNote> note() const;

  const CheckpointSyncOptions options_;
  const Clock& clock_;
  const UniqueFd cancel_;  // readable while Stop waits for the thread
  const std::unique_ptr<JobFiles> hasty_;
  const std::unique_ptr<JobFiles> patient_;
  JobFiles* files_ = hasty_.get();  // the one that is used now
  const bool shared_;

  // Of the thread that scans: its own, or the owner's while there is none.
  CompleteStates watch_;
  std::optional<Pending> pending_;
  Snapshot committed_;  // until `begun_`: what was there at first, which may not be committed
  std::vector<CheckpointFile> committed_files_;
  std::map<std::string, KeptFile> kept_;          // by name
  bool begun_ = false;                            // it is known what is stored
  std::optional<CheckpointManifest> unanswered_;  // perhaps it is committed
  bool thin_out_ = false;  // there may be more checkpoints than are to be kept
  KeptValues values_;
  bool leftovers_ = true;  // parts may be stored that neither a checkpoint nor kept_ names
  // As the script was given them; kept_ also has what was stored for a commit that never happened.
  std::map<std::string, FileStamp> restored_;
  std::optional<CheckpointInfo> before_;  // newest of any attempt
  std::set<std::string> told_;            // troubles and left-out names that were logged
  std::unique_ptr<Yielder> yielder_;      // only on the thread
  bool fenced_ = false;
  std::chrono::nanoseconds look_took_{0};  // without waits for a processor, and what was stored
  std::optional<Millis> restless_since_;   // files changed, and nothing was kept since
  bool restless_told_ = false;
  Millis retry_at_{0};
  Millis retry_after_ = kFirstRetry;
  int64_t first_mtime_ns_ = std::numeric_limits<int64_t>::min();  // newest when opened

  mutable Mutex mutex_;
  CondVar wake_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool look_now_ GUARDED_BY(mutex_) = false;
  std::optional<SaveNote> note_ GUARDED_BY(mutex_);  // the last one
  SaveCost cost_ GUARDED_BY(mutex_);
  std::optional<LastWrite> last_write_ GUARDED_BY(mutex_);
  std::optional<CheckpointInfo> newest_ GUARDED_BY(mutex_);
  std::thread thread_;
};

Status CheckpointSync::Work::Open() {
  ATHANOR_TRY(auto scan, ScanFolder(options_.dir));
  committed_ = std::move(scan.files);
  for (const auto& [name, file] : committed_) {
    first_mtime_ns_ = std::max(first_mtime_ns_, file.stamp.mtime_ns);
  }
  return options_.begin_at_once ? Begin() : Ok();
}

// Files that equal the newest checkpoint were just restored, or were stored before the agent died:
// they are not read again.
Status CheckpointSync::Work::Begin() {
  ATHANOR_CHECK_OK(files_->Tend({}));
  ATHANOR_TRY(auto found, NewestCheckpoint(*files_, job_dir::kManifests, "", options_.dir.path()));
  begun_ = true;
  const Snapshot at_open = std::exchange(committed_, {});
  if (!found.manifest) return Ok();
  const CheckpointManifest& manifest = *found.manifest;
  before_ = manifest.info;
  if (manifest.info.attempt == options_.attempt) {
    const MutexLock lock(mutex_);
    newest_ = manifest.info;
  }
  if (manifest.part_bytes != options_.part_bytes || manifest.shared != shared_) return Ok();
  size_t same = 0;
  for (const auto& file : manifest.files) {
    const auto there = at_open.find(file.name);
    if (there == at_open.end()) continue;
    const ScannedFile& now = there->second;
    if (now.link != file.link || now.stamp.size != file.size ||
        now.stamp.mtime_ns != file.mtime_ns || now.mode != file.mode) {
      continue;
    }
    ++same;
    if (file.is_link()) continue;
    kept_[file.name] = {now.stamp, file.parts, true};
    restored_[file.name] = now.stamp;
  }
  committed_files_ = manifest.files;
  if (same == manifest.files.size() && same == at_open.size()) committed_ = at_open;
  return Ok();
}

void CheckpointSync::Work::SeeWrites(const FolderScan& scan) {
  int64_t newest = first_mtime_ns_;
  for (const auto& [name, file] : scan.files) newest = std::max(newest, file.stamp.mtime_ns);
  if (newest <= first_mtime_ns_) return;
  const MutexLock lock(mutex_);
  const WallTime wall{newest / 1'000'000};
  if (!last_write_ || last_write_->wall < wall) last_write_ = {wall, clock_.Monotonic()};
}

void CheckpointSync::Work::TellLeftOut(const FolderScan& scan) {
  for (const auto& text : scan.left_out) {
    if (told_.insert(text).second) Log("left out of checkpoints: " + text);
  }
  for (const auto& name : watch_.left_out()) {
    const std::string text = Printable(name) + ": it is being written all the time";
    if (told_.insert(text).second) Log("left out of checkpoints: " + text);
  }
}

void CheckpointSync::Work::TellRestless() {
  const auto names = watch_.restless();
  const Millis now = clock_.Monotonic();
  if (names.empty()) return restless_since_.reset();
  if (!restless_since_) restless_since_ = now;
  const Millis lasted = now - *restless_since_;
  if (restless_told_ || lasted < options_.restless_after || !options_.restless) return;
  std::vector<FileKey> keys;
  for (const auto& [name, key] : names) keys.push_back(key);
  if (!Writers()(std::move(keys)).empty()) return;  // perhaps one long save
  restless_told_ = true;
  options_.restless(names.begin()->first, lasted);
}

CompleteStates::Writers CheckpointSync::Work::Writers() const {
  return [this](std::vector<FileKey> files) {
    return options_.pids ? OpenForWriting(options_.pids(), std::move(files))
                         : std::vector<FileKey>();
  };
}

void CheckpointSync::Work::Choose(How how, const FolderScan& scan) {
  const Millis now = clock_.Monotonic();
  const auto told = note();
  const auto told_at = told ? std::optional(told->at) : std::nullopt;
  watch_.Observe(scan.files, now);
  if (how == How::kClean) {
    std::vector<FileKey> keys;
    for (const auto& [name, file] : scan.files) {
      keys.emplace_back(file.stamp.device, file.stamp.inode);
    }
    // A child that was left behind may still write: then only what was seen is certain.
    if (keys.empty() || Writers()(std::move(keys)).empty()) {
      pending_.reset();
      if (scan.files != committed_) SetPending(scan.files);
      return;
    }
    how = How::kKilled;
  }
  if (how == How::kKilled) {
    auto state = told ? watch_.ToldState(told->at, committed_) : std::nullopt;
    if (!state || SameButJournals(*state, committed_)) return;
    const auto after = [&](const auto& entry) {
      return entry.second.stamp.ctime_ns / 1'000'000 > told->at.ms;
    };
    // A state that was seen complete later than that is the better one.
    if (pending_ && std::any_of(pending_->files.begin(), pending_->files.end(), after)) return;
    SetPending(std::move(*state));
    return;
  }
  auto whole = watch_.WholeState(now, told_at, committed_, Writers());
  // A process that died in the middle of a file has closed it, too: what was seen since is not
  // certain.
  if (!whole || (options_.running && !options_.running())) return;
  if (SameButJournals(*whole, committed_)) {
    pending_.reset();
  } else if (!pending_ || !SameButJournals(*whole, pending_->files)) {
    SetPending(std::move(*whole));
  }
}

void CheckpointSync::Work::SetPending(Snapshot files) {
  Pending next;
  std::vector<std::pair<int64_t, std::string>> changed;  // newest first
  int64_t began = std::numeric_limits<int64_t>::max();
  for (const auto& [name, file] : files) {
    const auto before = committed_.find(name);
    if (before != committed_.end() && before->second == file) continue;
    if (const auto given = restored_.find(name);
        committed_.empty() && given != restored_.end() && given->second == file.stamp) {
      continue;  // restored, among files that were not
    }
    changed.emplace_back(-file.stamp.mtime_ns, name);
    if (IsJournalName(BaseName(name))) continue;
    if (const int64_t at = watch_.began_ns(name); at > 0) began = std::min(began, at);
  }
  std::sort(changed.begin(), changed.end());
  const int64_t wall_ns = clock_.Wall().ms * 1'000'000;
  const int64_t written = changed.empty() ? wall_ns : -changed.front().first;
  const auto told = note();
  if (changed.empty()) {  // files were only removed: an older save, thinned out
    if (before_) next.info.step = before_->step;
  } else if (told && told->at.ms >= written / 1'000'000) {
    next.noted = told->save_ms > 0;
    next.info.step = told->step;
    next.info.save_ms = told->save_ms;
  }
  if (!next.noted && began <= written) next.info.save_ms = (written - began) / 1'000'000;
  for (const auto& [time, name] : changed) {
    if (next.info.step) break;
    next.info.step = StepInName(name);
  }
  // Nothing was written since Open: these are files that the script was given.
  if (!next.info.step && written <= first_mtime_ns_) next.info.step = options_.start_step;
  if (!next.info.step && options_.last_step) next.info.step = options_.last_step();
  if (options_.held_ms) {
    const int64_t age = std::max<int64_t>(0, (wall_ns - written) / 1'000'000);
    next.info.held_ms = std::max<int64_t>(0, options_.held_ms() - age);
  }
  next.files = std::move(files);
  pending_ = std::move(next);
}

CheckpointSync::Work::Kept CheckpointSync::Work::Look(How how) {
  if (fenced_) return std::nullopt;
  const bool may_store = how != How::kRunning || clock_.Monotonic() >= retry_at_;
  Kept begun = std::nullopt;
  if (!begun_ && may_store) {
    if (auto done = Begin(); !done) begun = Trouble(std::move(done).error());
    // What was chosen before is described with what is known now.
    if (begun_ && pending_) SetPending(std::move(pending_->files));
  }
  const auto begin = std::chrono::steady_clock::now() - Yielder::WaitedForProcessor();
  const auto scan = ScanFolder(options_.dir);
  if (!scan) return Trouble(scan.error());
  SeeWrites(*scan);
  Choose(how, *scan);
  look_took_ = std::chrono::steady_clock::now() - Yielder::WaitedForProcessor() - begin;
  TellLeftOut(*scan);
  ForgetGone(*scan);
  if (how == How::kRunning) TellRestless();
  if (!begun_) return begun;
  // An empty folder means a script that cleans up or starts over; there is nothing to go back to.
  if (!pending_ || pending_->files.empty() || !may_store) return std::nullopt;
  return KeepPending();
}

// A script that saves often removes files that are half stored. Their parts would stay until the
// next attempt, and there may be many.
void CheckpointSync::Work::ForgetGone(const FolderScan& scan) {
  for (auto kept = kept_.begin(); kept != kept_.end();) {
    const auto& name = kept->first;
    if (scan.files.count(name) > 0 || committed_.count(name) > 0 ||
        (pending_ && pending_->files.count(name) > 0)) {
      ++kept;
      continue;
    }
    leftovers_ = true;
    kept = kept_.erase(kept);
  }
}

// Removes checkpoints that are not to be kept, and parts of saves that were gone before they could
// be committed.
void CheckpointSync::Work::Tend() {
  if (!thin_out_ && (!leftovers_ || shared_)) return;
  CheckpointCare care;
  if (thin_out_) {
    care.keep = &options_.spec;
    if (options_.spec.keep_best > 0 && options_.value_of) {
      // Without what earlier attempts saw, the best would not be known.
      if (auto loaded = values_.Load(*files_); !loaded) {
        (void)Trouble(std::move(loaded).error());
        return;
      }
      care.value_of = [this](int64_t step) {
        return values_.At(*files_, step, options_.value_of(step));
      };
    }
  }
  if (leftovers_ && !shared_) {
    care.needed.emplace();
    for (const auto& [name, file] : kept_) {
      care.needed->insert(file.parts.begin(), file.parts.end());
    }
  }
  if (auto done = files_->Tend(care); !done) {
    (void)Trouble(std::move(done).error());
    return;
  }
  thin_out_ = leftovers_ = false;
}

// Nothing more is committed after it; then nothing is left of a killed agent either.
CheckpointSync::Work::Kept CheckpointSync::Work::Final(How how) {
  Stop();
  files_ = patient_.get();
  auto last = Look(how);
  if (fenced_) return last;
  kept_.clear();
  leftovers_ = true;
  Tend();
  return last;
}

// False: the files have changed.
Result<bool> CheckpointSync::Work::KeepFiles() {
  const auto dir = options_.dir.Open();
  if (!dir && dir.error().code == ErrorCode::kNotFound) return false;
  if (!dir) return tl::unexpected(dir.error());
  for (const auto& [name, file] : pending_->files) {
    if (!file.link.empty()) continue;
    KeptFile& kept = kept_[name];
    if (kept.stamp != file.stamp) {
      leftovers_ = leftovers_ || !kept.parts.empty();
      kept = {file.stamp, {}};
    }
    if (kept.complete) continue;
    auto done =
        KeepFile(dir->get(), name, options_.part_bytes,
                 {shared_ ? nullptr : files_, yielder_.get(), options_.parts_at_once}, kept);
    if (done.ok()) continue;
    if (kept.changed) return false;
    return tl::unexpected(std::move(done).error());
  }
  return true;
}

CheckpointManifest CheckpointSync::Work::ManifestOfPending() const {
  CheckpointManifest manifest;
  manifest.info = pending_->info;
  manifest.info.attempt = options_.attempt;
  manifest.shared = shared_;
  manifest.part_bytes = options_.part_bytes;
  std::set<std::string_view> stored;
  for (const auto& file : committed_files_) stored.insert(file.parts.begin(), file.parts.end());
  for (const auto& [name, file] : pending_->files) {
    CheckpointFile entry{name, file.stamp.size, file.mode, file.stamp.mtime_ns, file.link, {}};
    if (!entry.is_link()) entry.parts = kept_.at(name).parts;
    manifest.files.push_back(std::move(entry));
  }
  for (const auto& entry : manifest.files) {
    for (size_t i = 0; i < entry.parts.size(); ++i) {
      if (stored.insert(entry.parts[i]).second) {
        manifest.info.new_bytes += PartSize(entry.size, manifest.part_bytes, i);
      }
    }
  }
  return manifest;
}

CheckpointSync::Work::Kept CheckpointSync::Work::KeepPending() {
  const Millis begin = clock_.Monotonic();
  if (yielder_) yielder_->Begin();
  const auto kept = KeepFiles();
  if (!kept) return Trouble(kept.error());
  if (!*kept) {  // while we read them: that state is gone
    pending_.reset();
    leftovers_ = true;  // of the file that changed
    Tend();
    return std::nullopt;
  }
  CheckpointManifest manifest = ManifestOfPending();
  if (manifest.files == committed_files_) {  // touched, or written again with the same bytes
    committed_ = std::move(pending_->files);
    pending_.reset();
    return std::nullopt;
  }
  manifest.info.at = clock_.Wall();
  manifest.info.sync_ms = (clock_.Monotonic() - begin).count();
  // So that it is known as the same checkpoint.
  if (unanswered_ && unanswered_->files == manifest.files) manifest.info.at = unanswered_->info.at;
  unanswered_.reset();
  auto info = files_->Commit(manifest);
  if (!info) {
    if (info.error().code == ErrorCode::kNotFound) {
      kept_.clear();  // parts are gone: store again
    } else if (info.error().code != ErrorCode::kConflict) {
      unanswered_ = std::move(manifest);
    }
    return Trouble(std::move(info).error());
  }
  Committed(std::move(manifest), *info);
  return std::optional<CheckpointInfo>(*info);
}

void CheckpointSync::Work::Committed(CheckpointManifest manifest, CheckpointInfo info) {
  {
    const MutexLock lock(mutex_);
    newest_ = info;
    if (!pending_->noted) cost_.Add(info.save_ms);
  }
  before_ = info;
  restless_since_.reset();
  committed_ = std::move(pending_->files);
  committed_files_ = std::move(manifest.files);
  pending_.reset();
  retry_after_ = kFirstRetry;
  // Parts that are not in the newest checkpoint may be removed from now on.
  for (auto kept = kept_.begin(); kept != kept_.end();) {
    if (committed_.count(kept->first) > 0) {
      ++kept;
      continue;
    }
    leftovers_ = true;
    kept = kept_.erase(kept);
  }
  thin_out_ = true;
  if (options_.committed) options_.committed(info);
  Tend();
}

CheckpointSync::Work::Kept CheckpointSync::Work::Trouble(Error error) {
  if (error.code == ErrorCode::kCancelled) return std::nullopt;
  if (error.code == ErrorCode::kConflict) fenced_ = true;
  std::string text = "checkpoints: " + error.what;
  if (!error.why.empty()) text += ": " + error.why;
  if (told_.insert(text).second) Log(text);
  retry_at_ = clock_.Monotonic() + retry_after_;
  retry_after_ = std::min(retry_after_ * 2, kLastRetry);
  return Fail(std::move(error));
}

bool CheckpointSync::Work::Pause(std::chrono::nanoseconds duration) {
  MutexLock lock(mutex_);
  if (duration.count() > 0)
    wake_.wait_for(lock, duration, [this]() REQUIRES(mutex_) { return stopping_; });
  return !stopping_;
}

void CheckpointSync::Work::Loop() {
  Yielder::LowerPriority();
  yielder_ = std::make_unique<Yielder>([this](auto duration) { return Pause(duration); });
  for (;;) {
    yielder_->Sample();
    (void)Look(How::kRunning);  // troubles were logged
    MutexLock lock(mutex_);
    const auto wait = std::max<std::chrono::nanoseconds>(
        options_.look_every,
        std::min<std::chrono::nanoseconds>(look_took_ * kLookShare, kLongestWait));
    wake_.wait_for(lock, wait, [this]() REQUIRES(mutex_) { return stopping_ || look_now_; });
    look_now_ = false;
    if (stopping_) break;
  }
  yielder_.reset();
}

void CheckpointSync::Work::Start() {
  if (thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stopping_ = false;
  }
  files_ = hasty_.get();
  thread_ = std::thread([this] { Loop(); });
}

void CheckpointSync::Work::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (!thread_.joinable()) return;
  (void)::eventfd_write(cancel_.get(), 1);
  thread_.join();
  eventfd_t waited = 0;
  (void)::eventfd_read(cancel_.get(), &waited);
}

void CheckpointSync::Work::NoteSave(const SaveNote& note) {
  {
    const MutexLock lock(mutex_);
    cost_.Add(note.save_ms);
    if (!note_ || note_->at <= note.at) note_ = note;
    look_now_ = true;
  }
  wake_.notify_all();
}

std::optional<SaveNote> CheckpointSync::Work::note() const {
  const MutexLock lock(mutex_);
  return note_;
}

std::optional<CheckpointSync::LastWrite> CheckpointSync::Work::last_write() const {
  const MutexLock lock(mutex_);
  return last_write_;
}

int64_t CheckpointSync::Work::save_cost_ms() const {
  const MutexLock lock(mutex_);
  return cost_.ms();
}

std::optional<CheckpointInfo> CheckpointSync::Work::newest() const {
  const MutexLock lock(mutex_);
  return newest_;
}

CheckpointSync::CheckpointSync() = default;
CheckpointSync::~CheckpointSync() {
  if (work_) Stop();
}

Result<std::unique_ptr<CheckpointSync>> CheckpointSync::Open(CheckpointSyncOptions options,
                                                             const JobFiles& files,
                                                             const Clock& clock) {
  UniqueFd cancel(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!cancel) return FailErrno("eventfd", errno);
  std::unique_ptr<CheckpointSync> sync(new CheckpointSync);
  sync->work_ = std::make_unique<Work>(std::move(options), files, clock, std::move(cancel));
  ATHANOR_CHECK_OK(sync->work_->Open());
  return sync;
}

void CheckpointSync::Start() { work_->Start(); }
void CheckpointSync::Stop() { work_->Stop(); }
void CheckpointSync::NoteSave(const SaveNote& note) { work_->NoteSave(note); }
Result<std::optional<CheckpointInfo>> CheckpointSync::FinalSync(bool clean) {
  return work_->Final(clean ? How::kClean : How::kKilled);
}
Result<std::optional<CheckpointInfo>> CheckpointSync::Look() { return work_->Look(How::kRunning); }
std::optional<CheckpointSync::LastWrite> CheckpointSync::last_write() const {
  return work_->last_write();
}
int64_t CheckpointSync::save_cost_ms() const { return work_->save_cost_ms(); }
std::optional<CheckpointInfo> CheckpointSync::newest() const { return work_->newest(); }
JobFiles& CheckpointSync::files() { return work_->files(); }

}  // namespace athanor
