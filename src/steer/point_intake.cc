#include "steer/point_intake.h"

#include <utility>

#include "record/series/series_store.h"

namespace athanor {

Result<size_t> PointIntake::Take(JobId run, const PointBatch& batch) {
  return Stored(run, [&] { return parts_.series.Append(run, batch); });
}

Result<size_t> PointIntake::Add(JobId run, PointBatch batch) {
  return Stored(run, [&] { return parts_.series.Add(run, std::move(batch)); });
}

Result<size_t> PointIntake::TakeFrames(JobId run, std::string_view frames) {
  return Stored(run, [&] { return parts_.series.AppendFrames(run, frames); });
}

Result<size_t> PointIntake::Stored(JobId run, const std::function<Result<size_t>()>& append) {
  Result<size_t> added = 0;
  parts_.storing(run, [&] { added = append(); });
  // Of too many names, the points of those that the store knows are stored.
  const bool some = added ? *added > 0 : added.error().id == kTooManyNames;
  if (some) parts_.came(run);
  return added;
}

}  // namespace athanor
