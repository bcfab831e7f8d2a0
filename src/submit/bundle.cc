#include "submit/bundle.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "submit/errors.h"
#include "submit/hash_cache.h"
#include "submit/walk.h"

namespace athanor {
namespace {

constexpr uint64_t kDefaultTotal = 200u << 20;
constexpr uint64_t kDefaultFile = 50u << 20;

// A file or folder that takes much of the source.
struct SourceShare {
  std::string path;  // a folder ends in '/'
  uint64_t bytes = 0;
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

// The five largest parts of the source. If a folder consists almost only of one of its own parts,
// that part is named instead, so that what is named is what to leave out.
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

Status CheckSize(const std::vector<Found>& found, const ScanOptions& options) {
  const uint64_t total_limit = options.max_size != 0 ? options.max_size : kDefaultTotal;
  const uint64_t file_limit = options.max_size != 0 ? options.max_size : kDefaultFile;
  uint64_t total = 0;
  std::vector<SourceShare> too_large;
  for (const auto& item : found) {
    total += item.entry.size;
    if (item.entry.size > file_limit) too_large.push_back({item.entry.path, item.entry.size});
  }
  if (total <= total_limit && too_large.empty()) return Ok();

  std::stable_sort(too_large.begin(), too_large.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (too_large.size() > 5) too_large.resize(5);
  const bool by_total = total > total_limit;
  const auto offenders = by_total ? Largest(found) : std::move(too_large);
  std::vector<std::string> shown;
  for (const auto& share : offenders) {
    shown.push_back(fmt::format("{} {}", Printable(share.path), HumanBytes(share.bytes)));
  }
  return Fail(
      Error{ErrorCode::kInvalid,
            by_total ? "the source is too large" : "a file of the source is too large",
            fmt::format("echo {} >> .athanorignore\nor give it as data: -i NAME=PATH\n"
                        "or raise  source: {{max_size: {}}}  in the job file",
                        ShellQuote("/" + offenders.front().path), HumanBytes(total + total / 10))}
          .Why(by_total
                   ? fmt::format("{} in {} files; the limit is {}. Largest: {}", HumanBytes(total),
                                 found.size(), HumanBytes(total_limit), Join(shown, ", "))
                   : fmt::format("the limit is {} a file. Largest: {}", HumanBytes(file_limit),
                                 Join(shown, ", ")))
          .Id("ATH-S0121"));
}

// Until a file is the same before and after reading it. nullopt: it is gone.
Result<std::optional<std::string>> HashFile(int root, Found& found) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto file = OpenBeneath(root, found.entry.path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    if (!file && file.error().code == ErrorCode::kNotFound) return std::nullopt;
    if (!file) {
      return Fail(Unreadable(file.error(), "/" + found.entry.path));
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
  return Fail(
      Error{ErrorCode::kConflict,
            fmt::format("{} changed while it was read", Printable(found.entry.path)),
            fmt::format("submit again when nothing writes to it, or: echo {} >> .athanorignore",
                        ShellQuote("/" + found.entry.path))}
          .Why("three reads gave three different files")
          .Id("ATH-S0123"));
}

Status HashAll(int root, const ScanOptions& options, std::vector<Found>& found, SourceTree& tree) {
  HashCache cache(options.cache_file, tree.dir);
  tree.manifest.entries.reserve(found.size());
  for (auto& item : found) {
    if (item.entry.kind == BundleEntry::Kind::kFile) {
      if (const auto known = cache.Find(item.entry.path, item.stamp)) {
        item.entry.sha256 = *known;
      } else {
        ATHANOR_TRY(const auto sha256, HashFile(root, item));
        if (!sha256) continue;
        item.entry.sha256 = *sha256;
        ++tree.files_read;
        cache.Keep(item.entry.path, item.stamp, item.entry.sha256, options.now);
      }
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

Error NoSourceFolder(Error error) {
  error.id = "ATH-S0120";
  if (error.hint.empty()) error.hint = "check source.dir in the job file";
  return error;
}

}  // namespace

Result<SourceTree> ScanSource(const std::string& dir, const ScanOptions& options) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(dir.c_str(), nullptr),
                                                         &std::free);
  const int failure = errno;
  if (!real) {
    auto error = FailErrno("open the source folder " + Printable(dir), failure).value();
    if (failure == ENOENT) error.what = "the source folder '" + Printable(dir) + "' is not there";
    return Fail(NoSourceFolder(std::move(error)));
  }
  SourceTree tree;
  tree.dir = real.get();
  auto root = OpenDir(tree.dir);
  if (!root) {
    return Fail(NoSourceFolder(root.error()));
  }
  tree.rules = RulesFor(tree.dir, options);
  ATHANOR_TRY(auto found, WalkSource(root->get(), options, tree));
  ATHANOR_CHECK_OK(CheckSize(found, options));
  ATHANOR_CHECK_OK(HashAll(root->get(), options, found, tree));
  return tree;
}

Result<UniqueFd> OpenSourceFile(const SourceTree& tree, const BundleEntry& entry) {
  ATHANOR_TRY(const UniqueFd root, OpenDir(tree.dir));
  return OpenBeneath(root.get(), entry.path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
}

}  // namespace athanor
