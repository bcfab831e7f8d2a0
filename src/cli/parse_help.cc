#include "cli/parse_help.h"

#include <algorithm>
#include <optional>

#include "base/text/text.h"

namespace athanor {
namespace {

std::string NameOfVerb(const CLI::App& verb) {
  const auto* parent = verb.get_parent();
  return parent == nullptr ? "ath" : NameOfVerb(*parent) + " " + verb.get_name();
}

// The first word from `at` on that looks like an option and is none of the verb's.
std::optional<std::string> UnknownOption(const CLI::App& verb, const std::vector<std::string>& args,
                                         size_t at) {
  for (; at < args.size(); ++at) {
    const std::string word = args[at].substr(0, args[at].find('='));
    if (!StartsWith(word, "--") || word.size() == 2) continue;
    const auto* option = verb.get_option_no_throw(word);
    if (option == nullptr) return word;
    // Its value may look like one.
    if (option->get_items_expected_max() != 0 && word == args[at]) ++at;
  }
  return std::nullopt;
}

}  // namespace

Error Misunderstood(const CLI::App& app, const CLI::ParseError& e,
                    const std::vector<std::string>& args, const std::string& file) {
  const CLI::App* verb = &app;
  size_t at = 0;
  for (; at < args.size(); ++at) {
    const auto named =
        verb->get_subcommands([&](const CLI::App* each) { return each->get_name() == args[at]; });
    if (named.empty()) break;
    verb = named.front();
  }
  auto error = Error{ErrorCode::kInvalid, "", NameOfVerb(*verb) + " --help"}.Id("ATH-C0010");
  const auto suggest = [&](const std::string& given, const std::vector<std::string>& known) {
    if (const auto near = Nearest(given, known)) {
      error.hint = "did you mean " + *near + "?\n" + error.hint;
    }
  };
  const auto verbs =
      verb->get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); });
  // `ath env` goes without one, but not with a word that is none.
  const bool only_verbs =
      verb->get_options([](const CLI::Option* each) { return each->get_positional(); }).empty() &&
      at < args.size() && !StartsWith(args[at], "-");
  if (!verbs.empty() && (verb->get_require_subcommand_min() > 0 || only_verbs)) {
    error.what = NameOfVerb(*verb) + " needs a command";
    if (at == args.size()) return error;
    error.what = NameOfVerb(*verb) + " has no command '" + Printable(args[at]) + "'";
    std::vector<std::string> names;
    for (const auto* each : verbs) names.push_back(each->get_name());
    suggest(args[at], names);
    return error;
  }
  // Before what else is wrong: an argument may only be missing because of it.
  if (const auto unknown = UnknownOption(*verb, args, at)) {
    error.what = NameOfVerb(*verb) + " does not know '" + Printable(*unknown) + "'";
    std::vector<std::string> names;
    for (const auto* option : verb->get_options()) {
      if (option->get_group().empty()) continue;
      for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    }
    suggest(*unknown, names);
    return error;
  }
  error.what = NameOfVerb(*verb) + ": " + e.what();
  const std::string words = e.what();
  if (e.get_name() != "ExtrasError" || words.find(": ") == std::string::npos) return error;
  const auto extra = Split(words.substr(words.find(": ") + 2), ' ').front();
  error.what = NameOfVerb(*verb) + " does not know '" + Printable(extra) + "'";
  if (const auto command = std::find(args.begin(), args.end(), file);
      verb->get_name() == "run" && !file.empty() && command != args.end() &&
      !EndsWith(file, ".yaml") && !EndsWith(file, ".yml")) {
    error.why = "a command goes after --";
    error.hint = "ath run --";
    for (auto word = command; word != args.end(); ++word) error.hint += " " + ShellQuote(*word);
    return error;
  }
  return error;
}

}  // namespace athanor
