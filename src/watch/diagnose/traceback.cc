#include "watch/diagnose/traceback.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.h"

namespace athanor {
namespace {

constexpr std::string_view kHeader = "Traceback (most recent call last):";
constexpr std::string_view kContext =
    "During handling of the above exception, another exception occurred:";
constexpr std::string_view kCauseMark =
    "The above exception was the direct cause of the following exception:";
constexpr size_t kMaxMessage = 500;
constexpr size_t kMaxMembers = 8;
constexpr int kMaxStrayLines = 5;

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::optional<int64_t> TakeInt(std::string_view& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

bool TakeWord(std::string_view& text, std::string_view word) {
  if (!StartsWith(text, word)) return false;
  text.remove_prefix(word.size());
  return true;
}

//   File "train.py", line 3, in main        (traceback)
//   File "train.py", line 3                 (SyntaxError)
//   File "train.py", line 3 in main         (faulthandler)
std::optional<Frame> ParseFrame(std::string_view line) {
  if (!TakeWord(line, "  File \"")) return std::nullopt;
  const size_t quote = line.rfind("\", line ");
  if (quote == std::string_view::npos) return std::nullopt;
  Frame frame;
  frame.file = line.substr(0, quote);
  line.remove_prefix(quote + std::string_view("\", line ").size());
  const auto number = TakeInt(line);
  if (!number) return std::nullopt;
  frame.line = *number;
  if (TakeWord(line, ", in ") || TakeWord(line, " in ")) {
    frame.function = line;
  } else if (!line.empty()) {
    return std::nullopt;
  }
  frame.user = IsUserFile(frame.file);
  return frame;
}

// "pkg.SomeError: words", "KeyboardInterrupt". A line of a log that merely begins
// with a word and a colon ("INFO: x") is told apart by the name's last part.
bool ParseError(std::string_view line, PythonError& error) {
  size_t end = 0;
  while (end < line.size() && (IsWord(line[end]) || line[end] == '.')) ++end;
  if (end == 0 || (line[0] >= '0' && line[0] <= '9')) return false;
  const std::string_view type = line.substr(0, end);
  std::string_view rest = line.substr(end);
  if (!rest.empty() && rest[0] != ':') return false;
  if (!rest.empty()) rest.remove_prefix(1);
  const std::string_view name = type.substr(type.rfind('.') + 1);
  const bool upper_only =
      std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (name.empty() || upper_only) return false;
  error.type = type;
  error.message = Trim(rest).substr(0, kMaxMessage);
  return true;
}

class Reader {
 public:
  explicit Reader(std::vector<std::string> lines) : lines_(std::move(lines)) {}

  std::optional<Traceback> Read() {
    while (at_ < lines_.size()) {
      const std::string_view line = lines_[at_];
      if (const size_t header = line.find(kHeader); header != std::string_view::npos) {
        SetPrefix(line.substr(0, header));
        ++at_;
        ReadBlock();
      } else if (ParseFrame(line)) {
        // No header: SyntaxError's form, or the tail begins in the middle.
        prefix_.clear();
        group_ = member_ = false;
        ReadBlock();
      } else {
        NoteLink(line);
        ++at_;
      }
    }
    if (found_.chain.empty()) return std::nullopt;
    for (size_t i = end_; i < lines_.size(); ++i) found_.lines_after += !Trim(lines_[i]).empty();
    return std::move(found_);
  }

 private:
  // "  + Exception Group " begins a block whose lines begin with "  | ".
  void SetPrefix(std::string_view prefix) {
    for (const std::string_view word : {"Exception Group ", "Original "}) {
      if (EndsWith(prefix, word)) {
        group_ = word[0] == 'E';
        prefix.remove_suffix(word.size());
      } else if (word[0] == 'E') {
        group_ = false;
      }
    }
    prefix_ = prefix;
    const size_t margin = prefix_.find_first_not_of(' ');
    const bool has_margin = margin != std::string::npos && prefix_.substr(margin) == "| ";
    if (group_ && margin != std::string::npos && prefix_.substr(margin) == "+ ")
      prefix_[margin] = '|';
    member_ = !group_ && has_margin;
    // A lone quote mark or the like is not a prefix that the next lines share.
    if (!prefix_.empty() && at_ + 1 < lines_.size() && !StartsWith(lines_[at_ + 1], prefix_)) {
      prefix_.clear();
    }
  }

  void NoteLink(std::string_view line) {
    if (line.find(kContext) != std::string_view::npos) linked_ = true;
    if (line.find(kCauseMark) != std::string_view::npos) linked_ = true;
  }

  std::string_view Here() const {
    std::string_view line = lines_[at_];
    if (StartsWith(line, prefix_)) line.remove_prefix(prefix_.size());
    return line;
  }

  void ReadBlock() {
    PythonError error;
    int stray = 0;
    for (; at_ < lines_.size(); ++at_) {
      const std::string_view line = Here();
      if (line.find(kHeader) != std::string_view::npos) return;  // cut short by another one
      if (auto frame = ParseFrame(line)) {
        error.frames.push_back(std::move(*frame));
      } else if (StartsWith(line, "    ")) {
        const std::string_view code = Trim(line);
        const bool marks = code.find_first_not_of("^~ ") == std::string_view::npos;
        if (!marks && !error.frames.empty() && error.frames.back().code.empty()) {
          error.frames.back().code = code.substr(0, kMaxMessage);
        }
      } else if (!StartsWith(line, " ")) {
        if (ParseError(line, error)) {
          ++at_;
          ReadMessage(error);
          Keep(std::move(error));
          return;
        }
        if (++stray > kMaxStrayLines) return;
      }
    }
  }

  // "Error(s) in loading state_dict for Net:" tells nothing without the next line.
  void ReadMessage(PythonError& error) {
    if (!EndsWith(error.message, ":") || at_ >= lines_.size()) return;
    const std::string_view more = Trim(Here());
    if (more.empty() || more.find(kHeader) != std::string_view::npos) return;
    error.message = (error.message + " " + std::string(more)).substr(0, kMaxMessage);
  }

  void Keep(PythonError error) {
    const bool linked = std::exchange(linked_, false);
    end_ = at_;
    if (member_ && in_group_) {
      if (found_.members.size() < kMaxMembers) found_.members.push_back(std::move(error));
      return;
    }
    if (!linked) found_.chain.clear();
    found_.members.clear();
    found_.chain.push_back(std::move(error));
    in_group_ = group_;
  }

  const std::vector<std::string> lines_;
  size_t at_ = 0;
  size_t end_ = 0;  // behind the last error that was kept
  std::string prefix_;
  bool group_ = false;     // the block being read is a group's own
  bool member_ = false;    // ... or one of its members
  bool in_group_ = false;  // the last error of the chain is a group
  bool linked_ = false;    // the next block continues the chain
  Traceback found_;
};

}  // namespace

bool IsUserFile(std::string_view file) {
  for (const std::string_view part : {"/site-packages/", "/dist-packages/"}) {
    if (file.find(part) != std::string_view::npos) return false;
  }
  for (const std::string_view part : {"/lib/python", "/lib64/python"}) {
    const size_t at = file.find(part);
    if (at == std::string_view::npos) continue;
    const size_t digit = at + part.size();
    if (digit < file.size() && file[digit] >= '0' && file[digit] <= '9') return false;
  }
  return !StartsWith(file, "<frozen ");
}

std::vector<std::string> PlainLines(std::string_view log, size_t max) {
  std::vector<std::string> lines;
  while (EndsWith(log, "\n")) log.remove_suffix(1);
  while (!log.empty() && lines.size() < max) {
    const size_t newline = log.rfind('\n');
    const std::string_view raw = newline == std::string_view::npos ? log : log.substr(newline + 1);
    log = newline == std::string_view::npos ? std::string_view() : log.substr(0, newline);
    std::string line;
    for (size_t i = 0; i < raw.size() && line.size() < 8'192; ++i) {
      if (raw[i] == '\x1b' && i + 1 < raw.size() && raw[i + 1] == '[') {
        i += 2;
        while (i < raw.size() && (raw[i] < '@' || raw[i] > '~')) ++i;
      } else if (raw[i] == '\r') {
        // What a progress bar wrote before is overwritten, unless this ends the line.
        if (i + 1 < raw.size()) line.clear();
      } else {
        line += raw[i];
      }
    }
    lines.push_back(std::move(line));
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

const std::vector<Frame>& Traceback::frames() const {
  const PythonError& final_error = chain.back();
  if (chain.size() > 1) {
    const PythonError& before = chain[chain.size() - 2];
    const auto user = [](const Frame& frame) { return frame.user; };
    if (before.type == final_error.type && before.message == final_error.message &&
        std::any_of(before.frames.begin(), before.frames.end(), user)) {
      return before.frames;
    }
  }
  return final_error.frames;
}

std::optional<Traceback> ParseTraceback(std::string_view log) {
  return Reader(PlainLines(log)).Read();
}

std::optional<CrashStack> ParseCrashStack(std::string_view log) {
  constexpr std::string_view kFatal = "Fatal Python error: ";
  std::optional<CrashStack> stack;
  bool in_current = false;
  for (const std::string& line : PlainLines(log)) {
    if (const size_t at = line.find(kFatal); at != std::string::npos) {
      stack = CrashStack{line.substr(at + kFatal.size()).substr(0, kMaxMessage), {}};
      in_current = false;
    } else if (stack && StartsWith(line, "Current thread ")) {
      in_current = true;
    } else if (stack && in_current) {
      if (auto frame = ParseFrame(line)) {
        stack->frames.push_back(std::move(*frame));
      } else {
        in_current = false;
      }
    }
  }
  return stack;
}

std::vector<ThreadStack> ParseThreadStacks(std::string_view text) {
  constexpr std::string_view kOrder = "(most recent call first):";
  constexpr size_t kMaxThreads = 1'000;
  constexpr size_t kMaxLines = 100'000;  // faulthandler shows at most 100 frames of 100 threads
  std::vector<ThreadStack> threads;
  bool open = false;
  for (const std::string& line : PlainLines(text, kMaxLines)) {
    const bool current = StartsWith(line, "Current thread 0x");
    if (EndsWith(line, kOrder) &&
        (current || StartsWith(line, "Thread 0x") || StartsWith(line, "Stack "))) {
      if (threads.size() == kMaxThreads) break;
      threads.push_back({current, {}});
      open = true;
    } else if (open) {
      auto frame = ParseFrame(line);
      open = frame.has_value();
      if (frame) threads.back().frames.push_back(std::move(*frame));
    }
  }
  return threads;
}

}  // namespace athanor
