#include "record/fsck/fsck.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/exec/clock.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "record/fsck/checker.h"

namespace athanor {

size_t FsckReport::left() const {
  return static_cast<size_t>(std::count_if(findings.begin(), findings.end(),
                                           [](const auto& finding) { return !finding.repaired; }));
}

Finding& Checker::Add(std::string part, std::string what, std::string why, std::string hint,
                      std::string where) {
  report_.findings.push_back(
      {std::move(part), std::move(what), std::move(why), std::move(hint), std::move(where), false});
  return report_.findings.back();
}

void Checker::Settle(Finding& finding, const Status& done) {
  finding.repaired = done.ok();
  if (done.ok()) {
    finding.hint.clear();
  } else {
    finding.why += (finding.why.empty() ? "" : "; ") + ("not repaired: " + done.error().what);
  }
}

namespace {

// A free name below lost+found for `path`: its own beneath the home, then with a number.
Result<std::string> PlaceFor(const StoreLayout& layout, const std::string& path) {
  std::string beneath = path;
  if (StartsWith(path, layout.root + "/")) beneath = path.substr(layout.root.size() + 1);
  const std::string wanted = JoinPath(layout.lost_and_found(), beneath);
  ATHANOR_CHECK_OK(MakeDirs(DirName(wanted)));
  std::string place = wanted;
  for (int number = 2; Exists(place); ++number) place = fmt::format("{}.{}", wanted, number);
  return place;
}

}  // namespace

Result<std::string> Checker::PlaceAside(const std::string& path) const {
  return PlaceFor(layout_, path);
}

Status Checker::PutAside(const std::string& path) {
  ATHANOR_TRY(const std::string place, PlaceFor(layout_, path));
  if (::rename(path.c_str(), place.c_str()) != 0) return FailErrno("move " + path, errno);
  return Ok();
}

Status Checker::CopyAside(const std::string& path) {
  ATHANOR_TRY(const std::string place, PlaceFor(layout_, path));
  ATHANOR_TRY(const std::string bytes, ReadFile(path));
  return WriteFileAtomic(place, bytes);
}

Result<FsckReport> Checker::Run() {
  ATHANOR_CHECK_OK(CheckDatabase());
  ATHANOR_CHECK_OK(CheckCheckpoints());
  CheckBlobs();
  ATHANOR_CHECK_OK(CheckSeries());
  ATHANOR_CHECK_OK(CheckLogs());
  ATHANOR_CHECK_OK(CheckObjects());
  CheckIngestKey();
  CheckEventFiles();
  CheckArtifactsBeneath("", 0);
  ATHANOR_CHECK_OK(CheckLeftovers());
  return std::move(report_);
}

Result<FsckReport> Fsck(const StoreLayout& layout, const FsckOptions& options) {
  if (!Exists(layout.database())) {
    return Fail(Error{ErrorCode::kNotFound, "there is no store in " + layout.root,
                      "is ATHANOR_HOME the right folder? `ath serve` makes a new one there"}
                    .Id("ATH-V0021"));
  }
  return Checker(layout, options).Run();
}

}  // namespace athanor
