// FaultVfs stands between SQLite and the disk in tests: while it lives it is
// SQLite's default file system. It can fail the N-th change of a file, once or
// from then on, and can cut the power, which takes every file back to what it
// was when it was last synced.
//
// Threads: SQLite may come from any, as the one of a store that takes its log in; the methods
// belong to the test's own.
#pragma once

#include <memory>
#include <string>

namespace athanor {

class FaultVfs {
 public:
  FaultVfs();
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  enum class Fault { kFull, kIoError, kKill };  // kKill: SIGKILL to this process, half-way
  // The `nth` write, truncate or sync from now on (0-based) fails; with `forever`, all after it.
  void FailAt(int nth, Fault fault, bool forever);
  void Heal();
  // Whether the armed failure was reached.
  bool failed() const;
  // Changes of files seen since FailAt or Heal.
  int changes() const;

  // Takes the files back to their last sync; ones never synced become as they were when
  // first opened. Every connection must be closed, after a failure for ever where the
  // power is to go: else closing would sync.
  void CutPower();

  struct Parts;

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace athanor
