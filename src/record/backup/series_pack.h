// The series of all runs in one archive of a backup: a file for each of them would cost ten times as
// much, for most are a few hundred bytes long.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "job/ids.h"
#include "record/layout.h"

namespace athanor {

class TarWriter;

class SeriesPack {
 public:
  // Makes the archive of the backup that is laid out as `to`.
  static Result<std::unique_ptr<SeriesPack>> Make(const StoreLayout& to);
  ~SeriesPack();

  // Adds the run's series if it has one, up to its last whole record: it may be growing.
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

// Puts the series where a store has them, and removes the archive. Ok where there is none: older
// backups have the files themselves.
Status UnpackSeries(const StoreLayout& layout);

}  // namespace athanor
