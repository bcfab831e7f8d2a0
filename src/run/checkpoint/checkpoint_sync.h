// CheckpointSync keeps the script's checkpoint directory with the job's files while the script
// runs. It scans on a timer, on its own thread that gives way to training. When every file is at
// rest (same stamp in two scans, not open for writing) and something changed, it stores what
// changed and commits a manifest. A half-written file never gets into one. It cannot know which
// files make up one save: a script that pauses between them for longer than a scan should save
// through athanor.checkpoint, which reports it (NoteSave).
//
//   CheckpointSyncOptions options;
//   options.dir = ...; options.spec = spec.checkpoints;
//   options.attempt = plan.number; options.pids = [&] { return PidsOfTheJob(); };
//   options.committed = [&](const CheckpointInfo& info) { ship(CheckpointFrame{info, ...}); };
//   // after RestoreCheckpoint, before the script starts (or again, when adopting it):
//   ATHANOR_TRY(auto sync, CheckpointSync::Open(std::move(options), files, clock));
//   sync->Start();
//   sync->NoteSave({step, save_ms, at});        // each time the SDK tells of a save
//   ...the script ended...
//   auto last = sync->FinalSync(clean);
//   advice = AdviseInterval(sync->save_cost_ms(), plan.mtbf_ms, plan.mtbf_source);
//
// A server that does not answer makes checkpoints late. While the script runs, its folder is looked
// at all the same, and what is the newest state then is stored when there is an answer; FinalSync
// waits for one.
//
// Threads: NoteSave, last_write, save_cost_ms and newest are safe from any; the rest belongs to
// one owner. Callbacks come from the sync's thread, or the owner's within FinalSync and Look.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/exec/clock.h"
#include "base/io/held_folder.h"
#include "base/result.h"
#include "job/record.h"
#include "job/spec.h"
#include "link/job_files.h"
#include "record/checkpoints/checkpoint_store.h"

namespace athanor {

struct CheckpointSyncOptions {
  HeldFolder dir;  // the script's; may be missing for now
  CheckpointSpec spec;
  uint32_t attempt = 1;  // number

  std::function<std::vector<int>()> pids;  // of the job; those that may write
  std::function<bool()> running;           // none of its processes is ending; null: true
  std::optional<int64_t> start_step;       // of what was restored from another job's store
  std::function<std::optional<int64_t>()> last_step;  // of any metric
  std::function<int64_t()> held_ms;                   // of the attempt, now
  // Of spec.best_metric, as far as this attempt saw it; that is kept for later ones.
  CheckpointStore::ValueOf value_of;
  std::function<void(const CheckpointInfo&)> committed;
  std::function<void(const std::string&)> log;  // for a person; each problem once
  // Files are written so often that for `restless_after` no checkpoint could be stored, although
  // there is no single long write; once, with the name of one of them.
  std::function<void(const std::string& name, Millis lasted)> restless;

  Millis look_every{500};
  Millis settle{300};  // between two scans that find a file unchanged
  Millis restless_after{120'000};
  Millis patience{600'000};  // a file that is not at rest for so long is left out
  uint64_t part_bytes = kPartBytes;
  // Parts of a file that are read and sent at the same time: more where sending takes long.
  size_t parts_at_once = 1;
  // False: Open asks the server nothing, so that nobody waits for one that is away. The first
  // checkpoint does.
  bool begin_at_once = true;
  // How long the thread waits for a silent server before it looks at the folder again.
  Millis server_patience{2'000};
};

// The SDK reports that a save has ended and is complete.
struct SaveNote {
  std::optional<int64_t> step;
  int64_t save_ms = 0;
  WallTime at;  // when it ended
};

class CheckpointSync {
 public:
  // Fences off earlier attempts, and treats files in `dir` that equal the newest checkpoint as
  // stored. kConflict: a later attempt has taken over. `files` is needed until it returns.
  static Result<std::unique_ptr<CheckpointSync>> Open(CheckpointSyncOptions options,
                                                      const JobFiles& files, const Clock& clock);
  ~CheckpointSync();  // Stop()
  CheckpointSync(const CheckpointSync&) = delete;
  CheckpointSync& operator=(const CheckpointSync&) = delete;

  void Start();
  // In the middle of a part, or of waiting for the server; nothing is committed.
  void Stop();

  void NoteSave(const SaveNote& note);

  // Stops, then stores at once what may be stored, on the caller's thread and at full speed.
  // `clean`: the script ended by itself with status 0, or after a notice: all files as they are
  // now. Not clean (SIGKILL, a crash that may have cut a write short): only the last state that was
  // seen complete and still exists, or that NoteSave reported. Returns the checkpoint committed by
  // this call, if any. Waits for a server that does not answer.
  Result<std::optional<CheckpointInfo>> FinalSync(bool clean);

  // One scan, as the thread does; for tests and for callers with their own timer.
  Result<std::optional<CheckpointInfo>> Look();

  // Newest change of a file in the directory since Open: by the file system, and when seen.
  struct LastWrite {
    WallTime wall;
    Millis monotonic{0};
  };
  std::optional<LastWrite> last_write() const;
  int64_t save_cost_ms() const;                  // moving median; 0: nothing measured yet
  std::optional<CheckpointInfo> newest() const;  // committed by this attempt

  // For callbacks, and for the owner after FinalSync: what waits for the server ends with Stop.
  JobFiles& files();

 private:
  class Work;
  CheckpointSync();
  std::unique_ptr<Work> work_;
};

}  // namespace athanor
