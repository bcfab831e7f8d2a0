// An OutputStream moves what a rank writes from its pipe into a file: byte for byte, up to a cap.
// It splices, so the bytes do not pass through this program.
//
// On a full disk nothing is lost: what does not fit stays in the pipe, the rank waits in its write
// once the pipe is full too, and the next Drain() continues when there is room. Bytes that cannot
// be written because of any other error are dropped, counted and marked.
#pragma once

#include <cstdint>
#include <string>

#include "base/io/fd.h"
#include "base/result.h"
#include "run/supervisor/exit_record.h"

namespace athanor::supervisor {

class OutputStream {
 public:
  // Opens (0600, appending to what is there) and makes the pipe. `uid`, `gid`
  // >= 0 own the pipe, so that a rank of that user can re-open /dev/stdout.
  static Result<OutputStream> Open(const std::string& path, int64_t cap, int64_t uid, int64_t gid);

  int write_end() const { return write_end_.get(); }
  void CloseWriteEnd() { write_end_.reset(); }  // after every rank has it
  int poll_fd() const { return read_end_.get(); }
  bool open() const { return static_cast<bool>(read_end_); }

  // Moves what is in the pipe now, at most about `limit` bytes. Closes the
  // stream at end of file. Returns the bytes taken from the pipe.
  int64_t Drain(int64_t limit);
  // The last Drain() left bytes in the pipe because the disk is full. The pipe is then always
  // readable: try again after a while instead of polling.
  bool waits_for_room() const { return waits_for_room_; }
  // Reads what is in the pipe now and drops it, counted: there is no more waiting for room.
  void GiveUpWaiting();
  // Leaves a pipe that someone still holds open.
  void Close();
  void Sync();  // fdatasync
  const StreamEnd& end() const { return end_; }

 private:
  int64_t MoveToFile(int64_t limit);  // bytes, 0 at end of file, -1 with errno
  int64_t CopyToFile(int64_t limit);  // the same where splice does not work
  int64_t WriteHeld();                // the same, from what CopyToFile could not write
  int64_t MoveToNowhere(int64_t limit);
  void Note(const std::string& text);

  UniqueFd read_end_;
  UniqueFd write_end_;
  UniqueFd file_;
  UniqueFd null_;
  int64_t cap_ = 0;
  int64_t kept_ = 0;    // bytes of the script in the file
  int64_t offset_ = 0;  // end of the file
  int64_t gap_ = 0;     // bytes lost to a failed write since the last good one
  bool splice_works_ = true;
  bool waits_for_room_ = false;
  std::string held_;  // read by CopyToFile, not written yet
  StreamEnd end_;
};

}  // namespace athanor::supervisor
