// EventFiles finds the TensorBoard event files that a script writes anywhere below its own folders,
// stores them with the job, and reads their scalars as they grow. All files of an attempt are one
// run. A file's folder is its sub-run, which is put before its tags ("val/loss"):
//
//   - the first folder with event files is the run itself: no prefix
//   - a folder below it: the path from there; folders named by a time are left out
//   - train, val, validation, eval, test, dev: that name, wherever it lies
//   - any other folder: its own name
//
// A point is numbered by its position in its file, and a file by the order in which it was found,
// which is stored: a restarted agent makes the same numbers.
//
// What is stored is a copy of each complete record, without secrets. Where the server is elsewhere,
// storing has its own thread: values are found as they are written, until too much waits.
//
// Not followed: links, files older than the script's start (they came with the source, the data or
// a checkpoint), and files below input/. Threads: one. It looks for new files about once per
// second, and less often if that takes long.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/exec/clock.h"
#include "base/exec/mutex.h"
#include "base/io/held_folder.h"
#include "link/job_files.h"
#include "record/series/series_store.h"
#include "run/events/event_keeper.h"
#include "run/events/projector_keeper.h"
#include "run/events/store_queue.h"
#include "run/ship/exit_gate.h"

namespace athanor {

class EventFiles {
 public:
  struct Options {
    HeldFolder root;     // what the script sees as /opt/ml
    std::string index;   // where the numbers of files are kept
    std::string marker;  // a file last written just before the script's start
    JobFiles* files = nullptr;
    std::string folder;       // of entries, for the copies
    std::string local_dir;    // the same on this machine; empty: stores wait for a server elsewhere
    std::string scratch_dir;  // for files on their way
    uint32_t attempt = 1;
    std::shared_ptr<const SecretPatterns> secrets;
    std::function<void()> first_kept;                 // there is something to show; any thread
    std::function<void(const std::string&)> problem;  // for a person; once each
  };
  struct Found {
    uint32_t file = 0;  // number
    uint64_t seq = 0;   // rises within a file
    Point point;
  };

  explicit EventFiles(Options options);
  ~EventFiles();

  // Reads what is new, until about `most` points were found. `last`: the script has ended, so look
  // for files one last time and finish everything.
  void Poll(Millis now, bool last, size_t most, std::vector<Found>& found);
  // Nothing that was read waits to be stored.
  bool stored() const { return queue_.idle(); }
  // After Poll(last): nothing more will follow.
  bool finished() const { return finished_; }

  // The sub-run of a folder, given those known so far, by path; see above.
  static std::string SubRunOf(const std::string& folder,
                              const std::map<std::string, std::string>& known);

 private:
  struct File;

  bool is_elsewhere() const { return options_.local_dir.empty(); }
  void LoadIndex();
  bool Look();  // false: there was no time for all of it
  bool KeepEmbeddings(int root, const std::vector<std::string>& configs);
  void Follow(const std::string& path);  // below the root
  std::string CleanName(std::string name) const;
  enum class Kept { kReady, kLater, kFailed };
  Kept Keep(File& file);  // but for kReady, it must not be read now
  void Settle();
  void Again(File& file);
  void TellReports();
  void Take(File& file, uint64_t offset, std::string_view payload, std::vector<Found>& found);
  bool Read(size_t most, std::vector<Found>& found);  // true: there is more
  void Problem(const std::string& key, const std::string& text);
  void Report(std::string key, std::string text);  // a problem, from the queue

  Options options_;
  ExitGate gate_;
  EventKeeper keeper_;         // the queue's
  ProjectorKeeper projector_;  // the queue's
  FirstSteps first_steps_;     // of attempts after the first
  std::atomic<uint64_t> waiting_{0};
  std::vector<std::unique_ptr<File>> files_;
  std::map<std::string, uint32_t> numbers_;      // of paths below the root
  std::map<std::string, std::string> sub_runs_;  // of folders
  std::map<std::string, bool> told_;
  Millis next_look_{0};
  Millis next_settle_{0};
  Millis now_{0};      // of the Poll
  bool last_ = false;  // of the Poll
  bool looked_last_ = false;
  bool settled_last_ = false;
  bool finished_ = false;

  Mutex mutex_;
  std::vector<std::pair<std::string, std::string>> reports_ GUARDED_BY(mutex_);
  std::set<std::string> unsettled_ GUARDED_BY(mutex_);  // sub-runs whose turn failed
  bool keeps_embeddings_ GUARDED_BY(mutex_) = false;
  // Last, since its tasks use everything above.
  StoreQueue queue_;
};

}  // namespace athanor
