// Checkpoints: each manifest can be read, and the parts that it names exist.
#include <sys/stat.h>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "record/append_file.h"
#include "record/checkpoints/checkpoint_manifest.h"
#include "record/checkpoints/checkpoint_store.h"
#include "record/fsck/checker.h"

namespace athanor {
namespace {

constexpr std::string_view kMark = "athanor-checkpoint ";
constexpr size_t kManifestLimit = 64u << 20;
constexpr char kPutAside[] = "ath fsck --repair    puts it aside: an older one is used then";

bool IsFolder(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool IsFile(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// Why the part is not as the manifest says; empty if it is. Parts are in a store of the job, in one
// of its folders.
std::string WrongWith(const std::string& sha256, uint64_t size,
                      const std::vector<std::string>& folders, bool deep) {
  for (const auto& folder : folders) {
    const auto fd = OpenToRead(fmt::format("{}/{}/{}", folder, sha256.substr(0, 2), sha256));
    struct stat info {};
    if (!fd || ::fstat(fd->get(), &info) != 0) continue;
    if (static_cast<uint64_t>(info.st_size) != size) {
      return fmt::format("part {} has {} bytes instead of {}", sha256, info.st_size, size);
    }
    if (!deep) return {};
    const auto found = Sha256File(fd->get());
    return found && *found == sha256 ? std::string() : "part " + sha256 + " has other bytes";
  }
  return "part " + sha256 + " is missing";
}

}  // namespace

void Checker::CheckManifestFile(const std::string& path, const std::vector<std::string>& folders) {
  const auto text = ReadFile(path, kManifestLimit);
  if (!text || !StartsWith(*text, kMark)) return;
  ++report_.checkpoints;
  auto manifest = ParseManifest(*text);
  std::string why = manifest ? "" : manifest.error().what;
  if (manifest && !manifest->shared) {
    for (const auto& file : manifest->files) {
      for (size_t i = 0; i < file.parts.size() && why.empty(); ++i) {
        const uint64_t size = PartSize(file.size, manifest->part_bytes, i);
        why = WrongWith(file.parts[i], size, folders, options_.deep);
        if (options_.deep) report_.bytes += size;
      }
    }
  }
  if (why.empty()) return;
  Finding& finding = Add("checkpoint",
                         manifest ? "checkpoint " + manifest->info.id + " is not whole"
                                  : "the listing of a checkpoint cannot be read",
                         why, kPutAside, path);
  if (options_.repair) Settle(finding, PutAside(path));
}

void Checker::CheckFenceIn(const std::string& folder) {
  const Status right = CheckpointStore::CheckFence(folder);
  if (right.ok()) return;
  // The next attempt has a higher number than all before, so names are not reused without it.
  Finding& finding = Add("checkpoint", "what is kept about attempts is damaged",
                         "until it is put aside the job keeps no checkpoints",
                         "ath fsck --repair    puts it aside", JoinPath(folder, "fence"));
  if (options_.repair) Settle(finding, PutAside(JoinPath(folder, "fence")));
}

Status Checker::CheckCheckpoints() {
  const auto jobs = ListDir(layout_.jobs());
  if (!jobs) return Ok();
  for (const auto& job : *jobs) {
    const std::string folder = layout_.job(job);
    std::vector<std::string> folders;
    for (const auto& name : ListDir(folder).value_or(std::vector<std::string>())) {
      // We do not judge what the script itself wrote.
      if (name != "checkpoints" && name != "events" && IsFolder(JoinPath(folder, name))) {
        folders.push_back(JoinPath(folder, name));
      }
    }
    for (const auto& inner : folders) {
      if (IsFile(JoinPath(inner, "fence"))) CheckFenceIn(inner);
      for (const auto& name : ListDir(inner).value_or(std::vector<std::string>())) {
        const std::string path = JoinPath(inner, name);
        if (IsFile(path)) CheckManifestFile(path, folders);
      }
    }
  }
  return Ok();
}

}  // namespace athanor
