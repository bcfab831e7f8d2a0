#include "eventfile/run_loader.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <unordered_map>

#include "base/io/files.h"
#include "base/text/text.h"
#include "eventfile/event.h"
#include "eventfile/event_writer.h"

namespace athanor {
namespace {

constexpr int kMaxDepth = 32;

struct Folder {
  std::string name;  // below the root
  std::vector<std::string> files;
};

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

class RunReader {
 public:
  explicit RunReader(LoadedRun& run) : run_(run) {}

  Status Read(const std::string& path, const std::string& name) {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd) return FailErrno("open " + path, errno);
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return FailErrno(path, errno);
    if (!S_ISREG(info.st_mode)) return Ok();
    (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    EventReader reader(std::move(fd));
    ATHANOR_TRY([[maybe_unused]] const bool more,
                reader.Poll([this](uint64_t, std::string_view payload) { Take(payload); }));
    run_.files.push_back({name, reader.offset() + reader.tail(), reader.tail(), reader.damage()});
    return Ok();
  }

 private:
  void Take(std::string_view payload) {
    ++run_.records;
    EventView event;
    if (!ReadEvent(payload, event)) {
      ++run_.unreadable;
      return;
    }
    if (event.kind == EventView::Kind::kGraph) ++run_.others["graph"];
    if (event.kind != EventView::Kind::kSummary) return;
    SummaryValue value;
    while (TakeValue(event.body, value)) {
      // The plug-in's name is required only in the first record of a tag.
      const bool simple = value.form == SummaryValue::Form::kSimple;
      const auto kind = simple ? std::string_view("scalars") : kinds_.KindOf(value);
      if (kind == "scalars") {
        if (const auto number = ScalarOf(value)) {
          Add(value.tag, event.step, event.wall_time, *number);
          continue;
        }
      }
      ++run_.others[std::string(kind.empty() ? "unknown" : kind)];
    }
  }

  void Add(std::string_view tag, int64_t step, double wall_time, double value) {
    auto& column = ColumnOf(tag);
    if (!column.steps.empty() && step <= column.steps.back()) column.in_order = false;
    column.steps.push_back(step);
    column.wall_times.push_back(wall_time);
    column.values.push_back(value);
  }

  // Scripts write their tags in the same order every time.
  ScalarColumn& ColumnOf(std::string_view tag) {
    auto& columns = run_.scalars;
    if (!columns.empty()) {
      if (++last_ >= columns.size()) last_ = 0;
      if (columns[last_].tag == tag) return columns[last_];
    }
    const auto found = index_.find(tag);
    if (found != index_.end()) {
      last_ = found->second;
    } else {
      last_ = columns.size();
      index_.emplace(tag, last_);
      columns.emplace_back();
      columns.back().tag = tag;
    }
    return columns[last_];
  }

  LoadedRun& run_;
  TagKinds kinds_;
  std::unordered_map<std::string, size_t, TextHash, std::equal_to<>> index_;
  size_t last_ = 0;
};

Status Walk(const std::string& dir, const std::string& name, int depth,
            std::vector<Folder>& folders) {
  ATHANOR_TRY(const auto names, ListDir(dir));
  Folder here{name.empty() ? "." : name, {}};
  for (const auto& entry : names) {
    const auto path = JoinPath(dir, entry);
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode) && depth < kMaxDepth) {
      ATHANOR_CHECK_OK(Walk(path, name.empty() ? entry : name + "/" + entry, depth + 1, folders));
    } else if (S_ISREG(info.st_mode) && IsEventFileName(entry)) {
      here.files.push_back(entry);
    }
  }
  if (!here.files.empty()) folders.push_back(std::move(here));
  return Ok();
}

}  // namespace

Result<std::vector<LoadedRun>> LoadRuns(const std::string& dir, unsigned threads) {
  std::vector<Folder> folders;
  ATHANOR_CHECK_OK(Walk(dir, "", 0, folders));
  std::sort(folders.begin(), folders.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::vector<LoadedRun> runs(folders.size());
  std::vector<Status> done(folders.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < folders.size(); i = next++) {
      runs[i].name = folders[i].name;
      RunReader reader(runs[i]);
      for (const auto& file : folders[i].files) {
        auto status = reader.Read(JoinPath(JoinPath(dir, folders[i].name), file), file);
        if (!status && done[i].ok()) done[i] = std::move(status);
      }
    }
  };
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min<size_t>(threads, folders.size()); ++i) others.emplace_back(work);
  work();
  for (auto& thread : others) thread.join();
  for (auto& status : done) {
    if (!status) return tl::unexpected(std::move(status).error());
  }
  return runs;
}

std::vector<size_t> PointsThatCount(const ScalarColumn& column) {
  std::vector<size_t> kept;
  kept.reserve(column.size());
  for (size_t i = 0; i < column.size(); ++i) {
    while (!kept.empty() && column.steps[kept.back()] >= column.steps[i]) kept.pop_back();
    kept.push_back(i);
  }
  return kept;
}

}  // namespace athanor
