// The native door's removal of what no job needs any more, and what all of it takes.
#include <algorithm>
#include <memory>
#include <set>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "door/doors.h"
#include "door/native/storage_book.h"
#include "door/queries.h"
#include "record/sweep/sweep.h"
#include "run/agent/source.h"
#include "run/environment/environment_cache.h"
#include "steer/removal.h"
#include "track/trash.h"

namespace athanor {
namespace {

constexpr Millis kBlobsKept = std::chrono::hours(1);
constexpr int64_t kCoarseMs = 1'000;                   // times of files lag behind the clock
constexpr Millis kKept = std::chrono::hours(24 * 30);  // of caches, and in the trash

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

// Sweeps and answers, with what the trash held added.
void Finish(DoorContext& context, const Call& call, const std::vector<JobRecord>& live,
            std::pair<WallTime, WallTime> since, bool dry_run, const Trash& trash) {
  auto swept = Sweep(context, live, since.first, since.second, dry_run);
  if (!swept) return call.Refuse(swept.error());
  (*swept)["trash"] = {
      {"removed", trash.due.size()}, {"bytes", trash.bytes()}, {"kept", trash.kept}};
  (*swept)["bytes"] = (*swept)["bytes"].get<uint64_t>() + trash.bytes();
  call.Json(200, DumpJson(*swept));
}

void Gc(DoorContext& context, const Call& call) {
  auto older = kKept;
  if (auto asked = call.request.Query("older")) {
    auto span = ParseDuration(*asked);
    if (!span) return call.Refuse(span.error());
    older = *span;
  }
  const bool dry_run = call.request.Query("dry_run").value_or("") == "true";
  const auto now = context.clock.Wall().ms;
  // Everything that a live job was given, or has written and not reported yet, is younger than the
  // job.
  auto oldest = now;
  std::vector<JobRecord> live;
  for (const auto* record : context.engine.AllLive()) {
    live.push_back(*record);
    oldest = std::min(oldest, record->created.ms - kCoarseMs);
  }
  const std::pair since{WallTime{std::min(oldest, now - kBlobsKept.count())},
                        WallTime{std::min(oldest, now - older.count())}};
  const WallTime trash_before{now - older.count()};
  // The trash first: what only its runs named goes with the same sweep.
  OnReader(context, call, [&context, call, live = std::move(live), since, trash_before, dry_run] {
    std::set<JobId> running;
    for (const auto& record : live) running.insert(record.id);
    const auto trash = LookIntoTrash(context.runs, context.logs, StoreLayout{context.info.home},
                                     trash_before, running);
    if (dry_run || trash.due.empty()) return Finish(context, call, live, since, dry_run, trash);
    context.loop.Post([&context, call, live, since, trash] {
      context.removal.RemoveRuns(trash.ids(),
                                 [&context, call, live, since, trash](const Status& status) {
                                   if (!status) return call.Refuse(status.error());
                                   OnReader(context, call, [&context, call, live, since, trash] {
                                     Finish(context, call, live, since, false, trash);
                                   });
                                 });
    });
  });
}

// What takes how much of the disk: asked for, never pushed.
void Storage(const DoorContext& context, StorageBook& book, const Call& call) {
  book.Ask([call, home = context.info.home](const StorageUse* use) {
    if (use == nullptr) {
      return call.Refuse(Error{ErrorCode::kUnavailable, "the server is stopping"});
    }
    Json parts = Json::array();
    for (const auto& part : use->parts) {
      parts.push_back({{"name", part.name}, {"path", part.path}, {"bytes", part.bytes}});
    }
    Json out = {
        {"parts", std::move(parts)}, {"bytes", use->bytes}, {"counted_ms", use->counted.ms}};
    if (auto free = FreeBytes(home)) out["free_bytes"] = *free;
    call.Json(200, DumpJson(out));
  });
}

}  // namespace

std::vector<DoorRoute> SweepRoutes(DoorContext& context) {
  // Lives as long as its route.
  auto book = std::make_shared<StorageBook>(context.clock, context.readers, [&context] {
    return CountStorage(StoreLayout{context.info.home}, context.clock);
  });
  return {Native("server.gc", [&context](const Call& call) { Gc(context, call); }),
          Native("server.storage",
                 [&context, book](const Call& call) { Storage(context, *book, call); })};
}

}  // namespace athanor
