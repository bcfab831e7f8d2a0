#include "record/artifacts/artifact_sums.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>

#include "base/io/crc32c.h"
#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kSha256Digits = 64;
constexpr size_t kCrcDigits = 8;

// The next word of `line`, which is cut off.
std::string_view Word(std::string_view& line) {
  const size_t end = line.find(' ');
  const auto word = line.substr(0, end);
  line = end == std::string_view::npos ? std::string_view() : line.substr(end + 1);
  return word;
}

}  // namespace

std::string ArtifactSumsPath(std::string_view path) {
  size_t end = 0;
  size_t at = 0;
  for (int part = 0; part < 2; ++part) {
    const size_t slash = path.find('/', at);
    if (slash == std::string_view::npos) break;
    end = slash;
    at = slash + 1;
  }
  return end == 0 ? std::string(kArtifactSums)
                  : std::string(path.substr(0, end + 1)) + std::string(kArtifactSums);
}

Status NoteArtifact(int root_fd, const std::string& path, const ArtifactSum& sum) {
  // A path has no control characters (door/mlflow/validate.h), and a line ends with it.
  const std::string text = fmt::format("{} {} {}", sum.size, sum.sha256, UrlEncode(path));
  const std::string line = fmt::format("{:08x} {}\n", Crc32c(text), text);
  ATHANOR_TRY(const UniqueFd out,
              OpenBeneath(root_fd, ArtifactSumsPath(path), O_WRONLY | O_APPEND | O_CREAT));
  return WriteAll(out.get(), line);
}

Status NoteArtifactFile(int root_fd, const std::string& path, int dir_fd, const std::string& name) {
  const UniqueFd in(::openat(dir_fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  if (!in || ::fstat(in.get(), &info) != 0) return FailErrno("read an artifact back", errno);
  ATHANOR_TRY(std::string sha256, Sha256File(in.get()));
  return NoteArtifact(root_fd, path, {static_cast<uint64_t>(info.st_size), std::move(sha256)});
}

ArtifactSums ReadArtifactSums(std::string_view text) {
  ArtifactSums sums;
  while (true) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return sums;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const auto crc = Word(line);
    const bool right = crc.size() == kCrcDigits && crc == fmt::format("{:08x}", Crc32c(line));
    ArtifactSum sum;
    const auto size = Word(line);
    const auto read = std::from_chars(size.data(), size.data() + size.size(), sum.size);
    sum.sha256 = Word(line);
    const auto path = UrlDecode(line);
    if (!right || read.ec != std::errc() || read.ptr != size.data() + size.size() ||
        sum.sha256.size() != kSha256Digits || !path || path->empty()) {
      ++sums.damaged;
      continue;
    }
    sums.by_path[*path].push_back(std::move(sum));
  }
}

}  // namespace athanor
