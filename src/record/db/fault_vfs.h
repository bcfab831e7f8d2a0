// FaultVfs is between SQLite and the disk in tests: while it exists, it is SQLite's default file
// system. It can fail the N-th change of a file, once or from then on, and can simulate a power
// cut, which resets every file to its last sync.
//
// Threads: SQLite may call it from any, such as the thread that merges a store's log; the test
// calls the methods from its own thread.
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

  // Resets the files to their last sync; files that were never synced become as they were when
  // first opened. Every connection must be closed first. To cut the power in the middle, use a
  // failure for ever before; otherwise closing would sync.
  void CutPower();

  struct Parts;

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace athanor
