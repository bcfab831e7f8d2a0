#include "base/io/held_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/io/files.h"
#include "base/text/text.h"

namespace athanor {

Result<HeldFolder> HeldFolder::At(const std::string& path) {
  HeldFolder folder;
  folder.name_ = BaseName(path);
  folder.path_ = path;
  ATHANOR_CHECK_OK(CheckRelativeName(folder.name_));
  ATHANOR_TRY(UniqueFd place, OpenDir(DirName(path)));
  folder.place_ = std::make_shared<const UniqueFd>(std::move(place));
  return folder;
}

HeldFolder HeldFolder::operator/(std::string_view name) const {
  HeldFolder below = *this;
  below.name_ = JoinPath(name_, name);
  below.path_ = JoinPath(path_, name);
  return below;
}

Result<UniqueFd> HeldFolder::Open() const {
  if (!place_) return Fail(ErrorCode::kNotFound, "no folder is held");
  auto opened = OpenBeneath(place_->get(), name_, O_RDONLY | O_DIRECTORY);
  if (opened) return opened;
  Error error = std::move(opened).error();
  error.what = "folder " + Printable(path_) + ": " + error.what;
  return Fail(std::move(error));
}

Result<UniqueFd> HeldFolder::Make(mode_t mode) const {
  if (!place_) return Fail(ErrorCode::kNotFound, "no folder is held");
  ATHANOR_CHECK_OK(MakeParentsBeneath(place_->get(), JoinPath(name_, "x"), mode));
  return Open();
}

}  // namespace athanor
