// JobFolder is where a server keeps what agents stored of a job (link/job_files.h): for whoever
// reads it there. Names only; nothing is created.
#pragma once

#include <string>

#include "base/io/files.h"
#include "base/result.h"
#include "job/ids.h"
#include "job/spec.h"
#include "link/job_dir.h"
#include "record/checkpoints/checkpoint_store.h"
#include "record/layout.h"

namespace athanor {

class JobFolder {
 public:
  // `home` is the server's.
  JobFolder(const std::string& home, JobId job) : path_(StoreLayout{home}.job(job.ToString())) {}

  const std::string& path() const { return path_; }
  std::string capture() const { return JoinPath(path_, job_dir::kCapture); }
  std::string events() const { return JoinPath(path_, job_dir::kEvents); }
  std::string members() const { return JoinPath(path_, job_dir::kMembers); }
  // Empty for a job that never made one.
  Result<CheckpointStore::Listing> Checkpoints(const JobSpec& spec) const;

 private:
  std::string path_;
};

}  // namespace athanor
