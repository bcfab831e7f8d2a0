// Files and the one path resolver. Every path that comes from outside (an
// archive member, a request, a job file) is opened through OpenBeneath, which
// lets the kernel refuse absolute names, "..", and links that leave `dir_fd`.
// All descriptors are close-on-exec. Errors carry the path and errno's text.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/fd.h"
#include "base/result.h"

namespace athanor {

// kInvalid when there are more than `limit` bytes.
Result<std::string> ReadFile(const std::string& path, size_t limit = SIZE_MAX);
Result<std::string> ReadAll(int fd, size_t limit = SIZE_MAX);
Status WriteAll(int fd, std::string_view bytes);
// Writes to a temporary file next to `path`, fsyncs, renames, fsyncs the folder: after a crash, the
// file is completely the old one or completely the new one.
Status WriteFileAtomic(const std::string& path, std::string_view bytes, mode_t mode = 0600);
// The same without the fsyncs: complete, but possibly gone after a power cut.
Status ReplaceFile(const std::string& path, std::string_view bytes, mode_t mode = 0600);

Status MakeDirs(const std::string& path, mode_t mode = 0700);
Status RemoveTree(const std::string& path);  // succeeds when there is nothing to remove
bool Exists(const std::string& path);
Result<std::vector<std::string>> ListDir(const std::string& path);  // names, sorted
Result<std::vector<std::string>> ListDirAt(int dir_fd);             // the same for an open folder
Result<uint64_t> FreeBytes(const std::string& path);

// Names that may be used beneath a directory: relative, no "." or "..", no
// empty component, no NUL, no backslash, at most 4,096 bytes, 255 a component.
Status CheckRelativeName(std::string_view name);
// The same, but a backslash is an ordinary character: safe where the kernel resolves the name.
Status CheckNameBeneath(std::string_view name);
Result<UniqueFd> OpenDir(const std::string& path);
// openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS).
Result<UniqueFd> OpenBeneath(int dir_fd, const std::string& name, int flags, mode_t mode = 0600);
// Creates the missing folders of `name` (not its last part), each resolved beneath.
Status MakeParentsBeneath(int dir_fd, const std::string& name, mode_t mode = 0700);

std::string JoinPath(std::string_view a, std::string_view b);
std::string BaseName(std::string_view path);
std::string DirName(std::string_view path);

}  // namespace athanor
