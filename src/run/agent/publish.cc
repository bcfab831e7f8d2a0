#include "run/agent/publish.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/archive.h"
#include "base/io/files.h"
#include "base/io/unnamed_file.h"
#include "base/text/text.h"
#include "link/job_dir.h"
#include "record/checkpoints/checkpoint_store.h"
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
Result<UniqueFd> Joined(const BlobStore& parts, const CheckpointFile& file,
                        const std::string& scratch) {
  if (file.parts.size() == 1) return parts.Read(file.parts.front());
  ATHANOR_TRY(auto whole, UnnamedFile(scratch));
  for (const auto& name : file.parts) {
    ATHANOR_TRY(const auto part, parts.Read(name));
    for (;;) {
      const ssize_t n = ::sendfile(whole.get(), part.get(), nullptr, 1u << 30);
      if (n < 0) return FailErrno("copy a part", errno);
      if (n == 0) break;
    }
  }
  return whole;
}

}  // namespace

Status PublishOutputs(const AttemptPlan& plan, const HeldFolder& ml, const BlobStore& blobs,
                      const std::vector<Output>& outputs) {
  if (plan.spec.output_to.empty()) return Ok();
  ATHANOR_TRY(const auto root, ObjectUri::Parse(plan.spec.output_to));
  auto to = root / plan.spec.name / "output";
  if (plan.host > 0) to = to / HostName(plan);
  ObjectsClient objects(plan);
  for (const auto& output : outputs) {
    if (plan.spec.output_plain && output.name == "model.tar.gz") {
      ATHANOR_CHECK_OK(PutModelFiles(objects, to / "model", ml / "model"));
      continue;
    }
    ATHANOR_TRY(const auto blob, blobs.Read(output.blob));
    ATHANOR_CHECK_OK(objects.Put(to / output.name, blob.get(), output.bytes));
  }
  return Ok();
}

CheckpointPublisher::CheckpointPublisher(const AttemptPlan& plan, const HostPaths& paths)
    : plan_(plan), paths_(paths), objects_(plan) {}

Status CheckpointPublisher::Publish(const std::string& checkpoint) {
  ATHANOR_TRY(const auto root, ObjectUri::Parse(plan_.spec.checkpoints.uri));
  ATHANOR_TRY(auto parts, BlobStore::Open(JoinPath(paths_.job_dir(plan_.job), job_dir::kParts)));
  ATHANOR_TRY(
      const auto store,
      CheckpointStore::Open(JoinPath(paths_.job_dir(plan_.job), job_dir::kManifests), parts));
  ATHANOR_TRY(const auto manifest, store.Load(checkpoint));
  for (const auto& file : manifest.files) {
    if (file.is_link()) continue;
    auto sent = sent_.find(file.name);
    if (sent != sent_.end() && sent->second == file.parts) continue;
    ATHANOR_TRY(const auto bytes, Joined(parts, file, paths_.dir));
    ATHANOR_CHECK_OK(objects_.Put(root / file.name, bytes.get(), file.size));
    sent_[file.name] = file.parts;
  }
  return Ok();
}

}  // namespace athanor
