// The series of all runs in one archive of a backup. One file per run would cost ten times as much,
// because most are only a few hundred bytes long.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/io/fd.h"
#include "base/result.h"
#include "job/ids.h"
#include "record/layout.h"

namespace athanor {

class TarWriter;

class SeriesPack {
 public:
  // Creates the archive of the backup in the folder `to`.
  static Result<std::unique_ptr<SeriesPack>> Make(const StoreLayout& to);
  ~SeriesPack();

  // Adds the run's series if it has one, up to its last complete record: it may be growing.
  Status Add(const StoreLayout& from, JobId run);
  Status Close();

  uint64_t files() const { return files_; }
  uint64_t bytes() const { return bytes_; }

 private:
  SeriesPack(UniqueFd out, std::unique_ptr<TarWriter> writer);

  const UniqueFd out_;
  const std::unique_ptr<TarWriter> writer_;
  uint64_t files_ = 0;
  uint64_t bytes_ = 0;
};

// Puts the series where a store has them, and removes the archive. Ok if there is none: older
// backups have the files themselves.
Status UnpackSeries(const StoreLayout& layout);

}  // namespace athanor
