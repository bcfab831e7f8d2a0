#include "link/job_folder.h"

#include <utility>

#include "record/objects/blob_store.h"

namespace athanor {

// Opening a store makes its folders, and reading must not.
Result<CheckpointStore::Listing> JobFolder::Checkpoints(const JobSpec& spec) const {
  const auto manifests = JoinPath(path_, job_dir::kManifests);
  if (!Exists(manifests)) return CheckpointStore::Listing{};
  ATHANOR_TRY(auto parts, BlobStore::Open(JoinPath(path_, job_dir::kParts)));
  ATHANOR_TRY(const auto store, CheckpointStore::Open(manifests, std::move(parts),
                                                      job_dir::SharedCheckpoints(spec, path_)));
  return store.List();
}

}  // namespace athanor
