// For tests: a job's files as its agent has them, on the server's machine and on another one.
// Suites that take Reach as their parameter hold both.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "link/job_files_testing.h"

namespace athanor {

// Whether the job's folder is used in place, or reached through a real server over TLS.
enum class Reach { kHere, kServer };

inline std::string NameOfReach(const ::testing::TestParamInfo<Reach>& info) {
  return info.param == Reach::kHere ? "Here" : "AtAServer";
}

class JobFilesAt {
 public:
  explicit JobFilesAt(Reach reach, uint32_t attempt = 1) {
    if (reach == Reach::kServer) {
      server_ = std::make_unique<FilesServer>(folders_.options(attempt));
    }
    OfAttempt(attempt);
  }
  // From now on, files of that attempt.
  void OfAttempt(uint32_t attempt) {
    if (!server_) {
      files_ = LocalJobFiles::Open(folders_.options(attempt)).value();
      return;
    }
    server_->ChangeGrant([&](JobFilesGrant& grant) { grant.files = folders_.options(attempt); });
    files_ = RemoteJobFiles::Open(server_->Tls()).value();
  }
  // As a job does whose source it is.
  void NameListing(const std::string& sha256) {
    if (!server_) return;
    server_->ChangeGrant([&](JobFilesGrant& grant) { grant.listings.push_back(sha256); });
  }

  JobFiles& files() { return *files_; }
  bool is_here() const { return !server_; }
  FilesServer& server() { return *server_; }  // elsewhere only
  // The server's own folders.
  std::string dir() const { return folders_.options().job_dir; }
  BlobStore blobs() const { return BlobStore::Open(folders_.options().blob_dir).value(); }

 private:
  JobFolders folders_;
  std::unique_ptr<FilesServer> server_;
  std::unique_ptr<JobFiles> files_;
};

// Passes every call on; what Until gives is not passed through it.
class PassedFiles : public JobFiles {
 public:
  explicit PassedFiles(JobFiles& to) : to_(to) {}
  std::unique_ptr<JobFiles> Until(int cancel_fd, Millis patience) const override {
    return to_.Until(cancel_fd, patience);
  }
  Result<std::vector<bool>> Has(Shelf shelf, const std::vector<BlobRef>& blobs) override {
    return to_.Has(shelf, blobs);
  }
  Result<UniqueFd> Get(Shelf shelf, const std::string& sha256) override {
    return to_.Get(shelf, sha256);
  }
  Result<BlobRef> Put(Shelf shelf, int fd, uint64_t offset, uint64_t bytes,
                      const Pace& pace) override {
    return to_.Put(shelf, fd, offset, bytes, pace);
  }
  Result<std::vector<JobEntry>> List(const std::string& folder) override {
    return to_.List(folder);
  }
  Result<UniqueFd> Read(const std::string& name) override { return to_.Read(name); }
  Status Replace(const std::string& name, int fd) override { return to_.Replace(name, fd); }
  Result<uint64_t> Append(const std::string& name, uint64_t offset,
                          std::string_view bytes) override {
    return to_.Append(name, offset, bytes);
  }
  Status Remove(const std::string& name) override { return to_.Remove(name); }
  Result<CheckpointInfo> Commit(const CheckpointManifest& manifest) override {
    return to_.Commit(manifest);
  }
  Status Tend(const CheckpointCare& care) override { return to_.Tend(care); }

 private:
  JobFiles& to_;
};

}  // namespace athanor
