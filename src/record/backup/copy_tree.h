// TreeCopy copies files and folders that are in use: files that are removed meanwhile are left out,
// files that grow are copied with the length they had. Sockets, FIFOs and devices are left out.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace athanor {

class TreeCopy {
 public:
  // Blobs never change, so a blob on the same file system can be shared.
  enum class Blobs { kLink, kCopy };
  explicit TreeCopy(Blobs blobs) : blobs_(blobs) {}

  // Names in a folder; none if it does not exist or is not a folder.
  Result<std::vector<std::string>> Names(const std::string& folder) const;
  // The folder of `to` must exist. If `from` is missing, nothing is copied; if `to` exists already,
  // it is not touched.
  Status File(const std::string& from, const std::string& to);
  // Makes a folder and its parents; a folder that it made before is not checked again.
  Status Folder(const std::string& folder);
  // `leave`: names directly in `from` that are not copied.
  Status Tree(const std::string& from, const std::string& to,
              const std::vector<std::string>& leave = {});

  uint64_t files() const { return files_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t linked() const { return linked_; }

 private:
  Status CopyBytes(int from, int to, uint64_t size, const std::string& path);

  const Blobs blobs_;
  std::unique_ptr<char[]> buffer_;  // made for the first file: most files are small, and many
  std::set<std::string> folders_;
  uint64_t files_ = 0;
  uint64_t bytes_ = 0;
  uint64_t linked_ = 0;
};

}  // namespace athanor
