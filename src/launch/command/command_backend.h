// CommandBackend runs the hosts of an attempt on another machine that a command reaches, such as
// `ssh box` or `nsenter -t 123 -m -n`: it starts `athanor agent --machine FOLDER` there, with the
// call on its standard input (launch/command/backend_calls.h), and that does what a ProcessBackend
// does (launch/command/machine_side.h). Nothing has to run there beforehand, and agents outlive the
// command. Their way home is the address in their plans, not this command.
//
// A command that fails, is too slow or prints no answer says nothing about the machine's hosts:
// kUnavailable, and the engine asks again. Tokens travel on the standard input only.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "launch/backend.h"
#include "launch/command/backend_calls.h"

namespace athanor {

class CommandBackend final : public Backend {
 public:
  struct Options {
    std::string name;                 // of the back end
    std::vector<std::string> reach;   // put before the command; empty: it runs here
    std::string program = "athanor";  // there
    std::string folder;               // there: all that it keeps is below
    std::chrono::milliseconds patience{20'000};
  };
  explicit CommandBackend(Options options);

  std::string_view name() const override { return options_.name; }
  Result<std::string> Launch(const LaunchPlan& plan) override;
  std::vector<Result<std::vector<HostStatus>>> Poll(
      const std::vector<std::string>& handles) override;
  Status Release(const std::string& handle) override;

 private:
  // What it printed. kUnavailable.
  Result<std::string> Ask(const backend_calls::Call& call) const;
  const Options options_;
};

}  // namespace athanor
