// The names inside a job's folder, which outlives its attempts: the server lists what the job's
// agents store here.
#pragma once

#include <string>

#include "base/io/files.h"
#include "base/text/text.h"
#include "job/spec.h"

namespace athanor::job_dir {

inline constexpr char kManifests[] = "manifests";  // of whole checkpoints
// The same of the job that this one continues from, as agents see it.
inline constexpr char kEarlierManifests[] = "earlier/manifests";
inline constexpr char kParts[] = "parts";      // their bytes, by hash
inline constexpr char kCapture[] = "capture";  // the black box of the last attempt
inline constexpr char kEvents[] = "events";    // TensorBoard's files; see run/events/event_keeper.h
inline constexpr char kMembers[] =
    "members";                               // what is in its outputs; record/objects/member_list.h
inline constexpr char kStacks[] = "stacks";  // of ranks that hung
inline constexpr char kPutBlobs[] =
    "put";  // which blobs agents of other machines stored; a line each
inline constexpr char kValues[] = "values";  // "step value" of keep.metric; the last counts

// Whether an entry is one of TensorBoard's files.
inline bool IsEvents(const std::string& entry) {
  return StartsWith(entry, std::string(kEvents) + "/");
}

// Whether the script's checkpoint folder is one of the user, outside of /opt/ml.
inline bool IsCheckpointDirTheirs(const JobSpec& spec) {
  const auto& asked = spec.checkpoint_dir;
  return !asked.empty() && asked[0] == '/' && !StartsWith(asked, "/opt/ml");
}

// With `store: shared`: where the script's checkpoints are kept permanently. A folder of the user
// is used in place; otherwise it is here.
inline std::string SharedCheckpoints(const JobSpec& spec, const std::string& job_dir) {
  return IsCheckpointDirTheirs(spec) ? spec.checkpoint_dir : JoinPath(job_dir, "checkpoints");
}

}  // namespace athanor::job_dir
