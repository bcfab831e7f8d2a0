// The native door's removal of what no job needs any more.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "door/doors.h"
#include "record/sweep/sweep.h"
#include "run/environment_cache.h"
#include "run/source.h"

namespace athanor {
namespace {

constexpr Millis kBlobsKept = std::chrono::hours(1);
constexpr int64_t kCoarseMs = 1'000;  // times of files lag behind the clock
constexpr Millis kCachesKept = std::chrono::hours(24 * 30);

template <class Count>
Json CountView(const Count& count) {
  return {{"removed", count.removed}, {"bytes", count.bytes}, {"kept", count.kept}};
}

Result<Json> Sweep(const DoorContext& context, const std::vector<JobRecord>& live,
                   WallTime blobs_since, WallTime caches_since, bool dry_run) {
  const auto cache = JoinPath(context.info.home, "cache");
  ATHANOR_TRY(const auto blobs, SweepBlobs(StoreLayout{context.info.home}, context.blobs,
                                           context.jobs, live, {blobs_since, dry_run}));
  ATHANOR_TRY(const auto environments, SweepEnvironments(cache, caches_since, dry_run));
  ATHANOR_TRY(const auto sources, SweepSources(cache, caches_since, dry_run));
  return Json{{"dry_run", dry_run},
              {"bytes", blobs.bytes + environments.bytes + sources.bytes},
              {"blobs", CountView(blobs)},
              {"environments", CountView(environments)},
              {"sources", CountView(sources)}};
}

void Gc(DoorContext& context, const Call& call) {
  auto older = kCachesKept;
  if (auto asked = call.request.Query("older")) {
    auto span = ParseDuration(*asked);
    if (!span) return call.Refuse(span.error());
    older = *span;
  }
  const bool dry_run = call.request.Query("dry_run").value_or("") == "true";
  const auto now = context.clock.Wall().ms;
  // Whatever a live job was given, or has put down and not told yet, is younger than it is.
  auto oldest = now;
  std::vector<JobRecord> live;
  for (const auto* record : context.engine.AllLive()) {
    live.push_back(*record);
    oldest = std::min(oldest, record->created.ms - kCoarseMs);
  }
  const WallTime blobs_since{std::min(oldest, now - kBlobsKept.count())};
  const WallTime caches_since{std::min(oldest, now - older.count())};
  bool taken = context.readers.Submit([&context, call, live = std::move(live), blobs_since,
                                       caches_since, dry_run] {
    auto swept = Sweep(context, live, blobs_since, caches_since, dry_run);
    if (!swept) return call.Refuse(swept.error());
    call.Json(200, DumpJson(*swept));
  });
  if (!taken) call.Refuse(Error{ErrorCode::kUnavailable, "the server is stopping"});
}

}  // namespace

std::vector<DoorRoute> SweepRoutes(DoorContext& context) {
  return {{"POST", "/api/v1/gc", "server.gc", [&context](const Call& call) { Gc(context, call); }}};
}

}  // namespace athanor
