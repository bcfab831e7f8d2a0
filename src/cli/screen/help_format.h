// How help looks: what a command does, how it is typed, its arguments, options under headings, and
// commands under headings. Only args.cc includes this, because it needs the parser's headers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace athanor {

class HelpFormat : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;

  // For commands whose usage line is more than options and arguments.
  void SetUsage(const CLI::App* app, std::string lines) { usage_[app] = std::move(lines); }
  // The order of headings of commands; those that are not named here come last.
  void SetOrder(std::vector<std::string> groups) { order_ = std::move(groups); }

 private:
  std::string Usage(const CLI::App* app, const std::string& name) const;
  std::string Options(const CLI::App* app) const;
  std::string Commands(const CLI::App* app) const;

  std::map<const CLI::App*, std::string> usage_;
  std::vector<std::string> order_;
};

}  // namespace athanor
