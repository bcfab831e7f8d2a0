#include "submit/hash_cache.h"

#include <charconv>

#include "base/files.h"
#include "base/format.h"
#include "base/text.h"

namespace athanor {
namespace {

constexpr std::string_view kHeader = "athanor-hashes 1";
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

HashCache::HashCache(std::string file, std::string dir)
    : file_(std::move(file)), dir_(std::move(dir)) {
  if (!file_.empty()) Load();
}

void HashCache::Load() {
  const auto text = ReadFile(file_, kFileLimit);
  if (!text) return;
  const auto lines = Split(*text, '\n');
  // A cut file has no empty last line.
  if (lines.size() < 2 || !lines.back().empty() ||
      lines[0] != fmt::format("{} {}", kHeader, UrlEncode(dir_))) {
    return;
  }
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    const auto fields = Split(lines[i], ' ');
    Row row;
    if (fields.size() != 7 || !Parse(fields[0], row.stamp.device) ||
        !Parse(fields[1], row.stamp.inode) || !Parse(fields[2], row.stamp.size) ||
        !Parse(fields[3], row.stamp.mtime_ns) || !Parse(fields[4], row.stamp.ctime_ns) ||
        fields[5].size() != 64) {
      known_.clear();
      return;
    }
    const auto path = UrlDecode(fields[6]);
    if (!path) continue;
    row.sha256 = fields[5];
    known_[*path] = std::move(row);
  }
}

const std::string* HashCache::Find(const std::string& path, const FileStamp& stamp) const {
  const auto found = known_.find(path);
  return found != known_.end() && found->second.stamp == stamp ? &found->second.sha256 : nullptr;
}

void HashCache::Keep(const std::string& path, const FileStamp& stamp, const std::string& sha256,
                     WallTime now) {
  const int64_t settled = now.ms * 1'000'000 - kSettledNs;
  if (stamp.mtime_ns > settled || stamp.ctime_ns > settled) return;
  kept_[path] = {stamp, sha256};
}

void HashCache::Save() const {
  if (file_.empty() || kept_ == known_) return;
  std::string text = fmt::format("{} {}\n", kHeader, UrlEncode(dir_));
  for (const auto& [path, row] : kept_) {
    text += fmt::format("{} {} {} {} {} {} {}\n", row.stamp.device, row.stamp.inode, row.stamp.size,
                        row.stamp.mtime_ns, row.stamp.ctime_ns, row.sha256, UrlEncode(path));
  }
  if (!MakeDirs(DirName(file_)).ok()) return;
  (void)ReplaceFile(file_, text);
}

}  // namespace athanor
