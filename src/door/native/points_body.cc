#include "door/native/points_body.h"

#include <utility>

#include "door/body_feed.h"
#include "door/native/views.h"
#include "record/series/series_walk.h"

namespace athanor {
namespace {

constexpr size_t kPointsAtOnce = 4096;

class PointsBody final : public BodySource {
 public:
  PointsBody(SeriesWalk walk, std::string name) : walk_(std::move(walk)), name_(std::move(name)) {}

  Result<std::optional<std::string>> Next() override {
    ATHANOR_TRY(const auto points, walk_.Next(kPointsAtOnce));
    if (points.empty()) return std::optional<std::string>();
    return std::optional(PointsView(name_, points));
  }

 private:
  SeriesWalk walk_;
  const std::string name_;
};

}  // namespace

void SendPoints(DoorContext& context, const Call& call, JobId run, const std::string& name,
                bool with_abandoned) {
  auto walk = context.series.Walk(run, name, WalkOrder::kByStep, with_abandoned,
                                  context.runs.ResumesOf(run));
  if (!walk) return call.Refuse(walk.error());
  Response head;
  head.headers.Add("Content-Type", "application/x-ndjson");
  SendBody(context, call, std::move(head), std::make_shared<PointsBody>(std::move(*walk), name),
           [&call](const Error& error) { call.Refuse(error); });
}

}  // namespace athanor
