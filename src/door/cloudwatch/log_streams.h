// Which log streams there are, and of which jobs: one per host, over all attempts of the job, named
// as SageMaker names them: "<job>/algo-<host>-<ms of the first attempt's start>". A job is found by
// its name; if a newer job has the same name, the older one is listed by its id, and both forms
// work. A job that has printed nothing has no stream.
//
// Threads: any; reads the stores.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/jobs/job_store.h"
#include "record/logs/log_store.h"

namespace athanor {

inline constexpr std::string_view kTrainingJobs = "/aws/sagemaker/TrainingJobs";

// The job with exactly this name (the newest of that name), or this id.
Result<JobRecord> JobCalled(const JobStore& jobs, std::string_view name);

// A job under the name that AWS's clients know it by.
struct NamedJob {
  std::string name;
  JobSummary job;
};
// All whose name begins so, newest first.
Result<std::vector<NamedJob>> JobsWithPrefix(const JobStore& jobs, std::string_view prefix);

struct StreamName {
  std::string job;
  uint32_t host = 0;
  int64_t start_ms = 0;

  std::string ToString() const;
  static std::optional<StreamName> Parse(std::string_view text);
};

struct HostStream {
  std::string name;
  JobId job;
  uint32_t host = 0;
  bool over = false;  // the job is: nothing more will come
  int64_t created_ms = 0;
  WallTime job_created;
};

// kNotFound: there is no such stream, or nothing in it yet.
Result<HostStream> FindStream(const JobStore& jobs, const LogStore& logs, std::string_view name);
// Of the job that is called `name`; none: it has printed nothing. kNotFound: no such job.
Result<std::vector<HostStream>> StreamsOf(const JobStore& jobs, const LogStore& logs,
                                          std::string_view name);

struct StreamTimes {
  int64_t first_ms = 0;
  int64_t last_ms = 0;
  uint64_t bytes = 0;
};
Result<StreamTimes> TimesOf(const LogStore& logs, JobId job);

}  // namespace athanor
