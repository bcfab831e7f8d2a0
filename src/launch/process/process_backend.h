// ProcessBackend runs an attempt as processes of this machine: it writes the plan into the
// attempt's folder and starts `athanor agent` there in its own session, or gives it to one that
// waits. The handle is the folder's name; everything needed to find the attempt again (the agent's
// and the supervisor's identities, the exit record) is in that folder.
#pragma once

#include <memory>
#include <string>

#include "launch/backend.h"
#include "launch/process/spare_agent.h"

namespace athanor {

class ProcessBackend final : public Backend {
 public:
  struct Options {
    std::string attempts_dir;  // one folder per attempt below
    std::string program;       // athanor, for `agent`
  };
  explicit ProcessBackend(Options options);
  ~ProcessBackend() override;

  std::string_view name() const override { return "process"; }
  Result<std::string> Launch(const LaunchPlan& plan) override;
  std::vector<Result<std::vector<HostStatus>>> Poll(
      const std::vector<std::string>& handles) override;
  Status Release(const std::string& handle) override;

 private:
  Result<std::vector<HostStatus>> PollOne(const std::string& handle) const;
  Result<std::string> DirOf(const std::string& handle) const;
  Status EndScript(const std::string& dir) const;
  Options options_;
  SpareAgent spare_;
};

}  // namespace athanor
