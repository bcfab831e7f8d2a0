#include "eventfile/projector.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <tuple>

#include "base/io/files.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kDeepest = 16;
constexpr uint64_t kMostConfig = 1 << 20;
constexpr uint64_t kMostTable = 256 << 20;
constexpr size_t kMostLabel = 200;

// The texts of a field `name: "value"` on one line, as text_format and the writers put it.
std::string FieldValue(std::string_view line, std::string_view name) {
  const auto bare = Trim(line);
  if (!StartsWith(bare, name) || bare.size() <= name.size() || bare[name.size()] != ':') return "";
  const auto from = bare.find('"');
  const auto to = bare.rfind('"');
  if (from == std::string_view::npos || to <= from) return "";
  std::string value;
  for (size_t i = from + 1; i < to; ++i) {
    if (bare[i] == '\\' && i + 1 < to) ++i;
    value += bare[i];
  }
  return value;
}

bool WholeNumberIn(std::string_view text, int64_t& number) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && read.ec == std::errc() && read.ptr == text.data() + text.size();
}

// "points:00002" is "points" at step 2; a table in "00002/points/" of no such name is at step 2
// too.
void NameAndStep(std::string name, Embedding& out) {
  const auto colon = name.rfind(':');
  if (colon != std::string::npos &&
      WholeNumberIn(std::string_view(name).substr(colon + 1), out.step)) {
    name.resize(colon);
  } else if (!WholeNumberIn(std::string_view(out.tensor_path).substr(0, out.tensor_path.find('/')),
                            out.step)) {
    out.step = 0;
  }
  out.name = name.empty() ? "embedding" : std::move(name);
}

// One line, and the rest after it.
std::string_view TakeLine(std::string_view& text) {
  const auto end = text.find('\n');
  auto line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

// False: it is not a row of numbers.
bool Numbers(std::string_view line, std::vector<double>& out) {
  out.clear();
  while (true) {
    const auto tab = line.find('\t');
    const auto cell = line.substr(0, tab);
    double number = 0;
    const auto read = std::from_chars(cell.data(), cell.data() + cell.size(), number);
    if (cell.empty() || read.ec != std::errc() || read.ptr != cell.data() + cell.size())
      return false;
    out.push_back(number);
    if (tab == std::string_view::npos) return true;
    line.remove_prefix(tab + 1);
  }
}

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) lines.push_back(TakeLine(text));
  return lines;
}

Result<std::string> ReadBelow(int dir_fd, const std::string& path, uint64_t most) {
  ATHANOR_TRY(const auto fd, OpenBeneath(dir_fd, path, O_RDONLY | O_NONBLOCK));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      static_cast<uint64_t>(info.st_size) > most) {
    return Fail(ErrorCode::kNotFound, path + " is no table that can be shown", "");
  }
  return ReadAll(fd.get());
}

void Find(int dir_fd, const std::string& prefix, size_t depth, std::vector<Embedding>& found) {
  const auto names = ListDirAt(dir_fd);
  if (!names || depth > kDeepest) return;
  for (const auto& name : *names) {
    struct stat info {};
    if (::fstatat(dir_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(info.st_mode) && name == kProjectorConfig) {
      const auto text = ReadBelow(dir_fd, name, kMostConfig);
      for (auto& one : text ? ReadProjectorConfig(*text) : std::vector<Embedding>()) {
        struct stat table {};
        if (::fstatat(dir_fd, one.tensor_path.c_str(), &table, AT_SYMLINK_NOFOLLOW) != 0) continue;
        one.wall_ms = table.st_mtim.tv_sec * 1'000 + table.st_mtim.tv_nsec / 1'000'000;
        one.name = prefix + one.name;
        one.tensor_path = prefix + one.tensor_path;
        if (!one.metadata_path.empty()) one.metadata_path = prefix + one.metadata_path;
        found.push_back(std::move(one));
      }
    }
    if (!S_ISDIR(info.st_mode) || (depth == 0 && name == "abandoned")) continue;
    if (const auto inner = OpenBeneath(dir_fd, name, O_RDONLY | O_DIRECTORY)) {
      Find(inner->get(), prefix + name + "/", depth + 1, found);
    }
  }
}

}  // namespace

std::vector<Embedding> ReadProjectorConfig(std::string_view text) {
  std::vector<Embedding> all;
  Embedding now;
  std::string name;
  const auto finish = [&] {
    const bool there = CheckRelativeName(now.tensor_path).ok();
    if (!now.metadata_path.empty() && !CheckRelativeName(now.metadata_path).ok())
      now.metadata_path.clear();
    if (there) {
      NameAndStep(std::move(name), now);
      all.push_back(std::move(now));
    }
    now = {};
    name.clear();
  };
  while (!text.empty()) {
    const auto line = TakeLine(text);
    if (StartsWith(Trim(line), "embeddings")) finish();
    if (auto value = FieldValue(line, "tensor_name"); !value.empty()) name = std::move(value);
    if (auto value = FieldValue(line, "tensor_path"); !value.empty())
      now.tensor_path = std::move(value);
    if (auto value = FieldValue(line, "metadata_path"); !value.empty())
      now.metadata_path = std::move(value);
  }
  finish();
  return all;
}

EmbeddingRows ReadVectors(std::string_view table, std::string_view labels, size_t most) {
  const auto lines = LinesOf(table);
  EmbeddingRows out;
  std::vector<double> row;
  if (lines.empty() || !Numbers(lines[0], row)) return out;
  out.dimensions = row.size();
  out.rows = lines.size();
  const size_t taken = std::min(lines.size(), std::max<size_t>(1, most / out.dimensions));
  auto names = LinesOf(labels);
  // Several columns have a line of titles before them.
  if (names.size() == lines.size() + 1) names.erase(names.begin());
  for (size_t i = 0; i < taken; ++i) {
    const size_t at = taken == 1 ? 0 : i * (lines.size() - 1) / (taken - 1);
    if (!Numbers(lines[at], row) || row.size() != out.dimensions) break;
    out.values.insert(out.values.end(), row.begin(), row.end());
    if (names.size() == lines.size()) out.labels.emplace_back(names[at].substr(0, kMostLabel));
  }
  return out;
}

std::vector<Embedding> FindEmbeddings(const std::string& dir) {
  std::vector<Embedding> found;
  if (const auto dir_fd = OpenDir(dir)) Find(dir_fd->get(), "", 0, found);
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(a.name, a.step) < std::tie(b.name, b.step);
  });
  return found;
}

Result<EmbeddingRows> ReadEmbedding(const std::string& dir, const Embedding& embedding,
                                    size_t most) {
  ATHANOR_TRY(const auto dir_fd, OpenDir(dir));
  ATHANOR_TRY(const auto table, ReadBelow(dir_fd.get(), embedding.tensor_path, kMostTable));
  std::string labels;
  if (!embedding.metadata_path.empty()) {
    labels = ReadBelow(dir_fd.get(), embedding.metadata_path, kMostTable).value_or("");
  }
  return ReadVectors(table, labels, most);
}

}  // namespace athanor
