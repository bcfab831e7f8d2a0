// What is in a packed output, by name. A list is stored in a folder of the job when the output is
// packed, so that gigabytes need not be unpacked to look inside.
//
// Threads: any; two that store the same list write the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/io/archive.h"
#include "base/result.h"
#include "record/objects/blob_store.h"

namespace athanor {

struct PackedMember {
  std::string name;
  uint64_t bytes = 0;
  bool operator==(const PackedMember&) const = default;
};

// The name and the text of a list in the job's folder of them.
std::string MembersName(const std::string& blob);
std::string MembersText(const std::vector<TarMember>& members);

// From the stored list. If there is none that can be read, as for outputs of older versions, from
// the archive, which may take as long as unpacking it; the list is then stored. kNotFound,
// kCorrupt: the blob is gone, or is not an archive.
Result<std::vector<PackedMember>> MembersOf(const std::string& dir, const BlobStore& blobs,
                                            const std::string& blob);

}  // namespace athanor
