// Tar archives (ustar, pax, GNU), plain or packed with gzip or zstd. Every archive that comes from
// outside is opened by ExtractTar, which creates each member beneath the given folder and lets the
// kernel check that.
//
// Threads: calls are independent; two may run at once on different folders. Errors name the member.
// kInvalid: refused (the why says which rule); kCorrupt: the bytes are not a tar archive, or are
// damaged or cut short.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/exec/clock.h"
#include "base/result.h"

namespace athanor {

enum class Compression { kNone, kGzip, kZstd };

struct TarMember {
  enum class Type { kFile, kFolder, kSymlink, kHardlink, kOther };
  std::string name;  // as it would be extracted: no leading "./", no trailing "/"
  Type type = Type::kFile;
  uint64_t size = 0;
  uint32_t mode = 0;
  WallTime modified;
  std::string target;  // of a link
};

// Writes a tar of everything below `dir`: regular files, folders and symbolic links that stay
// beneath. The same content gives the same bytes: members sorted, owner 0, times to the second.
// Returns the bytes of all files. Anything else (sockets, devices, links that lead outside) is
// refused, or skipped and listed in `left_out` if that is given. kConflict: a file shrank in the
// meantime. Links are not followed, and what is removed in the meantime is left out. `members`, if
// given, gets what ListTar would return.
Result<uint64_t> PackTree(const std::string& dir, int out_fd, Compression compression,
                          std::vector<std::string>* left_out = nullptr,
                          std::vector<TarMember>* members = nullptr);

// The same for everything below an open folder.
Result<uint64_t> PackTree(int dir_fd, int out_fd, Compression compression,
                          std::vector<std::string>* left_out = nullptr,
                          std::vector<TarMember>* members = nullptr);
// Names of everything below an open folder, including folders; links are not followed.
Result<std::vector<std::string>> NamesBelow(int dir_fd);

struct ExtractLimits {
  uint64_t max_entries = 1'000'000;
  uint64_t max_bytes = uint64_t{1} << 40;  // of all files, including holes
  // Unpacked to packed size; checked once `ratio_from` bytes are unpacked.
  uint64_t max_ratio = 250;
  uint64_t ratio_from = uint64_t{64} << 20;
};

// Reads from the current offset of `in_fd`. Refuses absolute names, "..", links that lead outside,
// hard links to anything other than files of this archive, devices, FIFOs, and what exceeds a
// limit. Files replace files of the same name, so extracting again over a half-done extraction
// gives the right result. Set-uid, set-gid and sticky bits and owners are dropped; folders stay
// writable by the owner. After an error the folder holds what came before the refused member; the
// caller removes it.
Status ExtractTar(int in_fd, int dir_fd, const ExtractLimits& limits = {});

// What is inside, by name only: members ExtractTar would refuse are listed too.
Result<std::vector<TarMember>> ListTar(int in_fd, const ExtractLimits& limits = {});
// Writes the first regular file of that name to `out_fd` and returns its size. kNotFound if there
// is none.
Result<uint64_t> ExtractOne(int in_fd, std::string_view member, int out_fd,
                            const ExtractLimits& limits = {});

// Whether a link at `name` to `target` stays beneath the folder that `name` is relative to,
// whatever else is in it: ".." only at the start of the target, and not more often than `name` has
// folders.
bool LinkStaysBeneath(std::string_view name, std::string_view target);

}  // namespace athanor
