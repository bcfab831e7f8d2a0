#include "run/agent/working_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/format.h"
#include "base/text/ignore.h"
#include "base/text/text.h"
#include "job/manifest.h"

namespace athanor {
namespace {

// Not the defaults of the source, which also leave out what trackers write (lightning_logs/). Event
// files are kept with the run's metrics, with secrets taken out (event_keeper.h).
constexpr std::string_view kNoise[] = {".git",         ".hg",
                                       ".svn",         ".venv/",
                                       "venv/",        "__pycache__/",
                                       "*.pyc",        "node_modules/",
                                       ".DS_Store",    ".mypy_cache/",
                                       ".tox/",        ".ipynb_checkpoints/",
                                       ".ruff_cache/", ".pytest_cache/",
                                       "*.tfevents.*"};
constexpr size_t kToldFiles = 10;

struct Candidate {
  BundleEntry entry;  // without its hash
  size_t depth = 0;
};

// The last pattern that matches a file, or one of its folders, decides.
class Patterns {
 public:
  explicit Patterns(const std::vector<std::string>& texts) {
    for (std::string_view text : texts) {
      while (StartsWith(text, "./")) text.remove_prefix(2);
      IgnorePattern pattern(text);
      if (!pattern.is_blank()) patterns_.push_back(std::move(pattern));
    }
  }
  bool Wants(std::string_view path) const {
    // Only patterns with '!', or none: everything but these.
    bool wanted = patterns_.empty() || patterns_.front().is_negated();
    for (const auto& pattern : patterns_) {
      if (Matches(pattern, path)) wanted = !pattern.is_negated();
    }
    return wanted;
  }

 private:
  static bool Matches(const IgnorePattern& pattern, std::string_view path) {
    for (size_t slash = path.find('/'); slash != std::string_view::npos;
         slash = path.find('/', slash + 1)) {
      if (pattern.Matches(path.substr(0, slash), true)) return true;
    }
    return pattern.Matches(path, false);
  }
  std::vector<IgnorePattern> patterns_;
};

// Deleted in an overlay.
bool IsWhiteout(const struct stat& info) { return S_ISCHR(info.st_mode) && info.st_rdev == 0; }

// "Permission denied" of "open runs/x: Permission denied": the name is shown next to it.
std::string Unreadable(const Error& error) {
  const size_t colon = error.what.rfind(": ");
  return "it cannot be read: " +
         (colon == std::string::npos ? error.what : error.what.substr(colon + 2));
}

Result<BundleManifest> ReadListing(JobFiles& files, const std::string& sha256) {
  if (sha256.empty()) return BundleManifest{};
  ATHANOR_TRY(const auto fd, files.Get(Shelf::kBlobs, sha256));
  ATHANOR_TRY(const auto text, ReadAll(fd.get(), kManifestTextLimit));
  return ReadManifest(text);
}

class Keeper {
 public:
  Keeper(const WorkingFolder& folder, const OutputSpec& spec, JobFiles& files)
      : folder_(folder), spec_(spec), files_(files), wanted_(spec.files) {
    for (const auto text : kNoise) noise_.emplace_back(text);
  }

  Result<std::optional<Output>> Run() {
    ATHANOR_TRY(source_, ReadListing(files_, folder_.source));
    auto root = folder_.dir.Open();
    if (root) {
      root_ = std::move(*root);
      Walk();
    } else if (root.error().code != ErrorCode::kNotFound) {
      Leave("the working folder", 0, "the script put a link in its place");
    }
    ATHANOR_CHECK_OK(Store());
    ATHANOR_CHECK_OK(AddEarlier());
    if (kept_.entries.empty() && left_.files == 0) return std::optional<Output>();
    return Finish();
  }

 private:
  void Leave(std::string_view name, uint64_t bytes, std::string why) {
    ++left_.files;
    left_.bytes += bytes;
    left_.largest.push_back({Printable(name), bytes, std::move(why)});
    if (left_.largest.size() >= 2 * kToldFiles) KeepLargest();
  }

  void KeepLargest() {
    std::stable_sort(left_.largest.begin(), left_.largest.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    if (left_.largest.size() > kToldFiles) left_.largest.resize(kToldFiles);
  }

  bool IsNoise(std::string_view path, bool is_dir) const {
    return std::any_of(noise_.begin(), noise_.end(),
                       [&](const IgnorePattern& pattern) { return pattern.Matches(path, is_dir); });
  }

  // Folders by name from the top, however deep: a name has at most 4,096 bytes.
  void Walk() {
    std::vector<std::string> folders = {""};
    while (!folders.empty()) {
      const std::string folder = std::move(folders.back());
      folders.pop_back();
      auto opened = folder.empty() ? Result<UniqueFd>(UniqueFd(::dup(root_.get())))
                                   : OpenBeneath(root_.get(), folder, O_RDONLY | O_DIRECTORY);
      auto names = opened ? ListDirAt(opened->get())
                          : Result<std::vector<std::string>>(Fail(opened.error()));
      if (!names) {
        if (wanted_.Wants(folder)) Leave(folder + "/", 0, Unreadable(names.error()));
        continue;
      }
      // A virtual environment, whatever its name.
      struct stat marker {};
      if (!folder.empty() &&
          ::fstatat(opened->get(), "pyvenv.cfg", &marker, AT_SYMLINK_NOFOLLOW) == 0) {
        continue;
      }
      for (const auto& name : *names) {
        Look(opened->get(), name, folder.empty() ? name : folder + "/" + name, folders);
      }
    }
  }

  void Look(int dir, const std::string& name, const std::string& path,
            std::vector<std::string>& folders) {
    struct stat info {};
    if (::fstatat(dir, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
    const bool is_dir = S_ISDIR(info.st_mode);
    if (IsNoise(path, is_dir)) return;
    if (is_dir) {
      if (std::find(folder_.skip.begin(), folder_.skip.end(), path) != folder_.skip.end()) return;
      folders.push_back(path);
      return;
    }
    // Pipes, sockets and devices hold nothing.
    if (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) return;
    if (IsWhiteout(info) || !wanted_.Wants(path)) return;
    const auto bytes = S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
    if (const auto named = CheckRelativeName(path); !named) {
      Leave(path, bytes, named.error().what);
      return;
    }
    Candidate found;
    found.entry.path = path;
    found.depth = static_cast<size_t>(std::count(path.begin(), path.end(), '/'));
    if (S_ISLNK(info.st_mode)) return LookAtLink(dir, name, std::move(found));
    found.entry.size = bytes;
    found.entry.executable = (info.st_mode & 0100) != 0;
    if (IsOfSource(dir, name, found.entry)) return;
    found_.push_back(std::move(found));
  }

  void LookAtLink(int dir, const std::string& name, Candidate found) {
    char target[PATH_MAX];
    const ssize_t length = ::readlinkat(dir, name.c_str(), target, sizeof target);
    if (length <= 0 || length == static_cast<ssize_t>(sizeof target)) return;
    found.entry.kind = BundleEntry::Kind::kLink;
    found.entry.target.assign(target, static_cast<size_t>(length));
    const BundleEntry* before = source_.Find(found.entry.path);
    if (before != nullptr && before->target == found.entry.target) return;
    if (!CheckLinkTarget(found.entry.path, found.entry.target)) {
      Leave(found.entry.path, 0,
            "it is a link that leads out of the folder, to " + Printable(found.entry.target));
      return;
    }
    found_.push_back(std::move(found));
  }

  // By its bytes: times may be anything, and an overlay also has files that were only opened.
  bool IsOfSource(int dir, const std::string& name, const BundleEntry& entry) const {
    const BundleEntry* before = source_.Find(entry.path);
    if (before == nullptr || before->kind != BundleEntry::Kind::kFile ||
        before->size != entry.size) {
      return false;
    }
    const UniqueFd file(
        ::openat(dir, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file) return false;
    const auto sha256 = Sha256File(file.get());
    return sha256 && *sha256 == before->sha256;
  }

  bool HasRoomFor(uint64_t bytes) const {
    return kept_.entries.size() < kWorkingFilesLimit && kept_.bytes <= spec_.limit &&
           bytes <= spec_.limit - kept_.bytes;
  }

  std::string WhyNot(uint64_t bytes) const {
    if (kept_.entries.size() >= kWorkingFilesLimit) {
      return fmt::format("there are more than {} files", kWorkingFilesLimit);
    }
    const auto limit = HumanBytes(spec_.limit);
    return bytes > spec_.limit ? "it is larger than the limit of " + limit
                               : "all files together are larger than the limit of " + limit;
  }

  Status Store() {
    std::sort(found_.begin(), found_.end(), [](const Candidate& a, const Candidate& b) {
      return std::tie(a.depth, a.entry.size, a.entry.path) <
             std::tie(b.depth, b.entry.size, b.entry.path);
    });
    for (auto& [entry, depth] : found_) {
      if (!HasRoomFor(entry.size)) {
        Leave(entry.path, entry.size, WhyNot(entry.size));
        continue;
      }
      if (entry.kind == BundleEntry::Kind::kFile) {
        auto file = OpenBeneath(root_.get(), entry.path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
        if (!file) {
          Leave(entry.path, entry.size, Unreadable(file.error()));
          continue;
        }
        struct stat info {};
        if (::fstat(file->get(), &info) != 0) return FailErrno("stat", errno);
        entry.size = static_cast<uint64_t>(info.st_size);
        auto blob = files_.Put(Shelf::kBlobs, file->get(), 0, entry.size, {});
        if (!blob && blob.error().code == ErrorCode::kCorrupt) {
          Leave(entry.path, entry.size, "it changed while it was stored");
          continue;
        }
        if (!blob) return Fail(blob.error());
        entry.sha256 = blob->sha256;
      }
      Add(std::move(entry));
    }
    return Ok();
  }

  void Add(BundleEntry entry) {
    for (size_t slash = entry.path.find('/'); slash != std::string::npos;
         slash = entry.path.find('/', slash + 1)) {
      folders_.insert(entry.path.substr(0, slash));
    }
    names_.insert(entry.path);
    kept_.bytes += entry.size;
    kept_.entries.push_back(std::move(entry));
  }

  // Whether it can be next to what is stored already: a name is a file or a folder, not both.
  bool Fits(const std::string& path) const {
    if (names_.contains(path) || folders_.contains(path)) return false;
    for (size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      if (names_.contains(path.substr(0, slash))) return false;
    }
    return true;
  }

  Status AddEarlier() {
    auto earlier = ReadListing(files_, folder_.kept);
    if (!earlier && earlier.error().code == ErrorCode::kNotFound) return Ok();
    if (!earlier) return Fail(earlier.error());
    std::vector<BlobRef> blobs;
    for (const auto& entry : earlier->entries) {
      if (entry.kind == BundleEntry::Kind::kFile) blobs.push_back({entry.sha256, entry.size});
    }
    ATHANOR_TRY(const auto there, files_.Has(Shelf::kBlobs, blobs));
    size_t next = 0;
    for (auto& entry : earlier->entries) {
      // Gone only if someone removed it by hand.
      if (entry.kind == BundleEntry::Kind::kFile && !there[next++]) continue;
      if (!Fits(entry.path)) continue;
      if (!HasRoomFor(entry.size)) {
        Leave(entry.path, entry.size, WhyNot(entry.size));
        continue;
      }
      Add(std::move(entry));
    }
    return Ok();
  }

  Result<std::optional<Output>> Finish() {
    auto& entries = kept_.entries;
    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    ATHANOR_TRY(const auto listing, PutText(files_, Shelf::kBlobs, WriteManifest(kept_)));
    Output output;
    output.name = Output::kFiles;
    output.blob = listing.sha256;
    output.bytes = kept_.bytes;
    output.files = entries.size();
    uint64_t most = 0;
    for (const auto& entry : entries) {
      const bool first = output.largest.empty();
      if ((!first && entry.size <= most) || Printable(entry.path) != entry.path) continue;
      output.largest = entry.path;
      most = entry.size;
    }
    KeepLargest();
    output.left_out = std::move(left_);
    return std::optional(std::move(output));
  }

  const WorkingFolder& folder_;
  const OutputSpec& spec_;
  JobFiles& files_;
  const Patterns wanted_;
  std::vector<IgnorePattern> noise_;
  BundleManifest source_;
  UniqueFd root_;
  std::vector<Candidate> found_;
  BundleManifest kept_;
  std::unordered_set<std::string> names_;    // of kept_
  std::unordered_set<std::string> folders_;  // that these lie in
  LeftOut left_;
};

}  // namespace

Result<std::optional<Output>> KeepWorkingFiles(const WorkingFolder& folder, const OutputSpec& spec,
                                               JobFiles& files) {
  if (!spec.keep) return std::optional<Output>();
  return Keeper(folder, spec, files).Run();
}

}  // namespace athanor
