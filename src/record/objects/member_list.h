// What is in a packed output, by name. A list is kept in a folder of the job's when the output is
// packed, so that nobody has to unpack gigabytes to look inside.
//
// Threads: any; two that keep the same list write the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/archive.h"
#include "base/result.h"
#include "record/objects/blob_store.h"

namespace athanor {

struct PackedMember {
  std::string name;
  uint64_t bytes = 0;
  bool operator==(const PackedMember&) const = default;
};

// Makes `dir` if it is not there.
Status KeepMembers(const std::string& dir, const std::string& blob,
                   const std::vector<TarMember>& members);

// By the kept list; where there is none that can be read, as of outputs of older versions, by the
// archive, which may take as long as to unpack it. The list is then kept. kNotFound, kCorrupt:
// the blob is gone, or is no archive.
Result<std::vector<PackedMember>> MembersOf(const std::string& dir, const BlobStore& blobs,
                                            const std::string& blob);

}  // namespace athanor
