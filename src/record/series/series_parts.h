// The inside of a SeriesStore. series_store.cc appends and syncs, series_opening.cc brings states
// and indexes in line with files, series_reads.cc reads.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/exec/mutex.h"
#include "record/open_jobs.h"
#include "record/series/held_files.h"
#include "record/series/job_series.h"
#include "record/series/series_store.h"

namespace athanor {

struct SeriesStore::Parts {
  using NewNames = std::map<std::string_view, uint32_t>;  // that a write defines, with their ids
  using PointsByName = std::map<std::string, std::vector<SeriesPoint>, std::less<>>;
  using SummaryByName = std::map<std::string, RunningSummary, std::less<>>;
  using Lock = MutexLock;

  Parts(std::string folder, OnDamage report, size_t held_bytes);

  const std::string dir;
  const OnDamage on_damage;
  const size_t held_bytes;
  OpenJobs<JobSeries> jobs;

  HeldFiles held;
  struct Dirty {
    std::string path;
    bool created = false;
  };
  Mutex dirty_mutex;
  std::map<JobId, Dirty> dirty GUARDED_BY(dirty_mutex);
  std::vector<JobId> closed GUARDED_BY(dirty_mutex);

  // Knowledge about the file up to `length`: `lock` holds the state's mutex.
  Status Open(JobId job, JobSeries& state) const REQUIRES(state.mutex);
  Status Load(JobId job, JobSeries& state, int fd, uint64_t size) const REQUIRES(state.mutex);
  void TakeIndex(JobId job, JobSeries& state, int fd, uint64_t size) const REQUIRES(state.mutex);
  // Loads the outlines again if they were dropped. Releases the lock while it reads.
  Status Outline(JobId job, JobSeries& state, Lock& lock) const;
  // Releases the lock while it writes. If an index cannot be stored, there is none.
  void KeepIndex(JobId job, JobSeries& state, Lock& lock) const;
  void KeepIndexIfDue(JobId job);                          // it has grown much
  void KeepIndexAtEnd(JobId job, JobSeries& state) const;  // it is put away
  void Trim();
  // Each Sync trims. If none comes for long, calls do it themselves, at twice the weight.
  void TrimIfMuch() {
    if (jobs.weight() > 2 * held_bytes) Trim();
  }

  template <class Work>
  Result<size_t> WithState(JobId job, Work work);
  Result<size_t> Append(JobId job, JobSeries& state, const PointBatch& batch,
                        std::optional<uint64_t> last) REQUIRES(state.mutex);
  Status Write(JobId job, JobSeries& state, const NewNames& defined,
               std::vector<SeriesBlock>& blocks) REQUIRES(state.mutex);
  void MarkDirty(JobId job, const std::string& path, bool created);

  Result<std::vector<SeriesPoint>> Arrived(JobId job, std::string_view name);
  Result<std::vector<SeriesChunk>> Chunks(JobId job, std::string_view name);  // none: unknown
  Status ReadChunks(JobId job, std::string_view name, const std::vector<SeriesChunk>& chunks,
                    std::vector<SeriesPoint>& points);
  Status Collect(JobId job, JobSeries& state, uint64_t length, PointsByName& wanted) const;
  Status Renew(JobSeries& state, uint64_t length, SummaryByName& made) const REQUIRES(state.mutex);

  void Report(JobId job, const std::string& path, std::string what, std::string why) const;
  // Of a scan that was meant to reach `to`.
  void ReportDamage(JobId job, JobSeries& state, const SeriesScan& scan) const
      REQUIRES(state.mutex);
  void ReportShort(JobId job, JobSeries& state, const SeriesScan& scan, uint64_t to) const
      REQUIRES(state.mutex);
};

}  // namespace athanor
