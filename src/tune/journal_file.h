// A journal in a file that one process uses at a time. Lines are written to the kernel before an
// ask or a tell is answered: they survive the process, but not a crash of the machine.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/io/fd.h"
#include "base/result.h"
#include "tune/stdio.h"

namespace athanor::tune {

class JournalFile {
 public:
  // Created if it does not exist; a torn last line is cut off. kConflict: another process has it.
  // kCorrupt: a line is invalid.
  static Result<std::unique_ptr<JournalFile>> Open(const std::string& path);

  const JournalText& text() const { return text_; }
  Status Append(std::string_view line);

 private:
  UniqueFd fd_;
  off_t size_ = 0;  // whole lines
  JournalText text_;
};

// A protocol over the file's search, or over a new one. `file` may be null (no journal) and
// outlives the protocol.
Result<std::unique_ptr<StdioProtocol>> ProtocolOver(JournalFile* file);

}  // namespace athanor::tune
