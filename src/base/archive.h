// Tar archives (ustar, pax, GNU), plain or packed with gzip or zstd. One way in:
// everything that comes from outside as an archive is opened by ExtractTar, which
// creates each member beneath the given folder through the kernel's own check.
//
// Threads: each call stands alone; two may run at once on different folders.
// Errors name the member. kInvalid: refused (the why says which rule); kCorrupt:
// the bytes are no tar archive, or are damaged or cut short.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace athanor {

enum class Compression { kNone, kGzip, kZstd };

struct TarMember {
  enum class Type { kFile, kFolder, kSymlink, kHardlink, kOther };
  std::string name;  // as it would be extracted: without "./" before or "/" behind
  Type type = Type::kFile;
  uint64_t size = 0;
  uint32_t mode = 0;
  WallTime modified;
  std::string target;  // of a link
};

// Writes a tar of these names beneath `dir_fd`: regular files, folders (without
// what is in them) and symbolic links that stay beneath. The same content gives
// the same bytes: members sorted, owner 0, times to the second. Returns the bytes
// of all files. Anything else (sockets, devices, links that lead out) is refused,
// or left out and listed when `left_out` is given. kConflict: a file shrank meanwhile.
Result<uint64_t> PackTar(int dir_fd, const std::vector<std::string>& names, int out_fd,
                         Compression compression, std::vector<std::string>* left_out = nullptr);
// The same of everything below `dir`; links are not followed, and what is removed
// meanwhile is simply not there. `members`, when given, gets what ListTar would tell.
Result<uint64_t> PackTree(const std::string& dir, int out_fd, Compression compression,
                          std::vector<std::string>* left_out = nullptr,
                          std::vector<TarMember>* members = nullptr);

// The same of everything below an open folder.
Result<uint64_t> PackTree(int dir_fd, int out_fd, Compression compression,
                          std::vector<std::string>* left_out = nullptr,
                          std::vector<TarMember>* members = nullptr);
// Names of all that lies below an open folder, folders too; no link is followed.
Result<std::vector<std::string>> NamesBelow(int dir_fd);

struct ExtractLimits {
  uint64_t max_entries = 1'000'000;
  uint64_t max_bytes = uint64_t{1} << 40;  // of all files, holes counted
  // Unpacked to packed size; looked at once `ratio_from` bytes are unpacked.
  uint64_t max_ratio = 250;
  uint64_t ratio_from = uint64_t{64} << 20;
};

// Reads from the current offset of `in_fd`. Refuses absolute names, "..", links
// that lead out, hard links to anything but files of this archive, devices, FIFOs,
// and what is over a limit. Files replace files of the same name, so a second
// extraction over a half-done one is right. Set-uid, set-gid and sticky bits and
// owners are dropped; folders stay writable by the owner. After an error the
// folder holds what came before the refused member; the caller removes it.
Status ExtractTar(int in_fd, int dir_fd, const ExtractLimits& limits = {});

// What is inside, by name only: members ExtractTar would refuse are listed too.
Result<std::vector<TarMember>> ListTar(int in_fd, const ExtractLimits& limits = {});
// Writes the first regular file of that name to `out_fd` and returns its size.
// kNotFound when there is none.
Result<uint64_t> ExtractOne(int in_fd, std::string_view member, int out_fd,
                            const ExtractLimits& limits = {});

// Whether a link at `name` to `target` stays beneath the folder that `name` is
// relative to, whatever else lies there: ".." only at the front of the target, and
// no more of them than `name` has folders.
bool LinkStaysBeneath(std::string_view name, std::string_view target);

}  // namespace athanor
