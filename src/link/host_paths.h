// HostPaths is where an agent finds things on the machine that it runs on. It is chosen there: by
// the back end for hosts on the server's own machine, by the host itself everywhere else
// (launch/command/machine_side.h). AttemptPlan has everything that is the same on any machine.
#pragma once

#include <string>

#include "job/ids.h"
#include "record/layout.h"

namespace athanor {

struct HostPaths {
  std::string dir;          // of the host (link/attempt_dir.h): all its files are below
  std::string cache_dir;    // environments and data caches, shared by jobs
  std::string supervisor;   // athanor-supervisor
  std::string python_path;  // where the athanor package is; empty: none
  std::string aws_dir;      // overlay for AWS clients (link/aws_environment.h); empty: none
  std::string url;          // where the script's own clients find the server; empty: nowhere
  // What the script does not see, but for what it needs: the server's home, or the folder of hosts
  // on another machine; empty: nothing.
  std::string hide_dir;
  // The server's home, if it is on this machine: its folders are used in place, and the server is
  // started again after it was killed. Empty: files travel (link/remote_job_files.h).
  std::string home;

  StoreLayout layout() const { return {home}; }
  // Empty where the server is elsewhere.
  std::string job_dir(const JobId& job) const {
    return home.empty() ? "" : layout().job(job.ToString());
  }
  bool is_server_here() const { return !home.empty(); }
};

}  // namespace athanor
