// JobFiles of an agent on another machine: HTTP to the server's address for agents, with the token
// of its attempt. Bytes are named by their sha256, so only what is missing travels; what was cut
// off goes on where it stopped, in both directions. A server that does not answer is asked again,
// with growing pauses, until it does or the caller is told to stop: silence is not an error here
// unless `patience` makes it one.
//
// A server that has another key than `pin` is kDenied and not asked again, unless `stranger` wants
// it: the plan is of another server, or the certificate was changed. Nothing was sent to it.
//
// Threads: safe from any; each call that is under way has a connection of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/exec/clock.h"
#include "link/job_files.h"

namespace athanor {

class RemoteJobFiles final : public JobFiles {
 public:
  struct Options {
    std::string server;  // https://HOST:PORT; http:// only on loopback, unix:/PATH
    std::string pin;     // sha256 of its public key (net/certificate.h); of https
    std::string token;
    std::string scratch_dir;  // what was fetched is there while it is in use
    Millis patience{0};       // of a call while no byte gets through; zero: without end
    int cancel_fd = -1;       // readable: give up with kCancelled
    // Waits between two tries; false: give up. Null: waits, and listens to cancel_fd.
    std::function<bool(Millis)> pause = {};
    // Another server answered; true: ask again, as if none had. Null: kDenied. From any thread.
    std::function<bool(const Error&)> stranger = {};
  };
  // kInvalid: an address that would carry the token in the open.
  static Result<std::unique_ptr<RemoteJobFiles>> Open(Options options);
  ~RemoteJobFiles() override;

  std::unique_ptr<JobFiles> Until(int cancel_fd, Millis patience) const override;
  Result<std::vector<bool>> Has(Shelf shelf, const std::vector<BlobRef>& blobs) override;
  Result<UniqueFd> Get(Shelf shelf, const std::string& sha256) override;
  Result<BlobRef> Put(Shelf shelf, int fd, uint64_t offset, uint64_t bytes,
                      const Pace& pace) override;
  Result<std::vector<JobEntry>> List(const std::string& folder) override;
  Result<UniqueFd> Read(const std::string& name) override;
  Status Replace(const std::string& name, int fd) override;
  Result<uint64_t> Append(const std::string& name, uint64_t offset,
                          std::string_view bytes) override;
  Status Remove(const std::string& name) override;
  Result<CheckpointInfo> Commit(const CheckpointManifest& manifest) override;
  Status Tend(const CheckpointCare& care) override;

 private:
  class Work;
  explicit RemoteJobFiles(std::unique_ptr<Work> work);
  UniqueFd either_;  // readable when one of two cancel_fd is
  std::unique_ptr<Work> work_;
};

}  // namespace athanor
