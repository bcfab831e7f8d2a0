#include "run/agent/publish.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/io/archive.h"
#include "base/io/files.h"
#include "base/io/unnamed_file.h"
#include "base/text/text.h"
#include "link/job_dir.h"
#include "run/contract/contract.h"

namespace athanor {
namespace {

Status PutOpen(ObjectsClient& objects, const ObjectUri& to, int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return FailErrno("stat", errno);
  return objects.Put(to, fd, static_cast<uint64_t>(info.st_size));
}

// Regular files only: links and special files are left out.
Status PutModelFiles(ObjectsClient& objects, const ObjectUri& to, const HeldFolder& model) {
  ATHANOR_TRY(const auto dir, model.Open());
  ATHANOR_TRY(const auto names, NamesBelow(dir.get()));
  for (const auto& name : names) {
    const auto seen = OpenBeneath(dir.get(), name, O_PATH | O_NOFOLLOW);
    struct stat info {};
    if (!seen || ::fstat(seen->get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    ATHANOR_TRY(const auto file, OpenBeneath(dir.get(), name, O_RDONLY | O_NONBLOCK));
    ATHANOR_CHECK_OK(PutOpen(objects, to / name, file.get()));
  }
  return Ok();
}

// A file of several parts as one.
Result<UniqueFd> Joined(JobFiles& files, const CheckpointFile& file, const std::string& scratch) {
  if (file.parts.size() == 1) return files.Get(Shelf::kParts, file.parts.front());
  ATHANOR_TRY(auto whole, UnnamedFile(scratch));
  for (const auto& name : file.parts) {
    ATHANOR_TRY(const auto part, files.Get(Shelf::kParts, name));
    for (;;) {
      const ssize_t n = ::sendfile(whole.get(), part.get(), nullptr, 1u << 30);
      if (n < 0) return FailErrno("copy a part", errno);
      if (n == 0) break;
    }
  }
  return whole;
}

}  // namespace

Status PublishOutputs(const AttemptPlan& plan, const HeldFolder& ml,
                      const std::vector<KeptOutput>& outputs) {
  if (plan.spec.output_to.empty()) return Ok();
  ATHANOR_TRY(const auto root, ObjectUri::Parse(plan.spec.output_to));
  auto to = root / plan.spec.name / "output";
  if (plan.host > 0) to = to / HostName(plan);
  ObjectsClient objects(plan);
  for (const auto& [output, archive] : outputs) {
    if (plan.spec.output_plain && output.name == "model.tar.gz") {
      ATHANOR_CHECK_OK(PutModelFiles(objects, to / "model", ml / "model"));
      continue;
    }
    ATHANOR_CHECK_OK(objects.Put(to / output.name, archive.get(), output.bytes));
  }
  return Ok();
}

CheckpointPublisher::CheckpointPublisher(const AttemptPlan& plan, std::string scratch_dir)
    : plan_(plan), scratch_dir_(std::move(scratch_dir)), objects_(plan) {}

Status CheckpointPublisher::Publish(JobFiles& files, const std::string& checkpoint) {
  ATHANOR_TRY(const auto root, ObjectUri::Parse(plan_.spec.checkpoints.uri));
  ATHANOR_TRY(const auto manifest, LoadCheckpoint(files, job_dir::kManifests, checkpoint));
  for (const auto& file : manifest.files) {
    if (file.is_link()) continue;
    auto sent = sent_.find(file.name);
    if (sent != sent_.end() && sent->second == file.parts) continue;
    ATHANOR_TRY(const auto bytes, Joined(files, file, scratch_dir_));
    ATHANOR_CHECK_OK(objects_.Put(root / file.name, bytes.get(), file.size));
    sent_[file.name] = file.parts;
  }
  return Ok();
}

}  // namespace athanor
