// HostNetwork is what an agent does for the network of its host. Several hosts of an attempt on
// this machine get one of their own, where that is possible (run/isolate/links.h); a single host
// always has this machine's.
//
// Threads: the agent's main thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/io/fd.h"
#include "base/result.h"
#include "link/plan.h"
#include "run/isolate/forwarder.h"

namespace athanor {

class HostNetwork {
 public:
  // Joins the other hosts, if they are on this machine, and sets the addresses of plan.peers.
  // `running`: the script runs already, so the addresses are those that it was told.
  void Join(AttemptPlan& plan, bool side_by_side, bool running);
  bool own() const { return own_; }
  // The namespace to start the script in; -1: this machine's.
  int fd() const { return space_.get(); }
  // What is missing, for a person; empty: nothing.
  const std::string& off() const { return off_; }

  // Lets the script reach services of this machine's loopback where it looks for them: at its own.
  // `pid` has the script's network; 0: that of fd(). Other URLs are left alone.
  Status Forward(const std::vector<std::string>& urls, int64_t pid = 0);
  // Nothing runs in it any more.
  Status Leave();

 private:
  AttemptId attempt_;
  uint32_t host_ = 0;
  bool own_ = false;
  UniqueFd space_;
  std::string off_;
  std::unique_ptr<Forwarder> forwarder_;
};

}  // namespace athanor
