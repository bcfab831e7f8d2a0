// Pages of docs/ that are made from tables, so that they cannot grow old.
#include <cstdio>
#include <string>

#include "cli/errors.h"
#include "cli/verbs/verbs.h"
#include "job/state.h"
#include "serve/settings.h"
#include "submit/job_file.h"

namespace athanor {
namespace {

// Mermaid, which GitHub and editors draw.
std::string StateDiagram() {
  std::string out = "```mermaid\nstateDiagram-v2\n    [*] --> Queued: submit\n";
  for (const auto& edge : Edges()) {
    out += "    " + std::string(NameOf(edge.from)) + " --> " + std::string(NameOf(edge.to)) + ": " +
           std::string(NameOf(edge.step)) + "\n";
  }
  for (auto state : kAllStates) {
    if (IsTerminal(state)) out += "    " + std::string(NameOf(state)) + " --> [*]\n";
  }
  return out + "```\n";
}

}  // namespace

int DocsVerb(const std::string& page) {
  std::string text = page == "errors"     ? ErrorsPage()
                     : page == "states"   ? StateDiagram()
                     : page == "job-file" ? JobFileReference()
                     : page == "settings" ? SettingsPage()
                                          : std::string();
  if (text.empty()) return 3;
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace athanor
