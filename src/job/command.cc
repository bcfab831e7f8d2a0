#include "job/command.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/json.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kChannel = "channel.";
constexpr std::string_view kArgs = "args";

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_.-/").find(c) != std::string_view::npos;
}

bool IsReference(std::string_view name) {
  if (name.empty() || (name.front() >= '0' && name.front() <= '9') || name.front() == '-') {
    return false;
  }
  return std::all_of(name.begin(), name.end(), IsNameChar);
}

bool IsCapital(std::string_view name) {
  return std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

// How the text at one point of a shell command is read. `$(` opens a bare context inside every
// other one except single quotes, so contexts nest.
class QuoteTracker {
 public:
  enum class Context { kBare, kDouble, kSingle };

  Context context() const { return stack_.back(); }
  bool quotable() const { return !backtick_ && !here_document_; }

  // Reads the character at text[at] and returns how many were read.
  size_t Read(std::string_view text, size_t at) {
    const char c = text[at];
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (context() == Context::kSingle) {
      if (c == '\'') stack_.pop_back();
      return 1;
    }
    if (c == '\\' && next != '\0') return 2;
    if (c == '`') backtick_ = !backtick_;
    if (c == '$' && next == '(') {
      stack_.push_back(Context::kBare);
      return 2;
    }
    if (c == '"') {
      context() == Context::kDouble ? stack_.pop_back() : stack_.push_back(Context::kDouble);
      return 1;
    }
    if (context() == Context::kDouble) return 1;
    if (c == '\'') stack_.push_back(Context::kSingle);
    if (c == '(') stack_.push_back(Context::kBare);
    if (c == ')' && stack_.size() > 1) stack_.pop_back();
    if (c == '<' && next == '<') here_document_ = true;
    const bool word_start =
        at == 0 || std::string_view(" \t\n;&|(").find(text[at - 1]) != text.npos;
    if (c == '#' && word_start) {
      // A comment; quotes in it do not count.
      return std::min(text.find('\n', at), text.size()) - at;
    }
    return 1;
  }

 private:
  std::vector<Context> stack_{Context::kBare};
  bool backtick_ = false;
  bool here_document_ = false;
};

std::string QuoteFor(QuoteTracker::Context context, const std::string& value) {
  switch (context) {
    case QuoteTracker::Context::kBare:
      return ShellQuote(value);
    case QuoteTracker::Context::kSingle:
      return ReplaceAll(value, "'", "'\\''");
    case QuoteTracker::Context::kDouble:
      break;
  }
  std::string quoted;
  for (const char c : value) {
    if (c == '"' || c == '$' || c == '`' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted;
}

// Past the end of "${name}" or "$${name}" at `at`; 0 if there is none.
size_t ReferenceEnd(std::string_view text, size_t at) {
  const size_t brace = StartsWith(text.substr(at), "$${") ? at + 2 : at + 1;
  if (text[at] != '$' || brace >= text.size() || text[brace] != '{') return 0;
  const size_t close = text.find('}', brace);
  if (close == std::string_view::npos) return 0;
  return IsReference(text.substr(brace + 1, close - brace - 1)) ? close + 1 : 0;
}

// The names that the command asks for by ${name}.
std::set<std::string> ReferencesIn(const JobSpec& spec) {
  std::set<std::string> names;
  for (const std::string_view word : spec.command) {
    for (size_t at = 0; at < word.size(); ++at) {
      const size_t end = ReferenceEnd(word, at);
      if (end == 0) continue;
      if (word[at + 1] != '$') names.emplace(word.substr(at + 2, end - at - 3));
      at = end - 1;
    }
  }
  return names;
}

std::string ItemText(const Json& item) {
  return item.is_string() ? item.get<std::string>() : DumpJson(item);
}

void AppendFlag(const Param& param, std::vector<std::string>& words) {
  const std::string flag = "--" + param.name;
  switch (param.kind) {
    case Param::Kind::kNull:
      return;
    case Param::Kind::kBool:
      if (ToLower(param.value) == "true") words.push_back(flag);
      return;
    case Param::Kind::kJson:
      if (const auto list = ParseJson(param.value); list && list->is_array()) {
        words.push_back(flag);
        for (const auto& item : *list) words.push_back(ItemText(item));
        return;
      }
      break;
    case Param::Kind::kString:
    case Param::Kind::kNumber:
      break;
  }
  // argparse takes -1e-5 for an option if it is a separate word.
  if (StartsWith(param.value, "-")) {
    words.push_back(flag + "=" + param.value);
  } else {
    words.push_back(flag);
    words.push_back(param.value);
  }
}

bool HasParam(const JobSpec& spec, std::string_view name) {
  return std::any_of(spec.params.begin(), spec.params.end(),
                     [&](const Param& param) { return param.name == name; });
}

// A parameter of that name takes precedence.
bool IsFlagsPlace(const JobSpec& spec, std::string_view name) {
  return name == kArgs && !HasParam(spec, kArgs);
}

std::vector<std::string> FlagWords(const JobSpec& spec) {
  std::vector<std::string> words;
  const auto named = ReferencesIn(spec);
  for (const auto& param : spec.params) {
    if (!named.contains(param.name) && !IsPlatformParam(param.name)) AppendFlag(param, words);
  }
  return words;
}

std::string ShellWords(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) line += (line.empty() ? "" : " ") + ShellQuote(word);
  return line;
}

// One program with its arguments: what is appended belongs to that program.
bool IsOneCommand(std::string_view text) {
  QuoteTracker quotes;
  for (size_t at = 0; at < text.size();) {
    if (quotes.context() == QuoteTracker::Context::kBare &&
        std::string_view("|;&<>()`#\n").find(text[at]) != std::string_view::npos) {
      return false;
    }
    at += quotes.Read(text, at);
  }
  return quotes.context() == QuoteTracker::Context::kBare;
}

class Substitution {
 public:
  Substitution(const JobSpec& spec, const ChannelPath& channel_path)
      : spec_(spec), channel_path_(channel_path) {}

  Result<std::string> Apply(std::string_view text) {
    QuoteTracker quotes;
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t end = ReferenceEnd(text, at);
      if (end == 0) {
        const size_t read = spec_.shell ? quotes.Read(text, at) : 1;
        out += text.substr(at, read);
        at += read;
        continue;
      }
      const bool escaped = text[at + 1] == '$';
      const std::string_view whole = text.substr(at, end - at);
      const std::string_view name = whole.substr(escaped ? 3 : 2, whole.size() - (escaped ? 4 : 3));
      at = end;
      if (escaped) {
        out += whole.substr(1);
        continue;
      }
      if (IsFlagsPlace(spec_, name)) {
        if (!spec_.shell || quotes.context() != QuoteTracker::Context::kBare ||
            !quotes.quotable()) {
          return Fail(Misplaced());
        }
        out += ShellWords(FlagWords(spec_));
        continue;
      }
      ATHANOR_TRY(const auto value, Lookup(name));
      if (!value) {
        out += whole;
      } else if (!spec_.shell) {
        out += *value;
      } else {
        ATHANOR_TRY(const auto quoted, Quote(quotes, name, *value));
        out += quoted;
      }
    }
    return out;
  }

 private:
  // nullopt: leave it to the shell.
  Result<std::optional<std::string>> Lookup(std::string_view name) const {
    for (const auto& param : spec_.params) {
      if (param.name == name) return param.value;
    }
    if (StartsWith(name, kChannel)) {
      if (auto path = channel_path_(name.substr(kChannel.size()))) return path;
    } else if (IsCapital(name)) {
      return std::nullopt;
    }
    return Fail(Unknown(name));
  }

  Error Unknown(std::string_view name) const {
    std::vector<std::string> known;
    for (const auto& param : spec_.params) known.push_back(param.name);
    for (const auto& channel : spec_.data) known.push_back(std::string(kChannel) + channel.name);
    const auto near = Nearest(name, known);
    return Error{ErrorCode::kInvalid,
                 fmt::format("the command names ${{{}}}, which is not given", Printable(name)),
                 near ? fmt::format("did you mean ${{{}}}?", Printable(*near))
                      : fmt::format("-p {}=VALUE, or $${{{}}} to leave it to the shell",
                                    Printable(name), Printable(name))}
        .Why(known.empty() ? "the job has no parameters and no data channels"
                           : "known are: " + Printable(Join(known, ", ").substr(0, 300)))
        .Id("ATH-S0111");
  }

  static Result<std::string> Quote(const QuoteTracker& quotes, std::string_view name,
                                   const std::string& value) {
    // A value that needs no quotes bare needs none anywhere.
    if (ShellQuote(value) == value || quotes.quotable()) return QuoteFor(quotes.context(), value);
    return Fail(Error{ErrorCode::kInvalid,
                      fmt::format("${{{}}} cannot be quoted there", Printable(name)),
                      "use $(...) instead of `...`, or put the command in a script"}
                    .Why("the command has a here-document or `...` before it")
                    .Id("ATH-S0111"));
  }

  static Error Misplaced() {
    return Error{ErrorCode::kInvalid, "${args} must be a word of its own",
                 "run: python train.py ${args}"}
        .Why("it becomes several words: the parameters as flags")
        .Id("ATH-S0111");
  }

  const JobSpec& spec_;
  const ChannelPath& channel_path_;
};

}  // namespace

bool IsPlatformParam(std::string_view name) {
  return StartsWith(name, "sagemaker_") || name == "_tuning_objective_metric";
}

bool PassesFlags(const JobSpec& spec) {
  return IsFlagsPlace(spec, kArgs) && ReferencesIn(spec).contains(std::string(kArgs));
}

Status PassFlags(JobSpec& spec) {
  if (PassesFlags(spec)) return Ok();
  if (!spec.shell || spec.command.empty()) {
    spec.command.emplace_back(kFlagsPlace);
    return Ok();
  }
  const auto text = Trim(spec.command.front());
  if (IsOneCommand(text)) {
    spec.command.front() = std::string(text) + " " + kFlagsPlace;
    return Ok();
  }
  return Fail(Error{ErrorCode::kInvalid, "it is not clear which program gets the parameters",
                    "put ${args} where they belong: run: python train.py ${args} | tee log.txt"}
                  .Why("the command runs more than one program, or redirects its output")
                  .Id("ATH-S0111"));
}

bool CommandPasses(const JobSpec& spec, const Param& param) {
  if (PassesFlags(spec) && !IsPlatformParam(param.name)) return true;
  if (ReferencesIn(spec).contains(param.name)) return true;
  const auto line = Join(spec.command, " ");
  return line.find(param.name + "=" + param.value) != line.npos ||
         line.find(param.name + " " + param.value) != line.npos;
}

Result<std::vector<std::string>> SubstituteCommand(const JobSpec& spec,
                                                   const ChannelPath& channel_path) {
  Substitution substitution(spec, channel_path);
  const bool placed = PassesFlags(spec);
  std::vector<std::string> command;
  for (const auto& word : spec.command) {
    if (placed && !spec.shell && word == kFlagsPlace) {
      for (auto& flag : FlagWords(spec)) command.push_back(std::move(flag));
      continue;
    }
    ATHANOR_TRY(command.emplace_back(), substitution.Apply(word));
  }
  return command;
}

std::string CommandLine(const JobSpec& spec) {
  const auto built = SubstituteCommand(spec, [](std::string_view name) {
    return std::optional("/opt/ml/input/data/" + std::string(name));
  });
  const auto& command = built ? *built : spec.command;
  return spec.shell && command.size() == 1 ? command.front() : ShellWords(command);
}

}  // namespace athanor
