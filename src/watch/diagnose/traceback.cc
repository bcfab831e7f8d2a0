#include "watch/diagnose/traceback.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kHeader = "Traceback (most recent call last):";
constexpr std::string_view kOpenHeader = "Traceback (most recent call last)";
constexpr std::string_view kContext =
    "During handling of the above exception, another exception occurred:";
constexpr std::string_view kCauseMark =
    "The above exception was the direct cause of the following exception:";
constexpr size_t kMaxMessage = 500;
constexpr size_t kMaxMembers = 8;
constexpr size_t kMaxTracebacks = 64;
constexpr size_t kMaxRestLines = 20;
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

// "pkg.SomeError: words", "KeyboardInterrupt". A line of a log that only begins with a word and a
// colon ("INFO: x") is recognised by the last part of the name.
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

// Lines that say that what follows did not end the program.
Told ToldBy(std::string_view line) {
  const auto has = [&](std::string_view words) {
    return line.find(words) != std::string_view::npos;
  };
  if (has("Exception ignored in") || has("Error in atexit") || has("--- Logging error ---") ||
      has("Exception ignored on")) {
    return Told::kIgnored;
  }
  if (has("Exception in thread ") || has("exception was never retrieved") ||
      has("Exception in callback ") || has("Unhandled exception in thread") ||
      has("Exception in Tkinter callback")) {
    return Told::kAside;
  }
  // "Process Process-1:", "Process ForkPoolWorker-3:"
  if (StartsWith(line, "Process ") && EndsWith(line, ":") && line.find(' ', 8) == line.npos) {
    return Told::kAside;
  }
  for (const std::string_view level : {"ERROR", "WARNING", "CRITICAL", "[error]", "[warning]"}) {
    const size_t at = line.find(level);
    if (at == std::string_view::npos) continue;
    // A level of a log record, not a word of a sentence in capitals.
    const bool begins = at == 0 || !IsWord(line[at - 1]);
    const size_t behind = at + level.size();
    if (begins && (behind == line.size() || !IsWord(line[behind]))) return Told::kLogged;
  }
  return Told::kPlain;
}

class Reader {
 public:
  explicit Reader(std::vector<std::string> lines) : lines_(std::move(lines)) {}

  std::vector<Traceback> Read() {
    while (at_ < lines_.size()) {
      const std::string_view line = lines_[at_];
      const size_t open = line.find(kOpenHeader);
      if (const size_t header = line.find(kHeader); header != std::string_view::npos) {
        SetPrefix(line.substr(0, header));
        begin_ = at_++;
        ReadBlock();
      } else if (open != std::string_view::npos && StartsWith(line, "╭")) {
        ReadBox();
      } else if (open != std::string_view::npos && EndsWith(line, kOpenHeader)) {
        ReadNotebook(Trim(line.substr(0, open)));
      } else if (ParseFrame(line)) {
        // No header: SyntaxError's form, or the tail begins in the middle.
        prefix_.clear();
        group_ = member_ = false;
        begin_ = at_;
        ReadBlock();
      } else {
        NoteLink(line);
        NoteMember(line);
        ++at_;
      }
    }
    std::vector<size_t> behind(lines_.size() + 1, 0);
    for (size_t i = lines_.size(); i-- > 0;) behind[i] = behind[i + 1] + !Trim(lines_[i]).empty();
    for (Traceback& one : found_) one.lines_after = behind[one.end];
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
    // A single quote mark or similar is not a prefix that the next lines share.
    if (!prefix_.empty() && at_ + 1 < lines_.size() && !StartsWith(lines_[at_ + 1], prefix_)) {
      prefix_.clear();
    }
  }

  void NoteLink(std::string_view line) {
    if (line.find(kContext) != std::string_view::npos) link_ = PythonError::Link::kDuringHandling;
    if (line.find(kCauseMark) != std::string_view::npos) link_ = PythonError::Link::kDirectCause;
  }

  // A member of a group that was never raised has no traceback: "    | ValueError: first", below
  // "+---------------- 1 ----------------".
  void NoteMember(std::string_view line) {
    if (!in_group_ || found_.empty() || at_ == 0) return;
    std::string_view text = Trim(line);
    PythonError error;
    if (!TakeWord(text, "| ") || lines_[at_ - 1].find("---------------- ") == std::string::npos ||
        !ParseError(text, error)) {
      return;
    }
    auto& members = found_.back().members;
    if (members.size() < kMaxMembers) members.push_back(std::move(error));
    found_.back().end = at_ + 1;
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

  // "Error(s) in loading state_dict for Net:" says nothing without the next line.
  void ReadMessage(PythonError& error) {
    if (EndsWith(error.message, ":") && at_ < lines_.size()) {
      const std::string_view more = Trim(Here());
      if (!more.empty() && more.find(kHeader) == std::string_view::npos) {
        error.message = (error.message + " " + std::string(more)).substr(0, kMaxMessage);
      }
    }
    for (size_t i = at_; i < lines_.size() && i < at_ + kMaxRestLines; ++i) {
      std::string_view line = lines_[i];
      if (StartsWith(line, prefix_)) line.remove_prefix(prefix_.size());
      const bool indented = !line.empty() && (line[0] == ' ' || line[0] == '\t');
      if (!indented || ParseFrame(line)) break;
      error.rest += std::string(Trim(line).substr(0, kMaxMessage)) + "\n";
      rest_end_ = i + 1;
    }
  }

  // rich's: frames in a box, the error below it.
  void ReadBox() {
    begin_ = at_++;
    prefix_.clear();
    group_ = member_ = false;
    PythonError error;
    for (; at_ < lines_.size() && StartsWith(lines_[at_], "│"); ++at_) {
      std::string_view line = lines_[at_];
      TakeWord(line, "│");
      if (const size_t end = line.rfind("│"); end != std::string_view::npos)
        line = line.substr(0, end);
      line = Trim(line);
      if (TakeWord(line, "❱ ")) {
        const size_t space = line.find(' ');
        if (!error.frames.empty() && space != std::string_view::npos) {
          error.frames.back().code = Trim(line.substr(space)).substr(0, kMaxMessage);
        }
        continue;
      }
      const size_t in = line.rfind(" in ");
      const size_t colon = in == std::string_view::npos ? in : line.rfind(':', in);
      if (colon == std::string_view::npos || colon == 0) continue;
      std::string_view number = line.substr(colon + 1, in - colon - 1);
      const auto at = TakeInt(number);
      if (!at || !number.empty()) continue;
      Frame frame{std::string(line.substr(0, colon)), *at, std::string(line.substr(in + 4)), "",
                  false};
      frame.user = IsUserFile(frame.file);
      error.frames.push_back(std::move(frame));
    }
    if (at_ < lines_.size() && StartsWith(lines_[at_], "╰")) ++at_;
    if (at_ < lines_.size() && ParseError(lines_[at_], error)) {
      ++at_;
      ReadMessage(error);
      Keep(std::move(error));
    }
  }

  // IPython's: the type is before the header, the error at the end.
  void ReadNotebook(std::string_view type) {
    begin_ = at_++;
    prefix_.clear();
    group_ = member_ = false;
    PythonError error;
    for (; at_ < lines_.size(); ++at_) {
      std::string_view line = lines_[at_];
      if (line.find(kOpenHeader) != std::string_view::npos) return;
      if (!type.empty() && StartsWith(line, type) && ParseError(line, error)) {
        ++at_;
        ReadMessage(error);
        Keep(std::move(error));
        return;
      }
      if (!TakeWord(line, "File ")) continue;
      const size_t colon = line.find(':');
      if (colon == std::string_view::npos) continue;
      Frame frame;
      frame.file = line.substr(0, colon);
      line.remove_prefix(colon + 1);
      const auto number = TakeInt(line);
      if (!number) continue;
      frame.line = *number;
      if (TakeWord(line, ", in ")) frame.function = line.substr(0, line.find('('));
      frame.user = IsUserFile(frame.file);
      error.frames.push_back(std::move(frame));
    }
  }

  // By the line before the first block of a chain, or the one before that: asyncio puts its task
  // in between.
  Told WhoTold() const {
    size_t looked = 0;
    for (size_t i = begin_; i > 0 && looked < 2; ++looked) {
      const std::string_view line = lines_[--i];
      const Told told = ToldBy(line);
      if (told != Told::kPlain && (looked == 0 || told == Told::kAside)) return told;
      const std::string_view text = Trim(line);
      if (!StartsWith(text, "future: ") && !StartsWith(text, "handle: ")) break;
    }
    return Told::kPlain;
  }

  void Keep(PythonError error) {
    error.link = std::exchange(link_, PythonError::Link::kNone);
    const size_t end = std::max(at_, std::exchange(rest_end_, 0));
    if (member_ && in_group_ && !found_.empty()) {
      auto& members = found_.back().members;
      if (members.size() < kMaxMembers) members.push_back(std::move(error));
      found_.back().end = end;
      return;
    }
    if (error.link == PythonError::Link::kNone || found_.empty()) {
      if (found_.size() == kMaxTracebacks) found_.erase(found_.begin());
      found_.emplace_back();
      found_.back().begin = begin_;
      found_.back().told = WhoTold();
    }
    found_.back().members.clear();
    found_.back().chain.push_back(std::move(error));
    found_.back().end = end;
    in_group_ = group_;
  }

  const std::vector<std::string> lines_;
  size_t at_ = 0;
  size_t begin_ = 0;     // of the block being read
  size_t rest_end_ = 0;  // after the further lines of its message
  std::string prefix_;
  bool group_ = false;                                 // the block being read is a group's own
  bool member_ = false;                                // ... or one of its members
  bool in_group_ = false;                              // the last error of the chain is a group
  PythonError::Link link_ = PythonError::Link::kNone;  // of the next block to the chain
  std::vector<Traceback> found_;
};

}  // namespace

bool IsUserFile(std::string_view file) {
  // The last two are ours: what a job's interpreter loads at its start, and the athanor package.
  for (const std::string_view part : {"/site-packages/", "/dist-packages/",
                                      "/python/site/sitecustomize.py", "/python/athanor/"}) {
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

std::vector<Traceback> ParseTracebacks(std::string_view log) {
  return Reader(PlainLines(log)).Read();
}

std::optional<Traceback> ParseTraceback(std::string_view log) {
  auto all = ParseTracebacks(log);
  if (all.empty()) return std::nullopt;
  return std::move(all.back());
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
