#include "base/text/ignore.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kDefaults =
    ".git\n.hg\n.svn\n.venv/\nvenv/\n__pycache__/\n*.pyc\nnode_modules/\n.ipynb_checkpoints/\n"
    ".mypy_cache/\n.pytest_cache/\n.ruff_cache/\n.tox/\n.DS_Store\nmlruns/\nwandb/\n"
    "lightning_logs/\n";

// Trailing spaces are removed, unless a backslash keeps them.
std::string_view WithoutTrailingSpaces(std::string_view line) {
  size_t end = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '\\' && at + 1 < line.size()) {
      ++at;
    } else if (line[at] == '\\' || line[at] == ' ') {
      if (line[at] == '\\') return line;
      continue;
    }
    end = at + 1;
  }
  return line.substr(0, end);
}

// "": it is at the top.
std::string_view FolderOf(std::string_view path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

bool InNamedClass(std::string_view name, int c, bool& known) {
  known = true;
  if (name == "alnum") return std::isalnum(c) != 0;
  if (name == "alpha") return std::isalpha(c) != 0;
  if (name == "blank") return c == ' ' || c == '\t';
  if (name == "cntrl") return std::iscntrl(c) != 0;
  if (name == "digit") return std::isdigit(c) != 0;
  if (name == "graph") return std::isgraph(c) != 0;
  if (name == "lower") return std::islower(c) != 0;
  if (name == "print") return std::isprint(c) != 0;
  if (name == "punct") return std::ispunct(c) != 0;
  if (name == "space") return std::isspace(c) != 0;
  if (name == "upper") return std::isupper(c) != 0;
  if (name == "xdigit") return std::isxdigit(c) != 0;
  known = false;
  return false;
}

}  // namespace

IgnorePattern::IgnorePattern(std::string_view line) {
  if (EndsWith(line, "\r")) line.remove_suffix(1);
  blank_ = line.empty() || line.front() == '#';
  if (blank_) return;
  line = WithoutTrailingSpaces(line);
  if (StartsWith(line, "!")) {
    negated_ = true;
    line.remove_prefix(1);
  }
  if (EndsWith(line, "/")) {
    folders_only_ = true;
    line.remove_suffix(1);
  }
  name_only_ = line.find('/') == std::string_view::npos;
  if (StartsWith(line, "/")) line.remove_prefix(1);
  if (line.empty()) {
    never_ = true;
    return;
  }
  plain_ = line.find_first_of("*?[\\") == std::string_view::npos;
  if (plain_) {
    text_ = line;
  } else {
    never_ = !Compile(line);
  }
}

bool IgnorePattern::Compile(std::string_view pattern) {
  for (size_t at = 0; at < pattern.size();) {
    const char c = pattern[at];
    if (c == '*') {
      CompileStars(pattern, at);
    } else if (c == '?') {
      tokens_.push_back({Kind::kAny});
      ++at;
    } else if (c == '[') {
      if (!CompileClass(pattern, at)) return false;
    } else {
      if (c == '\\' && ++at == pattern.size()) return false;
      tokens_.push_back({Kind::kChar, static_cast<unsigned char>(pattern[at])});
      ++at;
    }
  }
  const auto is_wild = [](const Token& token) { return token.kind != Kind::kChar; };
  const auto head_end = std::find_if(tokens_.begin(), tokens_.end(), is_wild);
  const auto tail_begin = std::find_if(tokens_.rbegin(), tokens_.rend(), is_wild).base();
  const auto byte_of = [](const Token& token) { return static_cast<char>(token.byte); };
  std::transform(tokens_.begin(), head_end, std::back_inserter(head_), byte_of);
  std::transform(tail_begin, tokens_.end(), std::back_inserter(tail_), byte_of);
  return true;
}

// Two or more stars that fill a whole path component cross slashes; any others do not. Git compares
// the part before the first wildcard separately, and then treats the rest as the whole pattern: in
// "ab**/c" the stars count as the start of a component.
void IgnorePattern::CompileStars(std::string_view pattern, size_t& at) {
  const size_t start = at;
  while (at < pattern.size() && pattern[at] == '*') ++at;
  const bool starts_component =
      start == 0 || pattern[start - 1] == '/' || start == pattern.find_first_of("*?[\\");
  const bool whole_component =
      at - start > 1 && !name_only_ && starts_component &&
      (at == pattern.size() || pattern[at] == '/' || pattern.substr(at, 2) == "\\/");
  if (!whole_component) {
    tokens_.push_back({Kind::kStar});
  } else if (at < pattern.size() && pattern[at] == '/') {
    tokens_.push_back({Kind::kFolders});
    tokens_.push_back({Kind::kInFolders});
    ++at;
  } else {
    tokens_.push_back({Kind::kEverything});
  }
}

bool IgnorePattern::CompileClass(std::string_view pattern, size_t& at) {
  ByteSet set{};
  size_t p = at + 1;
  const auto peek = [&](size_t i) -> unsigned char {
    return i < pattern.size() ? static_cast<unsigned char>(pattern[i]) : 0;
  };
  const bool negated = peek(p) == '!' || peek(p) == '^';
  if (negated) ++p;
  unsigned char previous = 0;  // may start a range
  // A bracket that comes first is literal.
  for (bool first = true; first || peek(p) != ']'; first = false, ++p) {
    unsigned char c = peek(p);
    if (c == 0) return false;
    if (c == '-' && previous != 0 && peek(p + 1) != 0 && peek(p + 1) != ']') {
      c = peek(++p);
      if (c == '\\') c = peek(++p);
      if (c == 0) return false;
      for (unsigned i = previous; i <= c; ++i) set[i] = true;
      previous = 0;
      continue;
    }
    if (c == '[' && peek(p + 1) == ':') {
      const size_t end = pattern.find(']', p + 2);
      if (end == std::string_view::npos) return false;
      if (end > p + 2 && pattern[end - 1] == ':') {
        bool known = false;
        for (int i = 0; i < 256; ++i) {
          if (InNamedClass(pattern.substr(p + 2, end - p - 3), i, known)) {
            set[static_cast<size_t>(i)] = true;
          }
        }
        if (!known) return false;
        p = end;
        previous = 0;
        continue;
      }
    } else if (c == '\\') {
      c = peek(++p);
      if (c == 0) return false;
    }
    set[c] = true;
    previous = c;
  }
  if (negated) {
    for (bool& member : set) member = !member;
  }
  set['/'] = false;
  tokens_.push_back({Kind::kClass, 0, static_cast<uint32_t>(sets_.size())});
  sets_.push_back(set);
  at = p + 1;
  return true;
}

bool IgnorePattern::Accepts(const Token& token, unsigned char byte) const {
  switch (token.kind) {
    case Kind::kChar:
      return token.byte == byte;
    case Kind::kAny:
      return byte != '/';
    case Kind::kClass:
      return sets_[token.set][byte];
    case Kind::kStar:
      return byte != '/';
    case Kind::kEverything:
    case Kind::kInFolders:
      return true;
    case Kind::kFolders:
      return false;
  }
  return false;
}

// Follows all paths through the pattern at once, so that no pattern takes exponential time.
bool IgnorePattern::Run(std::string_view text) const {
  std::vector<char> now(tokens_.size() + 1, 0);
  std::vector<char> next(tokens_.size() + 1, 0);
  const auto close = [&](std::vector<char>& states) {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (states[i] == 0) continue;
      if (tokens_[i].kind == Kind::kStar || tokens_[i].kind == Kind::kEverything) states[i + 1] = 1;
      if (tokens_[i].kind == Kind::kFolders) states[i + 1] = states[i + 2] = 1;
    }
  };
  now[0] = 1;
  close(now);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    std::fill(next.begin(), next.end(), 0);
    bool alive = false;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (now[i] == 0 || !Accepts(tokens_[i], byte)) continue;
      const Kind kind = tokens_[i].kind;
      const bool stays =
          kind == Kind::kStar || kind == Kind::kEverything || kind == Kind::kInFolders;
      if (stays) next[i] = 1;
      if (!stays || (kind == Kind::kInFolders && c == '/')) next[i + 1] = 1;
      alive = true;
    }
    if (!alive) return false;
    close(next);
    now.swap(next);
  }
  return now[tokens_.size()] != 0;
}

bool IgnorePattern::Matches(std::string_view path, bool is_dir) const {
  if (blank_ || never_ || (folders_only_ && !is_dir)) return false;
  if (name_only_) path = path.substr(path.find_last_of('/') + 1);
  if (plain_) return path == text_;
  return StartsWith(path, head_) && EndsWith(path, tail_) && Run(path);
}

bool IgnorePattern::CanMatchIn(std::string_view folder) const {
  if (never_) return false;
  if (name_only_ || !plain_) return true;
  const size_t name = text_.find_last_of('/') + 1;
  return std::string_view(text_).substr(0, name) == folder;
}

IgnoreRules::IgnoreRules(std::string prefix) : prefix_(std::move(prefix)) {}

void IgnoreRules::AddDefaults() { Add(Layer::kDefault, prefix_, kDefaults, "the defaults"); }

void IgnoreRules::Add(Layer layer, std::string_view folder, std::string_view text,
                      std::string_view source) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (StartsWith(text, kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  uint32_t number = 0;
  for (const auto& line : Split(text, '\n')) {
    ++number;
    IgnorePattern pattern(line);
    if (pattern.is_blank()) continue;
    auto& folders = layers_[static_cast<size_t>(layer)];
    folders[std::string(folder)].push_back(
        {std::move(pattern), std::string(Trim(line)), std::string(source),
         layer == Layer::kDefault || layer == Layer::kExtra ? 0 : number});
  }
}

IgnoreRules::InFolder IgnoreRules::For(std::string_view folder) const {
  std::string full = prefix_;
  if (!full.empty() && !folder.empty()) full += '/';
  full += folder;
  InFolder found;
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    if (layer->empty()) continue;
    for (std::string_view at = full;; at = FolderOf(at)) {
      if (const auto rules = layer->find(at); rules != layer->end()) {
        std::string below =
            at.size() == full.size() ? "" : full.substr(at.empty() ? 0 : at.size() + 1) + "/";
        for (auto rule = rules->second.rbegin(); rule != rules->second.rend(); ++rule) {
          if (!rule->pattern.CanMatchIn(below)) continue;
          found.candidates_.push_back({&*rule, rule->pattern.is_for_names() ? "" : below});
        }
      }
      if (at.empty()) break;
    }
  }
  return found;
}

const IgnoreRules::Rule* IgnoreRules::InFolder::Decider(std::string_view name, bool is_dir) const {
  std::string path;
  for (const auto& [rule, below] : candidates_) {
    if (!below.empty()) path.assign(below).append(name);
    if (rule->pattern.Matches(below.empty() ? name : path, is_dir)) return rule;
  }
  return nullptr;
}

IgnoreVerdict IgnoreRules::OnEntry(std::string_view path, bool is_dir) const {
  const Rule* rule = For(FolderOf(path)).Decider(path.substr(path.find_last_of('/') + 1), is_dir);
  if (rule == nullptr) return {};
  return {!rule->pattern.is_negated(), rule->source, rule->line, rule->text};
}

IgnoreVerdict IgnoreRules::OnPath(std::string_view path, bool is_dir) const {
  for (size_t slash = path.find('/'); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    IgnoreVerdict verdict = OnEntry(path.substr(0, slash), true);
    if (verdict.ignored) return verdict;
  }
  return OnEntry(path, is_dir);
}

}  // namespace athanor
