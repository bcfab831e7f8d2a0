// Restores a stored checkpoint before the script starts. Every byte is checked against its sha256
// while it is copied. Afterwards, the complete checkpoint is there, or nothing.
//
//   auto restored = RestoreCheckpoint({files, job_dir::kEarlierManifests}, plan.resume_from,
//                                     checkpoint_dir);
//   if (!restored) → the attempt fails with cause restore_failed
//   for (auto& damage : restored->passed_over) note(...)
//   if (restored->checkpoint) → ResumedFrame{checkpoint->id, checkpoint->step}
//   else → from the beginning
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/record.h"
#include "link/job_files.h"
#include "record/checkpoints/checkpoint_store.h"

namespace athanor {

struct RestoreSource {
  JobFiles& files;
  std::string folder;           // of the manifests: manifests, or earlier/manifests
  std::string shared_dir = {};  // where the files of manifests are that say `shared`
};

struct Restored {
  std::optional<CheckpointInfo> checkpoint;          // none: there is no complete one
  std::vector<CheckpointStore::Damage> passed_over;  // newer ones that are not complete
};

// `id` empty: the newest complete one that is older than `before` (empty: of all), skipping damaged
// ones; given: that one, and damage is an error. `dir` must be missing or empty (kConflict), and is
// left so after an error. Modes and times are restored; nothing is synced to disk, because the
// server has everything. If `dir` was replaced by a link, it is not followed (kDenied). Manifests
// with `shared` are only checked, in place, in `shared_dir`. kNotFound: no checkpoint of that id.
// kCorrupt: what names the file. kExhausted: no space. kUnavailable, kTimeout: `files` did not
// reach the server, which says nothing about checkpoints. Uses two threads; blocks.
Result<Restored> RestoreCheckpoint(const RestoreSource& from, const std::string& id,
                                   const std::string& dir, std::string before = {});

}  // namespace athanor
