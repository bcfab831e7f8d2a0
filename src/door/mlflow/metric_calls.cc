// MLflow's metrics: logged one by one and in batches, read whole and sampled.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/format.h"
#include "base/text.h"
#include "door/hub.h"
#include "door/mlflow/calls.h"
#include "door/mlflow/job_rights.h"
#include "door/mlflow/model_metrics.h"
#include "door/mlflow/plain_batch.h"
#include "door/mlflow/validate.h"
#include "link/kept_call.h"

namespace athanor {
namespace {

// Points that came through this door; the ones of agents have the channels of their spools.
constexpr uint32_t kMlflowChannel = 0x6D6C666C;
constexpr size_t kMostHistory = 25'000;
constexpr int64_t kMostSampled = 2'500;
constexpr size_t kMostBulkRuns = 100;

tl::unexpected<Error> Missing(const std::string& parameter) {
  return InvalidParameter("Missing value for required parameter '" + parameter +
                          "'. See the API docs for more information about request parameters.");
}

// `at` is its place in a batch; none: the request itself is the metric. What a member is
// called is worked out only for an error: there may be a thousand metrics.
Result<Point> PointOf(const Json& metric, std::optional<size_t> at) {
  const auto called = [at](const char* name) {
    return at ? fmt::format("metrics[{}].{}", *at, name) : std::string(name);
  };
  if (!metric.is_object()) return InvalidValue(called(""), metric, "It is not an object.");
  const auto member = [&metric](const char* name) -> const Json* {
    const auto found = metric.find(name);
    return found == metric.end() || found->is_null() ? nullptr : &*found;
  };
  const Json* key = member("key");
  const Json* value = member("value");
  const Json* timestamp = member("timestamp");
  if (key == nullptr) return Missing(called("key"));
  if (!key->is_string()) return tl::unexpected(TextOf(*key, called("key")).error());
  if (value == nullptr) return Missing(called("value"));
  if (timestamp == nullptr) return Missing(called("timestamp"));
  Point point;
  point.name = key->get_ref<const std::string&>();
  if (auto checked = CheckMlflowKey(point.name, "key"); !checked) {
    return tl::unexpected(CheckMlflowKey(point.name, called("key")).error());
  }
  auto number = DoubleOf(*value, "value");
  if (!number) return tl::unexpected(DoubleOf(*value, called("value")).error());
  point.value = *number;
  const auto millis = IntOf(*timestamp, "timestamp");
  if (!millis) return tl::unexpected(IntOf(*timestamp, called("timestamp")).error());
  if (*millis < 0 || *millis > kMostMillis) {
    return InvalidValue(called("timestamp"), *timestamp, "It must be milliseconds since 1970.");
  }
  point.wall_ns = *millis * 1'000'000;
  if (const Json* step = member("step")) {
    const auto counted = IntOf(*step, "step");
    if (!counted) return tl::unexpected(IntOf(*step, called("step")).error());
    point.step = *counted;
  }
  return point;
}

// The attempt that logs: the caller's own, also when it is late, else the current one.
uint32_t AttemptFor(const Mlflow& mlflow, JobId run, const Call& call) {
  const auto* live = mlflow.context.engine.Live(run);
  if (live == nullptr || live->current() == nullptr) return 1;
  for (const auto& attempt : live->attempts) {
    if (call.caller.attempt == attempt.id) return attempt.number;
  }
  return live->current()->number;
}

// Stored when this returns: it survives the end of the server. What an agent kept and delivers is
// known by its place, and stored once.
Status Store(Mlflow& mlflow, JobId run, std::vector<Point> points, const Call& call) {
  if (points.empty()) return Ok();
  PointBatch batch;
  batch.channel = kMlflowChannel;
  batch.attempt = AttemptFor(mlflow, run, call);
  for (auto& point : points) batch.items.push_back({0, std::move(point)});
  const auto place = call.caller.attempt ? ParsePlace(call.request.headers.Get(kPlaceHeader))
                                         : std::nullopt;
  if (place) {
    batch.channel = place->channel;
    for (size_t i = 0; i < batch.items.size(); ++i) batch.items[i].seq = SeqOfPoint(*place, i);
  }
  const RunBook::Storing storing(mlflow.context.runs, run);
  auto added = place ? mlflow.context.series.Append(run, batch)
                     : mlflow.context.series.Add(run, std::move(batch));
  if (!added) return tl::unexpected(added.error());
  mlflow.context.hub.Tell(run, News::kPoints);
  return Ok();
}

struct ModelNote {
  std::string model;  // its id
  ModelMetric metric;
};

// A metric may be said to be of a model, too, on some data set (MLflow 3).
Status AddNote(const Mlflow& mlflow, const Json& metric, const Point& point, JobId run,
               std::vector<ModelNote>& notes) {
  const auto text = [&metric](const char* name) {
    const auto at = metric.find(name);
    return at != metric.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  const std::string id = text("model_id");
  if (id.empty()) return Ok();
  const auto model = mlflow.context.models.FindLogged(id);
  if (!model) return tl::unexpected(model.error());
  const std::string digest = text("dataset_digest");
  if (digest.find('\n') != std::string::npos) {
    return InvalidValue("dataset_digest", digest, "It has a line break.");
  }
  notes.push_back({id, {point.name, run.value.ToHex(), text("dataset_name"), digest, point.value,
                        point.wall_ns / 1'000'000, point.step.value_or(0)}});
  return Ok();
}

// One that is older than what is known changes nothing.
Status KeepNotes(Mlflow& mlflow, const std::vector<ModelNote>& notes, RunBatch& batch) {
  for (const auto& [id, metric] : notes) {
    ATHANOR_TRY(const auto* model, mlflow.context.models.FindLogged(id));
    const auto tag = TagOf(metric);
    if (const auto at = model->tags.find(tag.first); at != model->tags.end()) {
      const auto known = MetricOf(at->first, at->second);
      if (known && std::pair(known->step, known->timestamp_ms) >
                       std::pair(metric.step, metric.timestamp_ms)) {
        continue;
      }
    }
    ATHANOR_TRY(auto noted, mlflow.context.models.TagLogged(id, {tag}, mlflow.Now()));
    for (auto& label : noted.labels) batch.labels.push_back(std::move(label));
    for (auto& row : noted.logged) batch.logged.push_back(std::move(row));
  }
  return Ok();
}

Result<Answer> LogMetric(Mlflow& mlflow, const Fields& fields, const Call& call) {
  ATHANOR_TRY(const JobId id, fields.Run());
  ATHANOR_TRY(auto point, PointOf(fields.json(), std::nullopt));
  ATHANOR_CHECK_OK(mlflow.context.runs.CheckActive(id));
  std::vector<ModelNote> notes;
  ATHANOR_CHECK_OK(AddNote(mlflow, fields.json(), point, id, notes));
  std::vector<Point> points;
  points.push_back(std::move(point));
  ATHANOR_CHECK_OK(Store(mlflow, id, std::move(points), call));
  Answer answer;
  ATHANOR_CHECK_OK(KeepNotes(mlflow, notes, answer.batch));
  return answer;
}

std::optional<Result<Answer>> LogPlainMetric(Mlflow& mlflow, const Call& call) {
  auto plain = ReadPlainMetric(call.request.body);
  const auto id = plain ? JobId::Parse(plain->run) : std::nullopt;
  if (!id || !CheckMlflowKey(plain->point.name, "key").ok()) return std::nullopt;
  if (!mlflow.context.runs.CheckActive(*id).ok()) return std::nullopt;
  if (!CheckMayChange(mlflow, call, *id).ok()) return std::nullopt;
  std::vector<Point> points;
  points.push_back(std::move(plain->point));
  if (auto kept = Store(mlflow, *id, std::move(points), call); !kept) {
    return Result<Answer>(tl::unexpected(kept.error()));
  }
  return Answer();
}

Status CheckCount(std::string_view what, size_t count, size_t most) {
  if (count <= most) return Ok();
  return InvalidParameter(fmt::format(
      "A batch logging request can contain at most {} {}. Got {} {}. Please split up {} across "
      "multiple requests and try again.", most, what, count, what, what));
}

// Of a batch, what was read already.
struct ReadBatch {
  std::vector<Point> points;
  std::vector<ModelNote> notes;
};

Result<Answer> KeepBatch(Mlflow& mlflow, JobId id, const Fields& fields, ReadBatch read,
                         const Call& call) {
  const size_t count = read.points.size();
  ATHANOR_TRY(auto params, fields.Pairs("params"));
  ATHANOR_CHECK_OK(CheckCount("params", params.size(), kMostBatchParams));
  ATHANOR_TRY(auto tags, fields.Pairs("tags"));
  ATHANOR_CHECK_OK(CheckCount("tags", tags.size(), kMostBatchTags));
  ATHANOR_CHECK_OK(CheckCount("metrics, params, and tags", count + params.size() + tags.size(),
                              kMostBatchItems));
  std::set<std::string_view> keys;
  for (size_t i = 0; i < params.size(); ++i) {
    ATHANOR_CHECK_OK(CheckMlflowKey(params[i].first, fmt::format("params[{}].key", i)));
    if (!keys.insert(params[i].first).second) {
      return InvalidParameter(fmt::format("Duplicate parameter keys have been submitted: {}",
                                          Printable(params[i].first)));
    }
    params[i].second = CutTo(params[i].second, kMostParamChars);
  }
  for (size_t i = 0; i < tags.size(); ++i) {
    ATHANOR_CHECK_OK(CheckMlflowKey(tags[i].first, fmt::format("tags[{}].key", i)));
    tags[i].second = CutTo(tags[i].second, kMostTagChars);
  }
  ATHANOR_CHECK_OK(mlflow.context.runs.CheckActive(id));
  ATHANOR_TRY(auto batch, mlflow.context.runs.LogParams(id, params));
  ATHANOR_TRY(auto tagged, mlflow.context.runs.SetTags(id, tags));
  for (auto& run : tagged.runs) batch.runs.push_back(std::move(run));
  for (auto& label : tagged.labels) batch.labels.push_back(std::move(label));
  ATHANOR_CHECK_OK(KeepNotes(mlflow, read.notes, batch));
  if (auto stored = Store(mlflow, id, std::move(read.points), call); !stored) {
    // The book has the params and tags already: they are kept, and told of when sent again.
    mlflow.context.run_writer.Write(std::move(batch), {});
    return tl::unexpected(stored.error());
  }
  return Answer{"{}", std::move(batch)};
}

Result<Answer> LogBatch(Mlflow& mlflow, const Fields& fields, const Call& call) {
  ATHANOR_TRY(const JobId id, fields.Run());
  const Json* metrics = fields.Find("metrics");
  if (metrics != nullptr && !metrics->is_array()) {
    return InvalidValue("metrics", *metrics, "It is not a list.");
  }
  const size_t count = metrics == nullptr ? 0 : metrics->size();
  ATHANOR_CHECK_OK(CheckCount("metrics", count, kMostBatchMetrics));
  ReadBatch read;
  read.points.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    ATHANOR_TRY(auto point, PointOf((*metrics)[i], i));
    ATHANOR_CHECK_OK(AddNote(mlflow, (*metrics)[i], point, id, read.notes));
    read.points.push_back(std::move(point));
  }
  return KeepBatch(mlflow, id, fields, std::move(read), call);
}

std::optional<Result<Answer>> LogPlainBatch(Mlflow& mlflow, const Call& call) {
  auto plain = ReadPlainBatch(call.request.body);
  if (!plain || plain->metrics.size() > kMostBatchMetrics) return std::nullopt;
  for (const auto& point : plain->metrics) {
    if (!CheckMlflowKey(point.name, "key").ok()) return std::nullopt;
  }
  const auto fields = Fields::Of(call.request, plain->rest);
  const auto id = fields ? fields->Run() : Result<JobId>(tl::unexpected(fields.error()));
  if (!id || !CheckMayChange(mlflow, call, *id).ok()) return std::nullopt;
  return KeepBatch(mlflow, *id, *fields, {std::move(plain->metrics), {}}, call);
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

// By time, step and value.
Result<std::vector<SeriesPoint>> HistoryOf(Mlflow& mlflow, JobId run, const std::string& key) {
  if (!mlflow.context.runs.Has(run)) {
    return MlflowFail("RESOURCE_DOES_NOT_EXIST",
                      fmt::format("Run with id={} not found", run.value.ToHex()));
  }
  auto points = mlflow.context.series.History(run, key, mlflow.context.runs.ResumesOf(run));
  if (!points) {
    if (points.error().code == ErrorCode::kNotFound) return std::vector<SeriesPoint>();
    return points;
  }
  OrderRows(*points, [](const SeriesPoint& p) {
    return std::tuple(p.wall_ns, p.step.value_or(0), PlaceOf(p.value));
  });
  return points;
}

Result<Answer> History(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const JobId id, fields.Run());
  ATHANOR_TRY(const std::string key, fields.Needed("metric_key"));
  ATHANOR_TRY(const auto page, ReadPage(fields, SIZE_MAX, INT32_MAX));
  auto open = mlflow.history->Take(id, key, page.offset);
  if (!open) {
    ATHANOR_TRY(auto read, HistoryOf(mlflow, id, key));
    open = std::make_shared<std::vector<SeriesPoint>>(std::move(read));
  }
  const auto& points = *open;
  const size_t begin = std::min(page.offset, points.size());
  const size_t end = begin + std::min(page.limit, points.size() - begin);
  Answer answer;
  answer.body.clear();
  answer.body.reserve(64 + (end - begin) * (64 + key.size()));
  JsonWriter json(answer.body);
  json.BeginObject();
  if (begin < end) {
    json.Key("metrics");
    json.BeginArray();
    PointWriter writer(json, key);
    for (size_t i = begin; i < end; ++i) writer.Write(points[i]);
    json.EndArray();
  }
  if (end < points.size()) {
    json.Text("next_page_token", PageToken(end));
    mlflow.history->Keep(id, key, end, open);
  }
  json.EndObject();
  return answer;
}

// In the order in which MLflow answers; what is no id names no run.
std::vector<JobId> RunsOf(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  std::vector<JobId> runs;
  for (const auto& text : texts) {
    if (const auto id = JobId::Parse(text)) runs.push_back(*id);
  }
  return runs;
}

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
  const auto runs = RunsOf(std::move(texts));
  ATHANOR_TRY(const auto page, ReadPage(fields, kMostHistory, kMostHistory));
  Answer answer;
  answer.body.clear();
  JsonWriter json(answer.body);
  json.BeginObject();
  json.Key("metrics");
  json.BeginArray();
  size_t left = page.limit;
  for (const JobId run : runs) {
    const auto points = HistoryOf(mlflow, run, key);
    if (!points) continue;
    PointWriter writer(json, key, run.value.ToHex());
    for (const auto& point : *points) {
      if (left == 0) break;
      --left;
      writer.Write(point);
    }
  }
  json.EndArray();
  json.EndObject();
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
  ATHANOR_TRY(auto points, HistoryOf(mlflow, run, key));
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
  if (texts.empty()) return Missing("run_ids");
  if (texts.size() > kMostBulkRuns) {
    return InvalidParameter(fmt::format("GetMetricHistoryBulkInterval request must specify at most "
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
    return InvalidParameter(
        fmt::format("end_step must be greater than start_step. Found start_step={} and end_step={}.",
                    *query.start, *query.stop));
  }
  return query;
}

template <class PointsOf>  // std::vector<SeriesPoint>(JobId)
Answer WriteInterval(const IntervalQuery& query, PointsOf points_of) {
  Answer answer;
  answer.body.clear();
  JsonWriter json(answer.body);
  json.BeginObject();
  json.Key("metrics");
  json.BeginArray();
  for (const JobId run : query.runs) {
    PointWriter writer(json, query.key, run.value.ToHex());
    const auto points = points_of(run);
    answer.body.reserve(answer.body.size() + points.size() * (160 + query.key.size()));
    for (const auto& point : points) writer.Write(point);
  }
  json.EndArray();
  json.EndObject();
  return answer;
}

Result<Answer> HistoryInterval(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const auto query, ReadInterval(fields));
  return WriteInterval(query, [&](JobId run) {
    return ChartOf(mlflow, run, query.key, query.start, query.stop, query.most)
        .value_or(std::vector<SeriesPoint>());
  });
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
  return WriteInterval(*query, [&](JobId) { return Sampled(*points, query->most); });
}

constexpr MlflowCall kCalls[] = {
    {"POST", "/2.0/mlflow/runs/log-metric", "runs.log_metric", Access::kSubmit, LogMetric, false,
     LogPlainMetric},
    {"POST", "/2.0/mlflow/runs/log-batch", "runs.log_batch", Access::kSubmit, LogBatch, false,
     LogPlainBatch},
    {"GET", "/2.0/mlflow/metrics/get-history", "metrics.history", Access::kRead, History, true},
    {"GET", "/2.0/mlflow/metrics/get-history-bulk", "metrics.history_bulk", Access::kRead,
     HistoryBulk, true},
    {"GET", "/2.0/mlflow/metrics/get-history-bulk-interval", "metrics.history_interval",
     Access::kRead, HistoryInterval, true, IntervalAtHand},
};

}  // namespace

std::span<const MlflowCall> MetricCalls() {
  return kCalls;
}

}  // namespace athanor
