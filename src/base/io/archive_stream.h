// The part of base/io/archive that knows libarchive: members read from and written to a descriptor,
// within limits. It does not decide where a member may go: archives from outside go through
// archive.cc. Code that packs members that are not a tree of files (record/backup) uses TarWriter.
#pragma once

#include <memory>
#include <string>

#include "base/io/archive.h"
#include "base/result.h"

namespace athanor {

class TarReader {
 public:
  // Borrows `in_fd`, which stays open.
  static Result<std::unique_ptr<TarReader>> Open(int in_fd, const ExtractLimits& limits);
  ~TarReader();
  TarReader(const TarReader&) = delete;
  TarReader& operator=(const TarReader&) = delete;

  // The next member, or false at the end. Checks it against every limit first.
  Result<bool> Next();
  const TarMember& member() const;
  // The content of the current regular file; holes stay holes.
  Status CopyToFile(int fd);
  // The same to something that cannot seek; holes become zeros.
  Status CopyToStream(int fd);

 private:
  struct State;
  explicit TarReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class TarWriter {
 public:
  // Borrows `out_fd`, which stays open.
  static Result<std::unique_ptr<TarWriter>> Open(int out_fd, Compression compression);
  ~TarWriter();
  TarWriter(const TarWriter&) = delete;
  TarWriter& operator=(const TarWriter&) = delete;

  // `file_fd` gives the `member.size` bytes of a regular file; -1 for other members.
  Status Add(const TarMember& member, int file_fd);
  // Writes the end of the archive. Without this call the archive is incomplete.
  Status Close();

 private:
  struct State;
  explicit TarWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace athanor
