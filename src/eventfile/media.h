// MediaBook finds what a run's event files hold besides scalars (histograms, images, audio, text,
// curves, graphs) and where: only positions are kept in memory, the bytes stay in the files. A
// folder is read once; what was added to its files is read at the next request.
//
// Threads: safe from any; two calls for the same folder take turns.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/exec/mutex.h"
#include "base/result.h"
#include "eventfile/event.h"

namespace athanor {

struct MediaSeries {
  std::string kind;  // histogram, image, audio, text, pr_curve, graph, hparams or tensor
  std::string name;  // the tag, after its sub-run: "val/confusion"
  uint64_t count = 0;
  int64_t last_step = 0;
};

struct MediaItem {
  std::string key;  // for Read; letters, digits and '-'
  int64_t step = 0;
  int64_t wall_ms = 0;
};

// One record of a file, and the value in it that is meant.
struct MediaRecord {
  std::string payload;
  uint32_t ordinal = 0;

  // Views of `payload`. False: it is a graph, or invalid; `event` has its body.
  bool Value(EventView& event, SummaryValue& value) const;
};

class MediaBook {
 public:
  explicit MediaBook(size_t kept = 8);
  ~MediaBook();

  // Of the event files below `dir`, by kind and name; none if there is no such folder. Files below
  // its folder "abandoned" do not count.
  Result<std::vector<MediaSeries>> List(const std::string& dir);
  // By step; if there are more than `most`, that many at even distances, including the first and
  // the last.
  Result<std::vector<MediaItem>> Items(const std::string& dir, std::string_view kind,
                                       std::string_view name, size_t most);
  // kNotFound: no such record, or it no longer exists.
  Result<MediaRecord> Read(const std::string& dir, std::string_view key);

 private:
  struct Folder;
  std::shared_ptr<Folder> FolderOf(const std::string& dir);

  const size_t kept_;
  Mutex mutex_;
  std::list<std::shared_ptr<Folder>> used_
      GUARDED_BY(mutex_);  // newest first; shared with readers at work
};

}  // namespace athanor
