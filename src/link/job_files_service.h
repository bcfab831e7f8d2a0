// JobFilesService is the server's end of RemoteJobFiles: it answers the routes of job_files_wire.h
// with LocalJobFiles on the job's folders. Who asks, and what for, was decided before: a Grant says
// which folders and blobs a call may reach, and nothing else can be reached. Of the blobs that all
// jobs share, an agent can read and find those that its job names or that it stored itself; whether
// another one exists is not to be learned here, because naming it in an output would give it away.
//
// A large body goes to disk as it comes. An upload that is cut off stays where it is for a day, and
// the next call continues it.
//
// Threads: PolicyFor and Handle on the loop's; the work is done by `workers`, and answered from
// there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/exec/mutex.h"
#include "base/exec/pool.h"
#include "link/local_job_files.h"
#include "net/http/http_server.h"
#include "net/http/router.h"

namespace athanor {

struct JobFilesGrant {
  LocalJobFiles::Options files;
  std::string job;                    // its id
  uint32_t host = 0;                  // of the attempt; only the first stores checkpoints
  std::vector<std::string> blobs;     // that the job names
  std::vector<std::string> listings;  // the same, and what these name in turn (job/manifest.h)
  // Called by a worker before an event file is stored; may be empty.
  std::function<void()> on_events;
};

class JobFilesService {
 public:
  // One kind of call; `name` is what Handle and PolicyFor know it by.
  struct Row {
    const char* method;
    const char* pattern;
    const char* name;
  };
  static std::span<const Row> Rows();

  explicit JobFilesService(Pool& workers) : workers_(workers) {}

  // How the body of a call is received.
  BodyPolicy PolicyFor(std::string_view row, const Captures& captures, const Request& head,
                       const JobFilesGrant& grant) const;
  void Handle(std::string_view row, Request request, Captures captures, JobFilesGrant grant,
              Responder responder);

 private:
  struct Call;
  // What one host changes under one name, in the order in which it asked.
  struct Lane {
    Mutex mutex;
    uint64_t last GUARDED_BY(mutex) = 0;  // number of a call
  };
  Result<Response> Answer(Call& call);
  Result<Response> Change(Call& call);
  std::shared_ptr<Lane> LaneOf(const Call& call);
  Result<Response> Has(Call& call);
  Result<Response> UploadNow(Call& call);
  Result<Response> Upload(Call& call);
  Result<Response> Tend(Call& call);
  Status SendBlob(Call& call);
  bool MayRead(const JobFilesGrant& grant, const std::string& sha256);
  Result<std::shared_ptr<const std::unordered_set<std::string>>> NamedBy(
      const JobFilesGrant& grant, const std::string& listing);

  Pool& workers_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Lane>> lanes_ GUARDED_BY(mutex_);
  // What listings name; a bounded number of them.
  std::map<std::string, std::shared_ptr<const std::unordered_set<std::string>>> listings_
      GUARDED_BY(mutex_);
};

}  // namespace athanor
