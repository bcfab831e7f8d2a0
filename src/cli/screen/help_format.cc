#include "cli/screen/help_format.h"

#include <algorithm>
#include <utility>

namespace athanor {
namespace {

constexpr size_t kColumn = 28;  // where descriptions begin
constexpr size_t kWidth = 80;

using Rows = std::vector<std::pair<std::string, std::string>>;

// One row under a heading; what does not fit on a line continues under its description.
std::string Row(const std::string& name, const std::string& text) {
  std::string out = "  " + name;
  size_t at = out.size();
  if (at + 2 > kColumn) {
    out += '\n';
    at = 0;
  }
  out.append(kColumn - at, ' ');
  at = kColumn;
  for (size_t from = 0; from < text.size();) {
    size_t to = std::min(text.find(' ', from), text.size());
    // Letters, not bytes: "20s±10s" has one more byte than letters.
    const auto letters = static_cast<size_t>(std::count_if(
        text.begin() + static_cast<ptrdiff_t>(from), text.begin() + static_cast<ptrdiff_t>(to),
        [](char c) { return (c & 0xC0) != 0x80; }));
    if (at > kColumn && at + 1 + letters > kWidth) {
      out += '\n' + std::string(kColumn, ' ');
      at = kColumn;
    } else if (at > kColumn) {
      out += ' ';
      ++at;
    }
    out.append(text, from, to - from);
    at += letters;
    from = to + 1;
  }
  return out + '\n';
}

std::string Section(const std::string& heading, const Rows& rows) {
  if (rows.empty()) return "";
  std::string out = "\n" + heading + ":\n";
  for (const auto& [name, text] : rows) out += Row(name, text);
  return out;
}

// What an argument is called: JOB, FILE.
std::string NameOf(const CLI::Option* argument) {
  const std::string name = argument->get_type_name();
  return name.empty() || name == "TEXT" ? argument->get_name(true, false) : name;
}

std::string OptionName(const CLI::Option* option) {
  std::string name;
  for (const auto& letter : option->get_snames()) name += "-" + letter + ", ";
  if (name.empty()) name = "    ";
  std::string longs;
  for (const auto& word : option->get_lnames()) longs += (longs.empty() ? "--" : ", --") + word;
  name += longs;
  if (option->get_type_size() != 0 && !option->get_type_name().empty()) {
    name += " " + option->get_type_name();
  }
  return name;
}

}  // namespace

std::string HelpFormat::Usage(const CLI::App* app, const std::string& name) const {
  if (const auto at = usage_.find(app); at != usage_.end()) return "Usage: " + at->second + "\n";
  std::string out = "Usage: " + name;
  const auto commands =
      app->get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); });
  if (!commands.empty() && app->get_require_subcommand_min() > 0)
    return out + " COMMAND [OPTIONS]\n";
  out += " [OPTIONS]";
  const bool takes_words =
      !app->get_options([](const CLI::Option* each) { return each->get_positional(); }).empty();
  if (!commands.empty() && !takes_words) out += " [COMMAND]";
  for (const auto* argument :
       app->get_options([](const CLI::Option* each) { return each->get_positional(); })) {
    std::string word = NameOf(argument);
    if (argument->get_expected_max() > 1) word += "...";
    out += argument->get_required() ? " " + word : " [" + word + "]";
  }
  return out + "\n";
}

std::string HelpFormat::Options(const CLI::App* app) const {
  std::vector<std::pair<std::string, Rows>> groups = {{"Options", {}}};
  for (const auto* option :
       app->get_options([](const CLI::Option* each) { return each->nonpositional(); })) {
    const std::string& group = option->get_group();
    if (group.empty()) continue;
    auto at = std::ranges::find(groups, group, &std::pair<std::string, Rows>::first);
    if (at == groups.end()) at = groups.insert(groups.end(), {group, {}});
    at->second.emplace_back(OptionName(option), option->get_description());
  }
  // Options that every command has are at the end.
  std::stable_partition(groups.begin(), groups.end(),
                        [](const auto& each) { return each.first != "Output"; });
  std::string out;
  for (const auto& [group, rows] : groups) out += Section(group, rows);
  return out;
}

std::string HelpFormat::Commands(const CLI::App* app) const {
  std::vector<std::string> groups = order_;
  const auto commands =
      app->get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); });
  for (const auto* command : commands) {
    if (std::ranges::find(groups, command->get_group()) == groups.end()) {
      groups.push_back(command->get_group());
    }
  }
  std::string out;
  for (const auto& group : groups) {
    Rows rows;
    for (const auto* command : commands) {
      if (command->get_group() == group) {
        rows.emplace_back(command->get_name(), command->get_description());
      }
    }
    out += Section(group == "Subcommands" ? "Commands" : group, rows);
  }
  return out;
}

std::string HelpFormat::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const {
  std::string out = app->get_description() + "\n\n" + Usage(app, name);
  Rows arguments;
  for (const auto* argument :
       app->get_options([](const CLI::Option* each) { return each->get_positional(); })) {
    if (!argument->get_description().empty()) {
      arguments.emplace_back(NameOf(argument), argument->get_description());
    }
  }
  out += Section("Arguments", arguments);
  // Everyday commands before options, where there are commands.
  out += Commands(app) + Options(app);
  if (const std::string footer = app->get_footer(); !footer.empty()) out += "\n" + footer + "\n";
  return out;
}

}  // namespace athanor
