// Puts a kept checkpoint back before the script starts, every byte checked against its
// sha256 while it is copied. What is there afterwards is all of the checkpoint or nothing.
//
//   auto restored = RestoreCheckpoint(store, plan.resume_from, checkpoint_dir);
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
#include "record/checkpoints/checkpoint_store.h"

namespace athanor {

struct Restored {
  std::optional<CheckpointInfo> checkpoint;  // nothing: there is no whole one
  std::vector<CheckpointStore::Damage> passed_over;  // newer ones that are not whole
};

// `id` empty: the newest that is whole, passing over damaged ones; given: that one, and
// damage is an error. `dir` must be missing or empty (kConflict), and is left so after an
// error. Modes and times are restored; nothing is synced to disk, since the store has it
// all. A link in the place of `dir` is not followed (kDenied). Manifests with `shared` are only checked, in place, in the store's shared_dir.
// kNotFound: no checkpoint of that id. kCorrupt: what names the file. kExhausted: no space.
// Uses two threads; blocks.
Result<Restored> RestoreCheckpoint(const CheckpointStore& store, const std::string& id,
                                   const std::string& dir);

}  // namespace athanor
