// An attempt's directory, plan and supervisor for tests: the real program, the
// real launcher, real scripts.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "run/supervisor/exit_record.h"
#include "run/supervisor/launch_supervisor.h"
#include "run/supervisor/supervisor_plan.h"

namespace athanor::test {

class TestAttempt {
 public:
  TestAttempt();   // one rank, no mounts, no cgroups, short grace times
  ~TestAttempt();  // ends the supervisor if it still runs, removes the directory
  TestAttempt(const TestAttempt&) = delete;
  TestAttempt& operator=(const TestAttempt&) = delete;

  SupervisorPlan plan;
  Isolation isolation;  // as probed; a test may take some away

  const std::string& dir() const { return dir_; }
  std::string path(const std::string& name) const { return dir_ + "/" + name; }
  void WriteScript(const std::string& name, const std::string& text) const;
  // The rank's command: sh -c `text`.
  void Shell(const std::string& text, size_t rank = 0);
  void Python(const std::string& text, size_t rank = 0);  // python3 <file>
  void AddRank();

  void WritePlan() const;
  void Launch();  // writes the plan, starts it, waits for "S" or "E"
  const std::string& ready() const { return ready_; }
  int pidfd() const { return launched_->pidfd.get(); }
  pid_t pid() const { return launched_->pid; }
  void WaitForEnd();  // of the supervisor; fails the test after two minutes
  ExitRecord Run();   // Launch, WaitForEnd, record()
  ExitRecord record() const;
  StartedRecord started() const;

  std::string out(size_t rank = 0) const;
  std::string err(size_t rank = 0) const;
  std::string Content(const std::string& name) const;  // empty when absent
  // Waits until the file is there with something in it, or fails the test.
  std::string Await(const std::string& name) const;

 private:
  std::string dir_;
  std::optional<LaunchedSupervisor> launched_;
  bool collected_ = false;
  std::string ready_;
};

// Looks every few milliseconds until `condition`; false after two minutes.
bool Eventually(const std::function<bool()>& condition);
bool IsRoot();
// Runs `body` in a forked child as user and group nobody, with no groups; the
// child's failures and messages are printed. True when it returned true.
bool AsNobody(const std::function<bool()>& body);

}  // namespace athanor::test
