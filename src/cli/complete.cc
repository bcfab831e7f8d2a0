#include "cli/complete.h"

#include <algorithm>

#include "base/text/text.h"

namespace athanor {
namespace {

const CompletedOption* Find(const CompletedVerb& verb, const std::string& name) {
  for (const auto& option : verb.options) {
    if (std::ranges::find(option.names, name) != option.names.end()) return &option;
  }
  return nullptr;
}

void AddBeginning(Completions& out, const std::vector<std::string>& words, const std::string& begin,
                  const std::string& ahead) {
  for (const auto& word : words) {
    if (StartsWith(word, begin)) out.words.push_back(ahead + word);
  }
}

void AddValues(Completions& out, const CompletedOption& option, std::string begin,
               std::string ahead) {
  // Several states in one word.
  if (const size_t comma = begin.rfind(',');
      option.value == "STATES" && comma != std::string::npos) {
    ahead += begin.substr(0, comma + 1);
    begin.erase(0, comma + 1);
  }
  AddBeginning(out, option.words, begin, ahead);
  if (option.words.empty()) out.kind = option.value;
  out.begin = begin;
  out.ahead = ahead;
}

// bash gives "--state", "=", "fai" for --state=fai.
void JoinEquals(std::vector<std::string>& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] != "=" || !StartsWith(words[i - 1], "--")) continue;
    words.erase(words.begin() + static_cast<ptrdiff_t>(i));
    if (i == words.size()) words.emplace_back();
  }
}

}  // namespace

Completions CompletionsOf(const CompletedVerb& ath, std::vector<std::string> words) {
  Completions out;
  if (words.empty()) words.emplace_back();
  JoinEquals(words);
  const std::string typed = words.back();
  words.pop_back();
  if (!words.empty() && words.front() == "help") words.erase(words.begin());
  const CompletedVerb* verb = &ath;
  const CompletedOption* open = nullptr;  // the option whose value comes next
  for (const auto& word : words) {
    // The rest is a command of the user's.
    if (word == "--") {
      out.kind = "FILE";
      out.begin = typed;
      return out;
    }
    if (open != nullptr) {
      open = nullptr;
    } else if (StartsWith(word, "-") && word.size() > 1) {
      const auto* option = word.find('=') == std::string::npos ? Find(*verb, word) : nullptr;
      if (option != nullptr && !option->value.empty()) open = option;
    } else if (const auto below = std::ranges::find(verb->verbs, word, &CompletedVerb::name);
               below != verb->verbs.end() && out.before.empty()) {
      verb = &*below;
    } else {
      out.before.push_back(word);
    }
  }
  if (open != nullptr) {
    AddValues(out, *open, typed, "");
    return out;
  }
  if (const size_t equals = typed.find('=');
      StartsWith(typed, "--") && equals != std::string::npos) {
    const auto* option = Find(*verb, typed.substr(0, equals));
    if (option != nullptr) {
      AddValues(out, *option, typed.substr(equals + 1), typed.substr(0, equals + 1));
    }
    return out;
  }
  if (StartsWith(typed, "-")) {
    for (const auto& option : verb->options) AddBeginning(out, option.names, typed, "");
    return out;
  }
  if (out.before.empty()) {
    for (const auto& below : verb->verbs) AddBeginning(out, {below.name}, typed, "");
  }
  if (!verb->arguments.empty()) {
    const size_t place = std::min(out.before.size(), verb->arguments.size() - 1);
    AddValues(out, verb->arguments[place], typed, "");
  }
  return out;
}

}  // namespace athanor
