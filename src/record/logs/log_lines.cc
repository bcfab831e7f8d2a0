#include "record/logs/log_lines.h"

#include <algorithm>
#include <cstring>

#include "base/exec/mutex.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kPiece = 1 << 20;     // read at once
constexpr uint64_t kEvery = 256;       // lines between two that are remembered
constexpr size_t kMostCarried = 4096;  // of a line that is open, to look for errors in

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool HasWord(std::string_view line, std::string_view word) {
  for (size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !IsWord(line[at - 1])) && (end == line.size() || !IsWord(line[end]))) {
      return true;
    }
  }
  return false;
}

// "torch.cuda.OutOfMemoryError: ..." and "KeyError", from the first character on.
bool IsExceptionLine(std::string_view line) {
  size_t end = 0;
  while (end < line.size() && (IsWord(line[end]) || line[end] == '.')) ++end;
  const auto name = line.substr(0, end);
  if (!EndsWith(name, "Error") && !EndsWith(name, "Exception")) return false;
  return end == line.size() || line[end] == ':';
}

// Every line that LooksLikeError contains one of these; most chunks have none.
constexpr std::string_view kSigns[] = {
    "Traceback",          "rror",        "xception",        "ERROR", "FATAL", "CRITICAL",
    "Segmentation fault", "core dumped", "terminate called"};

bool MayHaveError(std::string_view bytes) {
  return std::any_of(std::begin(kSigns), std::end(kSigns), [&](std::string_view sign) {
    return ::memmem(bytes.data(), bytes.size(), sign.data(), sign.size()) != nullptr;
  });
}

std::string_view WithoutReturn(std::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

// What a terminal would show of a line: a carriage return starts it again, as progress bars do.
std::string_view Shown(std::string_view line) {
  line = WithoutReturn(line);
  return line.substr(line.rfind('\r') + 1);  // npos + 1 is 0
}

// Calls `each` with the lines of a text that comes in pieces; false ends it. A line without an
// end is given by Finish.
class LineCutter {
 public:
  using Each = std::function<bool(std::string_view)>;
  explicit LineCutter(Each each) : each_(std::move(each)) {}

  bool Feed(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      if (end == std::string_view::npos) {
        Carry(bytes);
        open_ = true;
        return true;
      }
      bool go_on = true;
      if (carried_.empty()) {
        go_on = each_(Shown(bytes.substr(0, end)));
      } else {
        Carry(bytes.substr(0, end));
        go_on = each_(Shown(carried_));
        carried_.clear();
        returned_ = false;
      }
      open_ = false;
      if (!go_on) return false;
      bytes.remove_prefix(end + 1);
    }
    return true;
  }
  // The line that is open ends here.
  bool Finish() {
    const bool go_on = !open_ || each_(Shown(carried_));
    carried_.clear();
    returned_ = open_ = false;
    return go_on;
  }

 private:
  // A line of gigabytes is shown by its beginning, or by what came after its last carriage return.
  // A carriage return at the very end may be half of a line end: it starts nothing before more
  // arrives.
  void Carry(std::string_view bytes) {
    if (bytes.empty()) return;
    if (returned_) carried_.clear();
    if (const size_t last = bytes.substr(0, bytes.size() - 1).rfind('\r');
        last != std::string_view::npos) {
      carried_.clear();
      bytes.remove_prefix(last + 1);
    }
    returned_ = bytes.back() == '\r';
    const size_t room =
        LogLines::kMostLine + 1 - std::min(LogLines::kMostLine + 1, carried_.size());
    carried_ += bytes.substr(0, room);
  }

  Each each_;
  std::string carried_;
  bool returned_ = false;  // what is carried ends with a return
  bool open_ = false;
};

std::string Cut(std::string_view line) {
  if (line.size() <= LogLines::kMostLine) return std::string(line);
  size_t end = LogLines::kMostLine;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;
  return std::string(line.substr(0, end)) + "…";
}

}  // namespace

bool LogPart::Has(const LogEntry& entry) const {
  if (host && entry.host != *host) return false;
  if (entry.stream == LogStream::kSetup) return setup;
  return run && (!rank || entry.rank == *rank);
}

bool LooksLikeError(std::string_view line) {
  return line.find("Traceback (most recent call last)") != std::string_view::npos ||
         line.find("Segmentation fault") != std::string_view::npos ||
         line.find("(core dumped)") != std::string_view::npos ||
         line.find("terminate called") != std::string_view::npos || HasWord(line, "ERROR") ||
         HasWord(line, "FATAL") || HasWord(line, "CRITICAL") || IsExceptionLine(line);
}

struct LogLines::Index {
  struct Mark {
    LogCursor cursor;     // of the chunk that line begins in
    uint32_t offset = 0;  // of its first byte there
  };

  JobId job;
  LogPart part;
  Mutex mutex;  // guards what follows
  LogCursor cursor GUARDED_BY(mutex);
  uint64_t ends GUARDED_BY(mutex) = 0;        // line ends so far
  bool open GUARDED_BY(mutex) = false;        // bytes after the last of them
  std::vector<Mark> marks GUARDED_BY(mutex);  // of lines 0, 256, 512...
  std::optional<uint64_t> first_error GUARDED_BY(mutex);
  std::string carried GUARDED_BY(mutex);  // beginning of the open line
  uint32_t rank GUARDED_BY(mutex) = 0;    // whose line that is

  uint64_t lines() const REQUIRES(mutex) { return ends + (open ? 1 : 0); }
  void Add(const LogEntry& entry, LogCursor at) REQUIRES(mutex);
  void LookForError(std::string_view bytes, uint64_t line) REQUIRES(mutex);
};

void LogLines::Index::LookForError(std::string_view bytes, uint64_t line) {
  // The carried bytes may contain the first half of a match.
  const std::string joined = carried.empty() ? "" : carried + std::string(bytes);
  const std::string_view text = carried.empty() ? bytes : std::string_view(joined);
  if (MayHaveError(text)) {
    for (size_t begin = 0; begin < text.size(); ++line) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      if (LooksLikeError(WithoutReturn(text.substr(begin, end - begin)))) {
        first_error = line;
        carried.clear();
        return;
      }
      begin = end + 1;
    }
  }
  const size_t last = text.rfind('\n');
  const auto rest = last == std::string_view::npos ? text : text.substr(last + 1);
  carried = std::string(rest.substr(0, kMostCarried));
}

void LogLines::Index::Add(const LogEntry& entry, LogCursor at) {
  const std::string_view bytes = entry.bytes;
  if (bytes.empty()) return;
  if (open && entry.rank != rank) {
    ++ends;
    open = false;
    carried.clear();
  }
  rank = entry.rank;
  if (!first_error) LookForError(bytes, ends);
  size_t begin = 0;
  while (begin < bytes.size()) {
    if (!open && ends % kEvery == 0 && marks.size() == ends / kEvery) {
      marks.push_back({at, static_cast<uint32_t>(begin)});
    }
    const size_t end = bytes.find('\n', begin);
    open = end == std::string_view::npos;
    if (open) return;
    ++ends;
    begin = end + 1;
  }
}

LogLines::LogLines(const LogStore& logs, size_t kept) : logs_(logs), kept_(kept) {}
LogLines::~LogLines() = default;

std::shared_ptr<LogLines::Index> LogLines::IndexOf(JobId job, const LogPart& part) {
  const MutexLock lock(mutex_);
  auto at = std::find_if(used_.begin(), used_.end(), [&](const auto& index) {
    return index->job == job && index->part == part;
  });
  if (at != used_.end()) {
    used_.splice(used_.begin(), used_, at);
    return used_.front();
  }
  auto index = std::make_shared<Index>();
  index->job = job;
  index->part = part;
  used_.push_front(index);
  if (used_.size() > kept_) used_.pop_back();
  return index;
}

Status LogLines::Extend(Index& index) const {
  index.mutex.AssertHeld();
  for (;;) {
    LogCursor before = index.cursor;
    auto entries = logs_.Read(index.job, index.cursor, kPiece);
    if (!entries && entries.error().code == ErrorCode::kNotFound) return Ok();
    if (!entries) return tl::unexpected(entries.error());
    if (entries->empty()) return Ok();
    for (const auto& entry : *entries) {
      if (index.part.Has(entry)) index.Add(entry, before);
      before = entry.after;
    }
  }
}

Status LogLines::Lines(const Index& index, uint64_t from, uint64_t end, Page& page) const {
  index.mutex.AssertHeld();
  if (from >= end || from / kEvery >= index.marks.size()) return Ok();
  const auto& mark = index.marks[from / kEvery];
  uint64_t number = from / kEvery * kEvery;
  uint32_t rank = 0;  // of what the cutter has
  LineCutter cutter([&](std::string_view line) {
    if (number >= from) {
      page.lines.push_back(Cut(line));
      page.ranks.push_back(rank);
    }
    return ++number < end;
  });
  size_t skip = mark.offset;
  for (LogCursor cursor = mark.cursor;;) {
    ATHANOR_TRY(const auto entries, logs_.Read(index.job, cursor, kPiece));
    for (const auto& entry : entries) {
      if (entry.bytes.empty() || !index.part.Has(entry)) continue;
      const auto bytes = std::string_view(entry.bytes).substr(std::min(skip, entry.bytes.size()));
      skip = 0;
      if (entry.rank != rank && !cutter.Finish()) return Ok();
      rank = entry.rank;
      if (!cutter.Feed(bytes)) return Ok();
    }
    if (entries.empty()) break;
  }
  cutter.Finish();
  return Ok();
}

Result<LogLines::Page> LogLines::Read(JobId job, const LogPart& part, std::optional<uint64_t> from,
                                      size_t count) {
  const auto index = IndexOf(job, part);
  const MutexLock lock(index->mutex);
  ATHANOR_CHECK_OK(Extend(*index));
  Page page;
  page.total = index->lines();
  page.first_error = index->first_error;
  page.from =
      from ? std::min(*from, page.total) : page.total - std::min<uint64_t>(count, page.total);
  const uint64_t end = page.from + std::min<uint64_t>(count, page.total - page.from);
  ATHANOR_CHECK_OK(Lines(*index, page.from, end, page));
  return page;
}

Result<LogLines::Matches> LogLines::Search(JobId job, const LogPart& part,
                                           const std::function<bool(std::string_view)>& matches,
                                           size_t limit) {
  Matches found;
  uint64_t number = 0;
  uint32_t rank = 0;  // of what the cutter has
  LineCutter cutter([&](std::string_view line) {
    if (matches(line)) {
      if (found.matches.size() < limit) found.matches.push_back({number, Cut(line), rank});
      ++found.total;
    }
    ++number;
    return true;
  });
  for (LogCursor cursor;;) {
    auto entries = logs_.Read(job, cursor, kPiece);
    if (!entries && entries.error().code == ErrorCode::kNotFound) break;
    if (!entries) return tl::unexpected(entries.error());
    if (entries->empty()) break;
    for (const auto& entry : *entries) {
      if (entry.bytes.empty() || !part.Has(entry)) continue;
      if (entry.rank != rank) cutter.Finish();
      rank = entry.rank;
      cutter.Feed(entry.bytes);
    }
  }
  cutter.Finish();
  return found;
}

}  // namespace athanor
