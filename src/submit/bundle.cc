#include "submit/bundle.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>

#include "base/files.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/text.h"
#include "submit/errors.h"
#include "submit/hash_cache.h"

namespace athanor {
namespace {

constexpr uint64_t kDefaultTotal = 200'000'000;
constexpr uint64_t kDefaultFile = 50'000'000;
constexpr size_t kIgnoreFileLimit = 1 << 20;
constexpr size_t kSeenLimit = 1'000'000;
constexpr size_t kNoteLimit = 50;

struct Found {
  BundleEntry entry;
  FileStamp stamp;
};

Error WithId(Error error, std::string_view id, std::string hint) {
  error.id = id;
  if (error.hint.empty()) error.hint = std::move(hint);
  return error;
}

Result<std::vector<std::string>> NamesIn(int folder_fd, const std::string& shown) {
  const auto close = [](DIR* dir) { ::closedir(dir); };
  // A descriptor of its own: fdopendir takes it, and the stat calls need one too.
  const int copy = ::openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return FailErrno("open " + shown, errno);
  const std::unique_ptr<DIR, decltype(close)> dir(::fdopendir(copy), close);
  if (!dir) {
    const int failure = errno;
    ::close(copy);
    return FailErrno("open " + shown, failure);
  }
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return FailErrno("list " + shown, errno);
  std::sort(names.begin(), names.end());
  return names;
}

std::string Joined(std::string_view folder, std::string_view name) {
  return folder.empty() ? std::string(name) : fmt::format("{}/{}", folder, name);
}

// The first pass: names, kinds and sizes.
class Walk {
 public:
  Walk(int root, const ScanOptions& options, SourceTree& tree)
      : root_(root), options_(options), tree_(tree) {}

  Result<std::vector<Found>> Run() {
    std::vector<std::string> folders{""};
    while (!folders.empty()) {
      const std::string folder = std::move(folders.back());
      folders.pop_back();
      ATHANOR_CHECK_OK(ReadFolder(folder, folders));
    }
    std::sort(found_.begin(), found_.end(),
              [](const Found& a, const Found& b) { return a.entry.path < b.entry.path; });
    if (unlisted_notes_ > 0) {
      tree_.notes.push_back(fmt::format("{} more entries were left out", unlisted_notes_));
    }
    return std::move(found_);
  }

 private:
  void Note(std::string note) {
    if (tree_.notes.size() < kNoteLimit) {
      tree_.notes.push_back(std::move(note));
    } else {
      ++unlisted_notes_;
    }
  }

  void AddRules(int folder_fd, const std::string& folder, const std::vector<std::string>& names) {
    constexpr std::pair<std::string_view, IgnoreRules::Layer> kFiles[] = {
        {".gitignore", IgnoreRules::Layer::kGit}, {".athanorignore", IgnoreRules::Layer::kAthanor}};
    for (const auto& [name, layer] : kFiles) {
      if (!std::binary_search(names.begin(), names.end(), name)) continue;
      // Git does not follow a link here either; O_NONBLOCK: it may be a pipe.
      const auto file = OpenBeneath(folder_fd, std::string(name), O_RDONLY | O_NONBLOCK);
      struct stat info {};
      if (!file || ::fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
      const auto text = ReadAll(file->get(), kIgnoreFileLimit);
      if (!text) {
        Note(fmt::format("{} could not be read", Printable(Joined(folder, name))));
        continue;
      }
      const std::string& prefix = tree_.rules.prefix();
      tree_.rules.Add(layer, folder.empty() ? prefix : Joined(prefix, folder), *text,
                      Joined(folder, name));
    }
  }

  Status ReadFolder(const std::string& folder, std::vector<std::string>& folders) {
    const std::string shown = folder.empty() ? "the source folder" : Printable(folder);
    const auto opened =
        folder.empty() ? OpenDir(tree_.dir) : OpenBeneath(root_, folder, O_RDONLY | O_DIRECTORY);
    if (!opened) {
      return Fail(WithId(opened.error(), "ATH-S0120",
                         fmt::format("make it readable, or: echo {} >> .athanorignore",
                                     ShellQuote("/" + folder + "/"))));
    }
    ATHANOR_TRY(const auto names, NamesIn(opened->get(), shown));
    AddRules(opened->get(), folder, names);
    size_t kept = 0;
    for (const auto& name : names) {
      ATHANOR_TRY(const bool keep, ReadEntry(opened->get(), folder, name, folders));
      kept += keep ? 1 : 0;
    }
    if (kept == 0 && !folder.empty()) {
      Found empty;
      empty.entry.path = folder;
      empty.entry.kind = BundleEntry::Kind::kFolder;
      return Take(std::move(empty));
    }
    return Ok();
  }

  Result<bool> ReadEntry(int folder_fd, const std::string& folder, const std::string& name,
                         std::vector<std::string>& folders) {
    struct stat info {};
    // Gone again: as if it had never been there.
    if (::fstatat(folder_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
    if (++seen_ > kSeenLimit) return Fail(TooMany());
    Found found;
    found.entry.path = Joined(folder, name);
    const std::string& path = found.entry.path;
    if (tree_.rules.OnEntry(path, S_ISDIR(info.st_mode)).ignored) return false;
    if (!CheckRelativeName(path).ok()) {
      Note(fmt::format("{} was left out: its name cannot be packaged", Printable(path)));
      return false;
    }
    if (S_ISDIR(info.st_mode)) {
      if (::faccessat(folder_fd, (name + "/pyvenv.cfg").c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        Note(fmt::format("{}/ was left out: it is a virtual environment", Printable(path)));
        return false;
      }
      folders.push_back(path);
      return true;
    }
    if (S_ISLNK(info.st_mode)) {
      if (!ReadLink(folder_fd, name, found.entry)) return false;
    } else if (S_ISREG(info.st_mode)) {
      found.entry.size = static_cast<uint64_t>(info.st_size);
      found.entry.executable = (info.st_mode & 0100) != 0;
      found.stamp = FileStamp::Of(info);
    } else {
      Note(fmt::format("{} was left out: it is no file, folder or link", Printable(path)));
      return false;
    }
    ATHANOR_CHECK_OK(Take(std::move(found)));
    return true;
  }

  bool ReadLink(int folder_fd, const std::string& name, BundleEntry& entry) {
    char target[PATH_MAX];
    const ssize_t length = ::readlinkat(folder_fd, name.c_str(), target, sizeof target);
    if (length < 0) return false;
    entry.kind = BundleEntry::Kind::kLink;
    entry.target.assign(target, static_cast<size_t>(length));
    const Status inside = CheckLinkTarget(entry.path, entry.target);
    if (!inside.ok()) {
      Note(fmt::format("{}, so it was left out; give the data as a channel: -i NAME=PATH",
                       inside.error().what));
    }
    return inside.ok();
  }

  Status Take(Found found) {
    if (found_.size() >= options_.max_files) return Fail(TooMany());
    found_.push_back(std::move(found));
    return Ok();
  }

  Error TooMany() const {
    // Which top folder they are in; the walk has not seen the rest, so it says "so far".
    std::map<std::string, size_t> folders;
    for (const auto& found : found_) {
      const size_t slash = found.entry.path.find('/');
      if (slash != std::string::npos) ++folders[found.entry.path.substr(0, slash + 1)];
    }
    const auto most = std::max_element(folders.begin(), folders.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    Error error;
    error.code = ErrorCode::kInvalid;
    error.id = "ATH-S0122";
    error.what = "the source has too many files";
    error.why = fmt::format("more than {}", options_.max_files);
    error.hint = "run in the folder of the script alone";
    if (most != folders.end()) {
      error.why += fmt::format("; {} so far in {}", most->second, Printable(most->first));
      error.hint = fmt::format("echo {} >> .athanorignore", ShellQuote("/" + most->first));
    }
    return error;
  }

  const int root_;
  const ScanOptions& options_;
  SourceTree& tree_;
  std::vector<Found> found_;
  size_t seen_ = 0;
  size_t unlisted_notes_ = 0;
};

// The parts of [begin, end), all beneath `folder`, one per file or sub-folder.
using Iterator = std::vector<Found>::const_iterator;
struct Part {
  SourceShare share;
  Iterator begin;
  Iterator end;
};

std::vector<Part> PartsOf(Iterator begin, Iterator end, const std::string& folder) {
  std::vector<Part> parts;
  for (auto at = begin; at != end; ++at) {
    const size_t slash = at->entry.path.find('/', folder.size());
    const std::string name =
        slash == std::string::npos ? at->entry.path : at->entry.path.substr(0, slash + 1);
    if (parts.empty() || parts.back().share.path != name) parts.push_back({{name, 0}, at, at});
    parts.back().share.bytes += at->entry.size;
    parts.back().end = at + 1;
  }
  return parts;
}

// The five largest parts of the source; a folder that is nearly all one of its own
// parts is replaced by that part, so that what is named is what to leave out.
std::vector<SourceShare> Largest(const std::vector<Found>& found) {
  auto parts = PartsOf(found.begin(), found.end(), "");
  const auto larger = [](const Part& a, const Part& b) { return a.share.bytes > b.share.bytes; };
  std::stable_sort(parts.begin(), parts.end(), larger);
  if (parts.size() > 5) parts.resize(5);
  std::vector<SourceShare> largest;
  for (auto& part : parts) {
    while (EndsWith(part.share.path, "/")) {
      auto inner = PartsOf(part.begin, part.end, part.share.path);
      const auto most = std::min_element(inner.begin(), inner.end(), larger);
      if (most == inner.end() || most->share.bytes * 5 < part.share.bytes * 4) break;
      part = *most;
    }
    if (part.share.bytes > 0) largest.push_back(part.share);
  }
  return largest;
}

Status CheckSize(const std::vector<Found>& found, const ScanOptions& options, SourceTree& tree) {
  const uint64_t total_limit = options.max_size != 0 ? options.max_size : kDefaultTotal;
  const uint64_t file_limit = options.max_size != 0 ? options.max_size : kDefaultFile;
  uint64_t total = 0;
  std::vector<SourceShare> too_large;
  for (const auto& item : found) {
    total += item.entry.size;
    if (item.entry.size > file_limit) too_large.push_back({item.entry.path, item.entry.size});
  }
  tree.manifest.bytes = total;
  tree.largest = Largest(found);
  if (total <= total_limit && too_large.empty()) return Ok();

  std::stable_sort(too_large.begin(), too_large.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (too_large.size() > 5) too_large.resize(5);
  const bool by_total = total > total_limit;
  const auto& offenders = by_total ? tree.largest : too_large;
  std::vector<std::string> shown;
  for (const auto& share : offenders) {
    shown.push_back(fmt::format("{} {}", Printable(share.path), HumanBytes(share.bytes)));
  }
  Error error;
  error.code = ErrorCode::kInvalid;
  error.id = "ATH-S0121";
  error.what = by_total ? "the source is too large" : "a file of the source is too large";
  error.why = by_total
                  ? fmt::format("{} in {} files; the limit is {}. Largest: {}", HumanBytes(total),
                                found.size(), HumanBytes(total_limit), Join(shown, ", "))
                  : fmt::format("the limit is {} a file. Largest: {}", HumanBytes(file_limit),
                                Join(shown, ", "));
  error.hint = fmt::format(
      "echo {} >> .athanorignore\nor give it as data: -i NAME=PATH\n"
      "or raise  source: {{max_size: {}}}  in the job file",
      ShellQuote("/" + offenders.front().path), HumanBytes(total + total / 10));
  return Fail(std::move(error));
}

// Until a file is the same before and after it was read. nullopt: it is gone.
Result<std::optional<std::string>> HashFile(int root, Found& found) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto file = OpenBeneath(root, found.entry.path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    if (!file && file.error().code == ErrorCode::kNotFound) return std::nullopt;
    if (!file) {
      return Fail(WithId(file.error(), "ATH-S0120",
                         fmt::format("make it readable, or: echo {} >> .athanorignore",
                                     ShellQuote("/" + found.entry.path))));
    }
    struct stat before {};
    struct stat after {};
    if (::fstat(file->get(), &before) != 0 || !S_ISREG(before.st_mode)) continue;
    ATHANOR_TRY(auto sha256, Sha256File(file->get()));
    if (::fstat(file->get(), &after) != 0 || FileStamp::Of(before) != FileStamp::Of(after))
      continue;
    found.stamp = FileStamp::Of(before);
    found.entry.size = found.stamp.size;
    return sha256;
  }
  Error error;
  error.code = ErrorCode::kConflict;
  error.id = "ATH-S0123";
  error.what = fmt::format("{} changed while it was read", Printable(found.entry.path));
  error.why = "three reads gave three different files";
  error.hint = fmt::format("submit again when nothing writes to it, or: echo {} >> .athanorignore",
                           ShellQuote("/" + found.entry.path));
  return Fail(std::move(error));
}

Status HashAll(int root, const ScanOptions& options, std::vector<Found>& found, SourceTree& tree) {
  HashCache cache(options.cache_file, tree.dir);
  tree.manifest.bytes = 0;
  for (auto& item : found) {
    if (item.entry.kind == BundleEntry::Kind::kFile) {
      if (const std::string* known = cache.Find(item.entry.path, item.stamp)) {
        item.entry.sha256 = *known;
      } else {
        ATHANOR_TRY(const auto sha256, HashFile(root, item));
        if (!sha256) continue;
        item.entry.sha256 = *sha256;
        ++tree.files_read;
      }
      cache.Keep(item.entry.path, item.stamp, item.entry.sha256, options.now);
      tree.manifest.bytes += item.entry.size;
    }
    tree.manifest.entries.push_back(std::move(item.entry));
  }
  cache.Save();
  return Ok();
}

// The folder that holds .git, at or above `dir`; empty when there is none.
std::string GitTop(const std::string& dir) {
  for (std::string at = dir;; at = DirName(at)) {
    if (Exists(JoinPath(at, ".git"))) return at;
    if (at == "/") return "";
  }
}

// .gitignore files of the folders above, up to the top of the repository.
IgnoreRules RulesFor(const std::string& dir, const ScanOptions& options) {
  const std::string top = GitTop(dir);
  const bool above = !top.empty() && top != dir;
  IgnoreRules rules(above ? dir.substr(top == "/" ? 1 : top.size() + 1) : "");
  rules.AddDefaults();
  rules.Add(IgnoreRules::Layer::kExtra, rules.prefix(), Join(options.ignore, "\n"),
            "source.ignore");
  if (!above) return rules;
  for (std::string at = DirName(dir);; at = DirName(at)) {
    const std::string file = JoinPath(at, ".gitignore");
    if (const auto text = ReadFile(file, kIgnoreFileLimit)) {
      rules.Add(IgnoreRules::Layer::kGit,
                at == top ? "" : at.substr(top == "/" ? 1 : top.size() + 1), *text, file);
    }
    if (at == top) return rules;
  }
}

}  // namespace

Result<SourceTree> ScanSource(const std::string& dir, const ScanOptions& options) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(dir.c_str(), nullptr),
                                                         &std::free);
  const int failure = errno;
  if (!real) {
    auto error = FailErrno("open the source folder " + Printable(dir), failure).value();
    if (failure == ENOENT) error.what = "the source folder '" + Printable(dir) + "' is not there";
    return Fail(WithId(std::move(error), "ATH-S0120", "check source.dir in the job file"));
  }
  SourceTree tree;
  tree.dir = real.get();
  auto root = OpenDir(tree.dir);
  if (!root) {
    return Fail(WithId(root.error(), "ATH-S0120", "check source.dir in the job file"));
  }
  tree.rules = RulesFor(tree.dir, options);
  ATHANOR_TRY(auto found, Walk(root->get(), options, tree).Run());
  ATHANOR_CHECK_OK(CheckSize(found, options, tree));
  ATHANOR_CHECK_OK(HashAll(root->get(), options, found, tree));
  return tree;
}

Result<UniqueFd> OpenSourceFile(const SourceTree& tree, const BundleEntry& entry) {
  ATHANOR_TRY(const UniqueFd root, OpenDir(tree.dir));
  return OpenBeneath(root.get(), entry.path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
}

}  // namespace athanor
