#include "submit/hash_cache.h"

#include <algorithm>
#include <charconv>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kHeader = "athanor-hashes 2";
constexpr char kEnd = '\0';  // of each row
constexpr size_t kHashLength = 64;
constexpr int64_t kSettledNs = 2'000'000'000;
constexpr size_t kFileLimit = 256u << 20;

template <class Number>
bool Parse(std::string_view text, Number& to) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), to);
  return failure == std::errc() && end == text.data() + text.size();
}

int64_t Nanos(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileStamp FileStamp::Of(const struct stat& info) {
  return {static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino),
          static_cast<uint64_t>(info.st_size), Nanos(info.st_mtim), Nanos(info.st_ctim)};
}

HashCache::HashCache(std::string file, std::string_view dir) : file_(std::move(file)) {
  header_ = fmt::format("{} {}", kHeader, dir) + kEnd;
  if (!file_.empty()) Load();
  kept_text_ = header_;
  kept_text_.reserve(known_text_.size());
}

// "device inode size mtime ctime sha256 path"; the path may hold anything but a NUL.
bool HashCache::ParseRow(std::string_view text, Row& row) {
  const auto next = [&](auto& number) {
    const size_t space = text.find(' ');
    if (space == text.npos || !Parse(text.substr(0, space), number)) return false;
    text.remove_prefix(space + 1);
    return true;
  };
  if (!next(row.stamp.device) || !next(row.stamp.inode) || !next(row.stamp.size) ||
      !next(row.stamp.mtime_ns) || !next(row.stamp.ctime_ns)) {
    return false;
  }
  if (text.size() < kHashLength + 2 || text[kHashLength] != ' ') return false;
  row.sha256 = text.substr(0, kHashLength);
  row.path = text.substr(kHashLength + 1);
  return true;
}

void HashCache::Load() {
  known_text_ = ReadFile(file_, kFileLimit).value_or("");
  if (!StartsWith(known_text_, header_)) {
    known_text_.clear();
    return;
  }
  std::string_view rest = std::string_view(known_text_).substr(header_.size());
  while (!rest.empty()) {
    const size_t end = rest.find(kEnd);
    Row row;
    // A cut file, or not one of ours.
    if (end == rest.npos || !ParseRow(rest.substr(0, end), row)) {
      known_.clear();
      return;
    }
    row.whole = rest.substr(0, end + 1);
    known_.push_back(row);
    rest.remove_prefix(end + 1);
  }
}

std::optional<std::string_view> HashCache::Find(std::string_view path, const FileStamp& stamp) {
  const auto found =
      std::lower_bound(known_.begin(), known_.end(), path,
                       [](const Row& row, std::string_view wanted) { return row.path < wanted; });
  if (found == known_.end() || found->path != path || found->stamp != stamp) return std::nullopt;
  kept_text_ += found->whole;
  return found->sha256;
}

void HashCache::Keep(std::string_view path, const FileStamp& stamp, std::string_view sha256,
                     WallTime now) {
  const int64_t settled = now.ms * 1'000'000 - kSettledNs;
  if (stamp.mtime_ns > settled || stamp.ctime_ns > settled) return;
  kept_text_ += fmt::format("{} {} {} {} {} {} {}", stamp.device, stamp.inode, stamp.size,
                            stamp.mtime_ns, stamp.ctime_ns, sha256, path);
  kept_text_ += kEnd;
}

void HashCache::Save() const {
  if (file_.empty() || kept_text_ == known_text_) return;
  if (!MakeDirs(DirName(file_)).ok()) return;
  (void)ReplaceFile(file_, kept_text_);
}

}  // namespace athanor
