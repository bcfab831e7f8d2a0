// The listing of a source bundle: which files, links and empty folders it has and which blobs hold
// them. Its text is canonical (sorted, one way to write each entry), so the sha256 of the text
// names the source. Reading is strict: what ReadManifest accepts cannot leave the folder that it is
// unpacked into.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/fd.h"
#include "base/result.h"

namespace athanor {

struct BundleEntry {
  enum class Kind { kFile, kLink, kFolder };  // only empty folders are listed
  std::string path;                           // relative, see CheckRelativeName
  Kind kind = Kind::kFile;
  bool executable = false;
  uint64_t size = 0;
  std::string sha256;
  std::string target;  // of a link

  bool operator==(const BundleEntry&) const = default;
};

struct BundleManifest {
  std::vector<BundleEntry> entries;  // by path, bytewise
  uint64_t bytes = 0;                // of all files

  bool operator==(const BundleManifest&) const = default;
  const BundleEntry* Find(std::string_view path) const;
};

inline constexpr size_t kBundleEntryLimit = 200'000;
inline constexpr uint64_t kBundleByteLimit = 1ull << 40;
inline constexpr size_t kManifestTextLimit = 128u << 20;

// The entries must be sorted and pass what ReadManifest checks.
std::string WriteManifest(const BundleManifest& manifest);
// kCorrupt: not the canonical text of a bundle, an entry that leaves the folder ("..", absolute, a
// link out), one that is inside a file or link, too many entries.
Result<BundleManifest> ReadManifest(std::string_view text);

// A link is accepted only if it goes up first and then down ("../../lib/x"). Then no chain of such
// links can lead outside, whatever they point to.
Status CheckLinkTarget(std::string_view path, std::string_view target);

using OpenBlob = std::function<Result<UniqueFd>(const std::string& sha256)>;
// Creates everything in the empty folder `dir_fd`, each file checked against its hash (kCorrupt)
// and none followed through a link. After an error, what was created so far stays; the caller
// removes the folder.
Status LayOut(const BundleManifest& manifest, int dir_fd, const OpenBlob& open_blob);

}  // namespace athanor
