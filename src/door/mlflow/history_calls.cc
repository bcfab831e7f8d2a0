// MLflow's metrics, read: whole, by pages, and sampled for charts. Answers may be long, so they are
// made piece by piece (body_feed.h).
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/text/format.h"
#include "base/text/text.h"
#include "door/body_feed.h"
#include "door/mlflow/calls.h"
#include "record/series/series_walk.h"

namespace athanor {
namespace {

constexpr size_t kMostHistory = 25'000;
constexpr int64_t kMostSampled = 2'500;
constexpr size_t kMostBulkRuns = 100;
constexpr size_t kPointsAtOnce = 4096;
constexpr std::string_view kTokenMark = "after ";

// A page begins where the one before ended, by place and not by number: what is logged meanwhile
// moves nothing.
std::string TokenOf(const WalkPlace& place) {
  return Base64(std::string(kTokenMark) + place.ToString());
}

Result<std::optional<WalkPlace>> ReadToken(const Fields& fields) {
  ATHANOR_TRY(const std::string token, fields.Text("page_token"));
  if (token.empty()) return std::optional<WalkPlace>();
  const auto text = FromBase64(token);
  const auto place = text && StartsWith(*text, kTokenMark)
                         ? WalkPlace::Parse(std::string_view(*text).substr(kTokenMark.size()))
                         : std::nullopt;
  if (place) return place;
  return InvalidParameter("Invalid page token: " + Printable(token.substr(0, 200)));
}

// A JSON document of which one piece after the other is taken. What writes to it lives as long.
class JsonPieces : public BodySource {
 public:
  Result<std::optional<std::string>> Next() final {
    if (done_) return std::optional<std::string>();
    text_.clear();
    while (!done_ && text_.size() < kBodyPiece) {
      ATHANOR_TRY(const bool more, WriteSome());
      done_ = !more;
    }
    return std::optional(std::move(text_));
  }

 protected:
  // Adds to the document; false: that was its end.
  virtual Result<bool> WriteSome() = 0;
  JsonWriter& json() { return json_; }
  void Reserve(size_t bytes) { text_.reserve(text_.size() + bytes); }

 private:
  std::string text_;
  JsonWriter json_{text_};
  bool done_ = false;
};

// By time, step and value; none of a metric that the run does not have.
Result<std::optional<SeriesWalk>> WalkOf(const Mlflow& mlflow, JobId run, const std::string& key) {
  if (!mlflow.context.runs.Has(run)) {
    return MlflowFail("RESOURCE_DOES_NOT_EXIST",
                      fmt::format("Run with id={} not found", run.value.ToHex()));
  }
  auto walk = mlflow.context.series.Walk(run, key, WalkOrder::kByTime, false,
                                         mlflow.context.runs.ResumesOf(run));
  if (walk) return std::optional(std::move(*walk));
  if (walk.error().code == ErrorCode::kNotFound) return std::optional<SeriesWalk>();
  return tl::unexpected(walk.error());
}

class HistoryBody final : public JsonPieces {
 public:
  HistoryBody(SeriesWalk walk, std::string key, size_t limit)
      : walk_(std::move(walk)), key_(std::move(key)), left_(limit), writer_(json(), key_) {}

 private:
  Result<bool> WriteSome() override {
    const size_t asked = std::min(left_, kPointsAtOnce);
    ATHANOR_TRY(const auto points, walk_.Next(asked));
    left_ -= points.size();
    if (!begun_) json().BeginObject();
    if (!begun_ && !points.empty()) {
      json().Key("metrics");
      json().BeginArray();
      any_ = true;
    }
    begun_ = true;
    Reserve(points.size() * (80 + key_.size()));
    for (const auto& point : points) writer_.Write(point);
    if (points.size() == asked && left_ > 0) return true;
    if (any_) json().EndArray();
    if (left_ == 0) {
      ATHANOR_TRY(const bool more, walk_.More());
      if (more) json().Text("next_page_token", TokenOf(*walk_.place()));
    }
    json().EndObject();
    return false;
  }

  SeriesWalk walk_;
  const std::string key_;
  size_t left_;
  PointWriter writer_;
  bool begun_ = false;
  bool any_ = false;
};

Result<Answer> History(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const JobId id, fields.Run());
  ATHANOR_TRY(const std::string key, fields.Needed("metric_key"));
  ATHANOR_TRY(const size_t limit, ReadLimit(fields, SIZE_MAX, INT32_MAX));
  ATHANOR_TRY(const auto place, ReadToken(fields));
  ATHANOR_TRY(auto walk, WalkOf(mlflow, id, key));
  Answer answer;
  if (!walk) return answer;
  if (place) walk->GoOnFrom(*place);
  answer.source = std::make_shared<HistoryBody>(std::move(*walk), key, limit);
  return answer;
}

// In the order in which MLflow answers; what is not an id names no run.
std::vector<JobId> RunsOf(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  std::vector<JobId> runs;
  for (const auto& text : texts) {
    if (const auto id = JobId::Parse(text)) runs.push_back(*id);
  }
  return runs;
}

// One run after the other, as many points in all as are asked for. A run that cannot be read has
// none.
class BulkBody final : public JsonPieces {
 public:
  BulkBody(const Mlflow& mlflow, std::vector<JobId> runs, std::string key, size_t limit)
      : mlflow_(mlflow), runs_(std::move(runs)), key_(std::move(key)), left_(limit) {}

 private:
  Result<bool> WriteSome() override {
    if (!begun_) {
      json().BeginObject();
      json().Key("metrics");
      json().BeginArray();
      begun_ = true;
    }
    if (left_ > 0 && (walk_ || run_ < runs_.size())) {
      if (!walk_) walk_ = WalkOf(mlflow_, runs_[run_], key_).value_or(std::nullopt);
      const size_t asked = std::min(left_, kPointsAtOnce);
      const auto points = walk_ ? walk_->Next(asked).value_or(std::vector<SeriesPoint>())
                                : std::vector<SeriesPoint>();
      PointWriter writer(json(), key_, runs_[run_].value.ToHex());
      for (const auto& point : points) writer.Write(point);
      left_ -= points.size();
      if (points.size() < asked) {
        walk_.reset();
        ++run_;
      }
      return true;
    }
    json().EndArray();
    json().EndObject();
    return false;
  }

  const Mlflow& mlflow_;
  const std::vector<JobId> runs_;
  const std::string key_;
  size_t left_;
  size_t run_ = 0;  // the one that `walk_` is of, or the next
  std::optional<SeriesWalk> walk_;
  bool begun_ = false;
};

Result<Answer> HistoryBulk(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(auto texts, fields.Texts("run_id"));
  ATHANOR_TRY(const std::string key, fields.Text("metric_key"));
  if (texts.empty()) {
    return InvalidParameter("GetMetricHistoryBulk request must specify at least one run_id.");
  }
  if (texts.size() > kMostBulkRuns) {
    return InvalidParameter(fmt::format(
        "GetMetricHistoryBulk request cannot specify more than {} run_ids. Received {} run_ids.",
        kMostBulkRuns, texts.size()));
  }
  if (key.empty()) {
    return InvalidParameter("GetMetricHistoryBulk request must specify a metric_key.");
  }
  ATHANOR_TRY(const size_t limit, ReadLimit(fields, kMostHistory, kMostHistory));
  Answer answer;
  answer.source = std::make_shared<BulkBody>(mlflow, RunsOf(std::move(texts)), key, limit);
  return answer;
}

// Of `most` parts, as equal as can be and the longer ones first, the first row of each; the very
// last row instead of the last of them.
std::vector<SeriesPoint> Sampled(const std::vector<SeriesPoint>& points, size_t most) {
  if (points.size() <= most) return points;
  const size_t each = points.size() / most;
  const size_t longer = points.size() % most;
  std::vector<SeriesPoint> kept;
  for (size_t i = 0; i + 1 < most; ++i) kept.push_back(points[i * each + std::min(i, longer)]);
  kept.push_back(points.back());
  return kept;
}

// A sample has up to two points for each pixel.
SampleQuery ChartQuery(std::optional<int64_t> start, std::optional<int64_t> stop, size_t most) {
  return {start, stop, std::max<size_t>(most / 2, 1)};
}

// In order of `key_of`, each once: a point that a client sent again is one.
template <class KeyOf>
void OrderRows(std::vector<SeriesPoint>& points, KeyOf key_of) {
  const auto below = [&](const auto& a, const auto& b) { return key_of(a) < key_of(b); };
  if (!std::is_sorted(points.begin(), points.end(), below)) {
    std::sort(points.begin(), points.end(), below);
  }
  points.erase(std::unique(points.begin(), points.end(),
                           [&](const auto& a, const auto& b) { return key_of(a) == key_of(b); }),
               points.end());
}

// NaN has a place, too: after the numbers.
std::pair<bool, double> PlaceOf(double value) {
  const bool nan = std::isnan(value);
  return {nan, nan ? 0 : value};
}

// The rows between two steps, by step, time and value.
void KeepRows(std::vector<SeriesPoint>& points, std::optional<int64_t> start,
              std::optional<int64_t> stop) {
  if (start) {
    std::erase_if(points, [&](const SeriesPoint& p) {
      return p.step.value_or(0) < *start || p.step.value_or(0) > *stop;
    });
  }
  OrderRows(points, [](const SeriesPoint& p) {
    return std::tuple(p.step.value_or(0), p.wall_ns, PlaceOf(p.value));
  });
}

// At most `most` points of a run for a chart, by step: those that MLflow's own server would choose.
// Of very many points they are others, the lowest and the highest of each part among them.
Result<std::vector<SeriesPoint>> ChartOf(Mlflow& mlflow, JobId run, const std::string& key,
                                         std::optional<int64_t> start, std::optional<int64_t> stop,
                                         size_t most) {
  if (!mlflow.context.runs.Has(run)) return std::vector<SeriesPoint>();
  const auto resumes = mlflow.context.runs.ResumesOf(run);
  ATHANOR_TRY(auto few, mlflow.context.series.ShortHistory(run, key, kFewPoints, resumes));
  if (few) {
    KeepRows(*few, start, stop);
    return Sampled(*few, most);
  }
  // What was logged without a step is at step 0 for MLflow, and nowhere for the store's ranges.
  if (!start || *start > 0 || *stop < 0) {
    ATHANOR_TRY(const auto points,
                mlflow.context.series.Sample(run, key, ChartQuery(start, stop, most), resumes));
    return Sampled(points, most);
  }
  ATHANOR_TRY(auto points, mlflow.context.series.History(run, key, resumes));
  KeepRows(points, start, stop);
  return Sampled(points, most);
}

struct IntervalQuery {
  std::vector<JobId> runs;
  std::string key;
  std::optional<int64_t> start;
  std::optional<int64_t> stop;
  size_t most = 0;
};

Result<IntervalQuery> ReadInterval(const Fields& fields) {
  IntervalQuery query;
  ATHANOR_TRY(auto texts, fields.Texts("run_ids"));
  if (texts.empty()) return MissingValue("run_ids");
  if (texts.size() > kMostBulkRuns) {
    return InvalidParameter(
        fmt::format("GetMetricHistoryBulkInterval request must specify at most "
                    "{} run_ids. Received {} run_ids.",
                    kMostBulkRuns, texts.size()));
  }
  query.runs = RunsOf(std::move(texts));
  ATHANOR_TRY(query.key, fields.Needed("metric_key"));
  ATHANOR_TRY(const auto most, fields.Int("max_results"));
  if (most && (*most < 1 || *most > kMostSampled)) {
    return InvalidParameter(
        fmt::format("max_results must be between 1 and {}. Got {}.", kMostSampled, *most));
  }
  query.most = static_cast<size_t>(most.value_or(kMostSampled));
  ATHANOR_TRY(query.start, fields.Int("start_step"));
  ATHANOR_TRY(query.stop, fields.Int("end_step"));
  if (query.start.has_value() != query.stop.has_value()) {
    return InvalidParameter(
        "If either start step or end step are specified, both must be specified.");
  }
  if (query.start && *query.start > *query.stop) {
    return InvalidParameter(fmt::format(
        "end_step must be greater than start_step. Found start_step={} and end_step={}.",
        *query.start, *query.stop));
  }
  return query;
}

// The chosen points of one run after the other.
class IntervalBody final : public JsonPieces {
 public:
  using PointsOf = std::function<std::vector<SeriesPoint>(JobId)>;
  IntervalBody(IntervalQuery query, PointsOf points_of)
      : query_(std::move(query)), points_of_(std::move(points_of)) {}

 private:
  Result<bool> WriteSome() override {
    if (!begun_) {
      json().BeginObject();
      json().Key("metrics");
      json().BeginArray();
      begun_ = true;
    }
    if (run_ < query_.runs.size()) {
      const JobId run = query_.runs[run_++];
      const auto points = points_of_(run);
      Reserve(points.size() * (160 + query_.key.size()));
      PointWriter writer(json(), query_.key, run.value.ToHex());
      for (const auto& point : points) writer.Write(point);
      return true;
    }
    json().EndArray();
    json().EndObject();
    return false;
  }

  const IntervalQuery query_;
  const PointsOf points_of_;
  size_t run_ = 0;
  bool begun_ = false;
};

Result<Answer> HistoryInterval(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(auto query, ReadInterval(fields));
  Answer answer;
  answer.source = std::make_shared<IntervalBody>(query, [&mlflow, query](JobId run) {
    return ChartOf(mlflow, run, query.key, query.start, query.stop, query.most)
        .value_or(std::vector<SeriesPoint>());
  });
  return answer;
}

// One run whose series is in memory: waking a thread would take longer than the answer.
std::optional<Result<Answer>> IntervalAtHand(Mlflow& mlflow, const Call& call) {
  const auto fields = Fields::Of(call.request);
  if (!fields) return std::nullopt;
  const auto query = ReadInterval(*fields);
  if (!query || query->runs.size() != 1 || query->start) return std::nullopt;
  const JobId run = query->runs.front();
  if (!mlflow.context.runs.Has(run)) return std::nullopt;
  const auto points = mlflow.context.series.SampleAtHand(
      run, query->key, ChartQuery({}, {}, query->most), mlflow.context.runs.ResumesOf(run));
  if (!points) return std::nullopt;
  IntervalBody body(*query, [&](JobId) { return Sampled(*points, query->most); });
  Answer answer;
  answer.body.clear();
  for (;;) {
    auto piece = body.Next();
    if (!piece) return Result<Answer>(tl::unexpected(piece.error()));
    if (!*piece) return answer;
    answer.body += **piece;
  }
}

constexpr MlflowCall kHistoryCalls[] = {
    {"GET", "/2.0/mlflow/metrics/get-history", "metrics.history", Access::kRead, History, true},
    {"GET", "/2.0/mlflow/metrics/get-history-bulk", "metrics.history_bulk", Access::kRead,
     HistoryBulk, true},
    {"GET", "/2.0/mlflow/metrics/get-history-bulk-interval", "metrics.history_interval",
     Access::kRead, HistoryInterval, true, IntervalAtHand},
};

}  // namespace

std::span<const MlflowCall> HistoryCalls() { return kHistoryCalls; }

}  // namespace athanor
