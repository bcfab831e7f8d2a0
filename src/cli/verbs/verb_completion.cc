// completion: what a shell needs to complete `ath`, and what it then asks for.
#include <algorithm>
#include <cstdio>
#include <set>

#include <nlohmann/json.hpp>

#include "base/text/text.h"
#include "cli/client.h"
#include "cli/complete.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"

namespace athanor {
namespace {

// Each calls `ath __complete` with the words so far; ":files" means files and folders.
constexpr char kBash[] = R"(_ath() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
    else
      COMPREPLY+=("$line")
    fi
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _ath ath athanor
)";
constexpr char kZsh[] = R"(#compdef ath athanor
_ath() {
  local line
  local -a found
  for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == :files ]]; then _files; elif [[ -n $line ]]; then found+=("$line"); fi
  done
  (( ${#found} )) && compadd -a found
}
# In a folder of fpath, this file is the function.
if [[ $funcstack[1] == _ath ]]; then _ath; else compdef _ath ath athanor; fi
)";
constexpr char kFish[] = R"(function __ath_complete
  set -l words (commandline -opc) (commandline -ct)
  for line in ($words[1] __complete $words[2..-1] 2>/dev/null)
    if test "$line" = :files
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c ath -f -a '(__ath_complete)'
complete -c athanor -f -a '(__ath_complete)'
)";

constexpr size_t kMostNames = 500;

// The names in a list that the server answers with.
struct Source {
  const char* kind;
  std::string target;
  const char* list;
  const char* name;
};

// None when no server runs: completion does not start one.
std::vector<std::string> AskServer(const Common& common, const Completions& wanted) {
  const std::string limit = "?limit=" + std::to_string(kMostNames);
  const std::string job = wanted.before.empty() ? "" : UrlEncode(wanted.before.front());
  const Source sources[] = {
      {"JOB", "/api/v1/jobs" + limit, "jobs", "name"},
      {"RUN", "/api/v1/runs" + limit, "runs", "name"},
      {"STUDY", "/api/v1/studies", "studies", "name"},
      {"TYPE", "/api/v1/types", "types", "name"},
      {"SECRET", "/api/v1/secrets", "secrets", "name"},
      {"EXPERIMENT", "/api/v1/experiments", "experiments", "name"},
      {"TOKEN", "/api/v1/tokens", "tokens", "id"},
      {"METRIC", "/api/v1/jobs/" + job + "/metrics", "metrics", "name"},
      {"CHECKPOINT", "/api/v1/jobs/" + job + "/checkpoints", "checkpoints", "id"}};
  for (const auto& source : sources) {
    if (wanted.kind != source.kind) continue;
    auto client = Client::Connect(common.home, false);
    const auto body = client ? client->Get(source.target) : tl::unexpected(client.error());
    std::vector<std::string> names;
    if (!body || !body->contains(source.list)) return names;
    for (const auto& row : (*body)[source.list]) names.push_back(Text(row, source.name));
    return names;
  }
  return {};
}

}  // namespace

int CompletionVerb(const Common& common, const std::string& shell) {
  const char* script = shell == "bash"   ? kBash
                       : shell == "zsh"  ? kZsh
                       : shell == "fish" ? kFish
                                         : nullptr;
  if (script == nullptr) {
    return Refuse(
        Error{ErrorCode::kInvalid, "no completion for " + Printable(shell), "ath completion bash"}
            .Why("bash, zsh and fish are supported")
            .Id("ATH-C0032"),
        common.json);
  }
  if (common.json) return PrintJson({{"shell", shell}, {"script", script}});
  std::fputs(script, stdout);
  return 0;
}

int CompleteVerb(const Common& common, const CompletedVerb& ath, std::vector<std::string> words) {
  const auto found = CompletionsOf(ath, std::move(words));
  std::set<std::string> known;
  for (const auto& word : found.words) {
    if (known.insert(word).second) std::printf("%s\n", word.c_str());
  }
  if (found.kind == "FILE") std::puts(":files");
  auto names = AskServer(common, found);
  if (found.kind == "JOB") names.insert(names.begin(), {"@last", "@last-failed"});
  if (found.kind == "STUDY") names.insert(names.begin(), "@last");
  for (const auto& name : names) {
    // A name of several lines or with spaces is not one word of a shell's.
    if (!StartsWith(name, found.begin) || Printable(name) != name) continue;
    if (known.insert(name).second)
      std::printf("%s%s\n", found.ahead.c_str(), ShellQuote(name).c_str());
  }
  return 0;
}

}  // namespace athanor
