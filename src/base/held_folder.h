// A HeldFolder is a folder that a program we do not trust may fill, empty, rename or replace by a
// link at any moment. It is named from a place above it that this program cannot replace, and the
// place is held open: each Open() starts there, and follows no link on the way. So what is read
// or written through it lies beneath the place, whatever was done to the name meanwhile.
//
// Copies share the place. Threads: safe from any; the object itself is never changed.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace athanor {

class HeldFolder {
 public:
  HeldFolder() = default;  // of nothing: Open() is kNotFound
  // The place is the folder that `path` lies in, which must be there; links that lead to it are
  // followed, once. `path` itself may be missing for now.
  static Result<HeldFolder> At(const std::string& path);

  // A folder below; the name may have several parts.
  HeldFolder operator/(std::string_view name) const;

  // As it is now, to be listed and opened from. kNotFound: not there. kDenied: it is a link, or a
  // part of its name is.
  Result<UniqueFd> Open() const;
  // The same; what is missing is made first.
  Result<UniqueFd> Make(mode_t mode = 0700) const;

  const std::string& path() const { return path_; }  // for messages: what it leads to may be anything

 private:
  std::shared_ptr<const UniqueFd> place_;  // shared: what follows a script lives on threads of its own
  std::string name_;                       // beneath the place
  std::string path_;
};

}  // namespace athanor
