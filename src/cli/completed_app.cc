#include "cli/completed_app.h"

#include <algorithm>
#include <utility>

#include "base/text/text.h"

namespace athanor {
namespace {

// What an option or argument takes, for completion.
CompletedOption CompletedOf(const CLI::Option& option) {
  CompletedOption out;
  for (const auto& name : option.get_lnames()) out.names.push_back("--" + name);
  for (const auto& name : option.get_snames()) out.names.push_back("-" + name);
  if (option.get_items_expected_max() == 0) return out;
  const std::string type = option.get_type_name();  // "PHASE:{setup,run,all}"
  out.value = type.substr(0, type.find(':'));
  if (const size_t open = type.find('{'); open != std::string::npos) {
    out.words = Split(type.substr(open + 1, type.find('}') - open - 1), ',');
  }
  static const std::pair<const char*, std::vector<std::string>> kKnown[] = {
      {"STATES",
       {"queued", "placing", "preparing", "running", "uploading", "interrupted", "completed",
        "failed", "stopped", "stopping", "interrupting", "unknown"}},
      {"SHELL", {"bash", "zsh", "fish"}},
      {"SCOPE", {"read", "submit", "admin"}}};
  for (const auto& [value, words] : kKnown) {
    if (out.value == value) out.words = words;
  }
  const auto is = [&](const char* name) {
    return std::ranges::find(out.names, name) != out.names.end();
  };
  if (is("--experiment")) out.value = "EXPERIMENT";
  if (is("--secret")) out.value = "SECRET";
  if (is("--strategy")) out.words = {"auto", "bayes", "tpe", "sobol", "random", "grid"};
  for (const char* file : {"FILE", "DIR", "PATH", "JOB.yaml"}) {
    if (out.value == file) out.value = "FILE";
  }
  if (out.value == "JOB:PATH") out.value = "JOB";
  if (out.value == "ID") out.value = "TOKEN";
  return out;
}

}  // namespace

CompletedVerb CompletedOf(const CLI::App& app) {
  CompletedVerb out;
  out.name = app.get_name();
  for (const auto* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? out.arguments : out.options).push_back(CompletedOf(*option));
  }
  for (const auto* below :
       app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); })) {
    out.verbs.push_back(CompletedOf(*below));
  }
  if (out.name == "rm" && app.get_parent()->get_name() == "secret")
    out.arguments[0].value = "SECRET";
  return out;
}

}  // namespace athanor
