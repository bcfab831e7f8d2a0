#include "submit/own_venv.h"

#include <algorithm>

#include "base/io/files.h"
#include "base/text/text.h"

namespace athanor {
namespace {

// ".venv" for ".venv/bin/python"; empty if the path does not lead into a venv that is left out.
std::string VenvOf(std::string_view path, const SourceTree& tree) {
  while (StartsWith(path, "./")) path.remove_prefix(2);
  for (size_t slash = path.find('/'); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    std::string dir(path.substr(0, slash));
    if (!CheckRelativeName(dir).ok()) return "";
    const std::string config = dir + "/pyvenv.cfg";
    if (tree.manifest.Find(config) == nullptr && Exists(JoinPath(tree.dir, config))) return dir;
  }
  return "";
}

class Rewriter {
 public:
  explicit Rewriter(const SourceTree& tree) : tree_(tree) {}

  std::string Word(const std::string& word) {
    const std::string venv = VenvOf(word, tree_);
    if (venv.empty()) return word;
    Note(venv);
    std::string_view rest = word;
    while (StartsWith(rest, "./")) rest.remove_prefix(2);
    return JoinPath(tree_.dir, std::string(rest));
  }

  // A text for a shell: each word of it that begins like a path.
  std::string Text(const std::string& text) {
    constexpr std::string_view kBounds = " \t\n;&|()`\"'=<>";
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find_first_of(kBounds, at), text.size());
      const std::string word = text.substr(at, end - at);
      const std::string full = Word(word);
      const bool quoted = at > 0 && (text[at - 1] == '"' || text[at - 1] == '\'');
      out += full == word || quoted ? full : ShellQuote(full);
      if (end < text.size()) out += text[end];
      at = end + 1;
    }
    return out;
  }

  std::vector<std::string> used() && { return std::move(used_); }

 private:
  void Note(const std::string& venv) {
    if (std::find(used_.begin(), used_.end(), venv) == used_.end()) used_.push_back(venv);
  }

  const SourceTree& tree_;
  std::vector<std::string> used_;
};

bool IsShell(std::string_view program) {
  const std::string name = BaseName(program);
  return name == "sh" || name == "bash" || name == "dash" || name == "zsh";
}

}  // namespace

std::vector<std::string> UseOwnVenvs(JobSpec& spec, const SourceTree& tree) {
  Rewriter rewriter(tree);
  const bool shell = spec.shell || (!spec.command.empty() && IsShell(spec.command.front()));
  for (auto& word : spec.command) {
    const bool text = shell && word.find_first_of(" \t\n") != std::string::npos;
    word = spec.shell || text ? rewriter.Text(word) : rewriter.Word(word);
  }
  spec.environment.python = rewriter.Word(spec.environment.python);
  return std::move(rewriter).used();
}

}  // namespace athanor
