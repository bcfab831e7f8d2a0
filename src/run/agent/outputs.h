// Stores what a script left: model/ as model.tar.gz, output/data/ as output.tar.gz, each a blob of
// the object store; an archive appears completely or not at all.
#pragma once

#include <string>
#include <vector>

#include "base/io/fd.h"
#include "base/io/held_folder.h"
#include "base/result.h"
#include "job/record.h"
#include "link/job_files.h"

namespace athanor {

struct KeptOutput {
  Output output;
  UniqueFd archive;  // to read: what was stored
};

// Empty folders give no output. Archives are made in `scratch_dir`, from where they become blobs
// without a copy if it is on the same disk as these; what is in them is listed with the job
// (record/objects/member_list.h). kDenied: the script replaced a folder by a link.
Result<std::vector<KeptOutput>> KeepOutputs(const HeldFolder& ml, JobFiles& files,
                                            const std::string& scratch_dir);

// The beginning of output/failure, where a script says why it failed; empty if absent.
inline constexpr size_t kFailureBytes = 1024;
std::string FailureText(const HeldFolder& ml);

}  // namespace athanor
