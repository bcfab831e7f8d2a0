// What the parts of the command line share: the values that options are stored in, and how a verb
// is added. Only args*.cc include it, because they include CLI11.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/completed_app.h"
#include "cli/screen/help_format.h"
#include "cli/verbs/verbs.h"

namespace athanor::args {

// Every verb's values live here until it is called.
struct Values {
  Common common;
  RunOptions run;
  ListOptions list;
  LogOptions logs;
  ServeOptions serve;
  ReplayOptions replay;
  ExecPlace exec;
  ExportOptions exported;
  ImportOptions imported;
  TuneOptions tune;
  RunsOptions runs;
  StopOptions stop;
  RemoveOptions remove;
  DuOptions du;
  MetricsOptions metrics;
  std::string job;
  std::string name;
  std::string text;
  std::string scope = "submit";
  std::vector<std::string> jobs;
  bool flag = false;
  bool other_flag = false;
  bool deep = false;
  std::function<int()> verb;
  std::shared_ptr<HelpFormat> help = std::make_shared<HelpFormat>();
};

void AddCommon(CLI::App* app, Values& v);
CLI::App* Verb(CLI::App& app, Values& v, const char* name, const char* text,
               std::function<int()> call);

// The verbs about what is kept (types, secrets, tokens), about help, and about the server.
void AddKeeping(CLI::App& app, Values& v);
void AddHelping(CLI::App& app, Values& v);
void AddServer(CLI::App& app, Values& v);

}  // namespace athanor::args
