// ProcessBackend runs the hosts of an attempt side by side as processes of this machine: it writes
// the plan of each into its folder (job/host_folder.h) and starts `athanor agent` there in its own
// session, or gives the first to one that waits. The handle is the first folder's name; everything
// needed to find a host again (the agent's and the supervisor's identities, the exit record) is in
// its folder.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/exec/left_children.h"
#include "launch/backend.h"
#include "launch/process/spare_agent.h"

namespace athanor {

class ProcessBackend final : public Backend {
 public:
  struct Options {
    std::string attempts_dir;  // a folder for each host of an attempt below
    std::string program;       // athanor, for `agent`
    bool keep_spare = true;    // an agent that waits for the next attempt
    // Where an agent finds things here, but for its own folder; asked at each launch.
    std::function<HostPaths()> paths = [] { return HostPaths(); };
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
  std::string DirOf(const AttemptId& attempt, uint32_t host) const;
  uint32_t HostsOf(const AttemptId& attempt) const;  // 0: nothing is known of it
  Status LayOut(const LaunchPlan& plan, std::vector<std::string>& made) const;
  Status StartAgents(const LaunchPlan& plan);
  Status End(const std::vector<std::string>& dirs);

  Options options_;
  LeftChildren children_;  // agents
  std::optional<SpareAgent> spare_;
};

}  // namespace athanor
