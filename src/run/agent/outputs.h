// Stores what a script left: model/ as model.tar.gz, output/data/ as output.tar.gz, each a blob of
// the object store; an archive appears completely or not at all.
#pragma once

#include <string>
#include <vector>

#include "base/io/held_folder.h"
#include "base/result.h"
#include "job/record.h"
#include "record/objects/blob_store.h"

namespace athanor {

// Empty folders give no output. The list of members is stored in `members_dir`
// (record/objects/member_list.h). kDenied: the script replaced a folder by a link.
Result<std::vector<Output>> KeepOutputs(const HeldFolder& ml, const BlobStore& blobs,
                                        const std::string& members_dir);

// The beginning of output/failure, where a script says why it failed; empty if absent.
inline constexpr size_t kFailureBytes = 1024;
std::string FailureText(const HeldFolder& ml);

}  // namespace athanor
