// A HeldFolder is a folder that a program we do not trust can fill, empty, rename or replace by a
// link at any moment. It is named relative to a parent that this program cannot replace, and that
// parent is kept open: each Open() starts there and follows no link on the way. So everything that
// is read or written through it is beneath the parent, whatever was done to the name in the
// meantime.
//
// Copies share the parent. Threads: safe from any; the object itself never changes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/io/fd.h"
#include "base/result.h"

namespace athanor {

class HeldFolder {
 public:
  HeldFolder() = default;  // of nothing: Open() returns kNotFound
  // The parent is the folder that contains `path`. It must exist; links that lead to it are
  // followed, once. `path` itself may be missing for now.
  static Result<HeldFolder> At(const std::string& path);

  // A folder below it; the name may have several parts.
  HeldFolder operator/(std::string_view name) const;

  // Opens it as it is now, to list it and to open from. kNotFound: it does not exist. kDenied: it
  // is a link, or a part of its name is.
  Result<UniqueFd> Open() const;
  // The same; missing folders are created first.
  Result<UniqueFd> Make(mode_t mode = 0700) const;

  const std::string& path() const { return path_; }  // for messages: it may lead to anything

 private:
  std::shared_ptr<const UniqueFd> place_;  // shared: what follows a script runs on its own threads
  std::string name_;                       // beneath the place
  std::string path_;
};

}  // namespace athanor
