// KeptMetrics stores what is known about the metrics of runs without their points, so that a server
// that starts does not have to read every series again. It is a copy: what may not match the points
// is discarded, and the file may be removed at any time while no server runs.
//
// The file only grows while a server runs: a run's metrics, or that they are no longer valid
// (Touched, which is written before the first new point). Both survive kill -9. After a power cut
// it is unknown which of the last writes were stored, so a file of another boot is not read; nor is
// one that came with a copy of the home.
//
// Threads: safe from any, once Read is over. After a failed write the file is removed, and nothing
// more is stored until the next start.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/exec/mutex.h"
#include "base/io/fd.h"
#include "base/result.h"
#include "job/ids.h"
#include "record/runs/run_metric.h"
#include "record/series/series_store.h"

namespace athanor {

class KeptMetrics {
 public:
  using NameOf = std::function<const std::string&(uint32_t key)>;

  // Gets the content of the file, in order: the last entry of a run counts.
  class Reader {
   public:
    virtual ~Reader() = default;
    virtual uint32_t KeyOf(std::string_view name) = 0;  // of a metric
    // False: it has the run already, or cannot use it.
    virtual bool Kept(JobId run, Resumes resumes, std::vector<RunMetric> metrics) = 0;
    virtual void Touched(JobId run) = 0;
  };

  // `series` is the folder with the points that it is about.
  KeptMetrics(std::string path, std::string series);

  // Reads what matches, and starts a new file if nothing does. Call it first, once.
  void Read(Reader& reader);
  // Whether most of what Read saw no longer counts; then start a new file, and store all runs
  // again.
  bool IsBloated() const;
  void BeginAnew();

  // False: it is not stored.
  bool Keep(JobId run, const Resumes& resumes, const std::vector<RunMetric>& metrics,
            const NameOf& name_of);
  void Touched(JobId run);

 private:
  void Write(std::string_view records) REQUIRES(mutex_);
  uint64_t ReadRecords(Reader& reader) REQUIRES(mutex_);
  void Empty() REQUIRES(mutex_);

  const std::string path_;
  const std::string series_;
  mutable Mutex mutex_;
  UniqueFd file_ GUARDED_BY(mutex_);  // none: nothing is kept
  uint64_t length_ GUARDED_BY(mutex_) = 0;
  bool bloated_ GUARDED_BY(mutex_) = false;
  std::unordered_map<std::string, uint32_t> names_ GUARDED_BY(mutex_);  // numbers in the file
};

// The records of the file, one by one. Any bytes are accepted.
class KeptRecords {
 public:
  explicit KeptRecords(KeptMetrics::Reader& reader) : reader_(reader) {}
  bool Take(std::string_view payload);       // false: not a record; the reader was not called
  uint64_t waste() const { return waste_; }  // bytes of records that no longer count
  const std::unordered_map<std::string, uint32_t>& names() const { return names_; }

 private:
  KeptMetrics::Reader& reader_;
  std::unordered_map<std::string, uint32_t> names_;
  std::vector<uint32_t> keys_;  // of the reader, by number in the file
  uint64_t waste_ = 0;
};

}  // namespace athanor
