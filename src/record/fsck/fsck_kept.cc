// What else is kept as plain files: the key of tokens, event files of jobs, artifacts of runs.
#include <sys/stat.h>

#include <algorithm>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "eventfile/event_reader.h"
#include "record/append_file.h"
#include "record/artifacts/artifact_sums.h"
#include "record/fsck/checker.h"
#include "record/keys/key_file.h"

namespace athanor {
namespace {

constexpr size_t kSumsLimit = size_t{1} << 30;
constexpr int kDeepest = 64;  // folders of event files

bool IsA(const std::string& path, mode_t kind) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && (info.st_mode & S_IFMT) == kind;
}

}  // namespace

void Checker::CheckIngestKey() {
  if (!Exists(layout_.ingest_key())) return;
  if (const auto key = ReadKeyFile(layout_.ingest_key()); !key) {
    Add("key", key.error().what, key.error().why, key.error().hint, layout_.ingest_key());
  }
}

void Checker::CheckEventFile(const std::string& path) {
  auto fd = OpenToRead(path);
  if (!fd) return;
  EventReader reader(std::move(*fd));
  while (true) {
    const auto more = reader.Poll([](uint64_t, std::string_view) {});
    if (!more || !*more) break;
  }
  report_.bytes += reader.offset();
  if (reader.damage().empty()) return;
  uint64_t bytes = 0;
  for (const auto& damage : reader.damage()) bytes += damage.bytes;
  Add("eventfile", fmt::format("an event file is damaged: {} bytes of it cannot be read", bytes),
      fmt::format("{} places, the first at byte {}; the rest is shown", reader.damage().size(),
                  reader.damage().front().offset),
      kRestore, path);
}

void Checker::CheckEventFolder(const std::string& folder, int depth) {
  if (depth > kDeepest) return;
  for (const auto& name : ListDir(folder).value_or(std::vector<std::string>())) {
    const std::string path = JoinPath(folder, name);
    if (IsA(path, S_IFDIR)) CheckEventFolder(path, depth + 1);
    // As TensorBoard tells them.
    if (IsA(path, S_IFREG) && name.find("tfevents") != std::string::npos) CheckEventFile(path);
  }
}

void Checker::CheckEventFiles() {
  for (const auto& job : ListDir(layout_.jobs()).value_or(std::vector<std::string>())) {
    CheckEventFolder(layout_.job(job) + "/events", 0);
  }
}

void Checker::CheckArtifact(const std::string& path, const std::vector<ArtifactSum>& sums) {
  const std::string file = JoinPath(layout_.artifacts(), path);
  if (!IsA(file, S_IFREG)) return;  // removed since
  const auto fd = OpenToRead(file);
  struct stat info {};
  if (!fd || ::fstat(fd->get(), &info) != 0) {
    Add("artifact", "an artifact cannot be opened: " + Printable(path),
        fd ? "stat failed" : fd.error().what, "ls -l " + ShellQuote(file), file);
    return;
  }
  ArtifactSum found{static_cast<uint64_t>(info.st_size), ""};
  bool right = std::any_of(sums.begin(), sums.end(),
                           [&](const ArtifactSum& sum) { return sum.size == found.size; });
  std::string why = fmt::format("{} bytes instead of {}", found.size, sums.back().size);
  if (right && options_.deep) {
    report_.bytes += found.size;
    found.sha256 = Sha256File(fd->get()).value_or("");
    right = std::find(sums.begin(), sums.end(), found) != sums.end();
    why = "its bytes have the sha256 " + found.sha256;
  }
  if (!right) Add("artifact", "an artifact is damaged: " + Printable(path), why, kRestore, file);
}

void Checker::CheckArtifactsBeneath(const std::string& folder, int depth) {
  const std::string base =
      folder.empty() ? layout_.artifacts() : JoinPath(layout_.artifacts(), folder);
  const std::string place = JoinPath(base, kArtifactSums);
  if (Exists(place)) {
    const auto text = ReadFile(place, kSumsLimit);
    const auto sums = ReadArtifactSums(text.value_or(""));
    if (!text || sums.damaged > 0) {
      Add("artifact", "what is known of the artifacts in " + Printable(folder) + " is damaged",
          text ? fmt::format("{} lines; the artifacts that they were about are not looked at",
                             sums.damaged)
               : text.error().what,
          kRestore, place);
    }
    for (const auto& [path, known] : sums.by_path) CheckArtifact(path, known);
  }
  if (depth == 2) return;
  for (const auto& name : ListDir(base).value_or(std::vector<std::string>())) {
    if (IsA(JoinPath(base, name), S_IFDIR)) {
      CheckArtifactsBeneath(folder.empty() ? name : JoinPath(folder, name), depth + 1);
    }
  }
}

}  // namespace athanor
