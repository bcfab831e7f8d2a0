#include "record/sweep/sweep.h"

#include <string>
#include <unordered_set>

#include "base/io/files.h"
#include "job/manifest.h"
#include "record/backup/backup.h"

namespace athanor {
namespace {

class Marks {
 public:
  explicit Marks(const BlobStore& blobs) : blobs_(blobs) {}

  Status Add(const JobRecord& record) {
    const auto& source = record.spec.source;
    for (const auto& name : {source.git_diff, record.packages}) names_.insert(name);
    for (const auto& output : record.outputs) {
      if (output.is_listing()) {
        ATHANOR_CHECK_OK(AddBundle(output.blob, "the files that " + record.spec.name + " left"));
      } else {
        names_.insert(output.blob);
      }
    }
    return AddBundle(source.bundle, "the source of " + record.spec.name);
  }
  bool Has(const std::string& sha256) const { return names_.contains(sha256); }

 private:
  Status AddBundle(const std::string& bundle, const std::string& what) {
    if (bundle.empty() || !names_.insert(bundle).second) return Ok();
    auto fd = blobs_.Read(bundle);
    // Gone already: it names nothing that could be restored.
    if (!fd && fd.error().code == ErrorCode::kNotFound) return Ok();
    if (!fd) return tl::unexpected(fd.error());
    ATHANOR_TRY(const auto text, ReadAll(fd->get(), kManifestTextLimit));
    const auto manifest = ReadManifest(text);
    if (!manifest) {
      return Fail(Error{ErrorCode::kCorrupt,
                        "the listing of " + what + " cannot be read, so nothing was removed",
                        "ath server stop\nath fsck"}
                      .Why(manifest.error().what)
                      .Id("ATH-V0030"));
    }
    for (const auto& entry : manifest->entries) {
      if (entry.kind == BundleEntry::Kind::kFile) names_.insert(entry.sha256);
    }
    return Ok();
  }

  const BlobStore& blobs_;
  std::unordered_set<std::string> names_;
};

}  // namespace

Result<Swept> SweepBlobs(const StoreLayout& layout, const BlobStore& blobs, const JobStore& jobs,
                         const std::vector<JobRecord>& live, const SweepOptions& options) {
  // A backup copies the database first and then the blobs that it names.
  ATHANOR_TRY(const UniqueFd lock, LockBackups(layout));
  Marks marks(blobs);
  for (const auto& record : live) ATHANOR_CHECK_OK(marks.Add(record));
  ATHANOR_CHECK_OK(jobs.ForEach([&](const JobRecord& record) { return marks.Add(record); }));

  Swept swept;
  Status failed;
  ATHANOR_CHECK_OK(blobs.ForEach([&](const BlobRef& blob) {
    if (marks.Has(blob.sha256)) {
      ++swept.kept;
      return;
    }
    const auto gone = blobs.RemoveUnused(blob.sha256, options.unused_since, options.dry_run);
    if (!gone) {
      failed = Fail(gone.error());
    } else if (*gone) {
      ++swept.removed;
      swept.bytes += blob.bytes;
    } else {
      ++swept.kept;
    }
  }));
  if (!failed) return tl::unexpected(failed.error());
  return swept;
}

}  // namespace athanor
