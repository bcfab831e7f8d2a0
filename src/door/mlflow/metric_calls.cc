// MLflow's metrics, logged one by one and in batches.
#include <nlohmann/json.hpp>
#include <set>

#include "base/text/format.h"
#include "base/text/text.h"
#include "door/mlflow/calls.h"
#include "door/mlflow/job_rights.h"
#include "door/mlflow/model_metrics.h"
#include "door/mlflow/validate.h"
#include "link/kept_call.h"
#include "link/plain_batch.h"

namespace athanor {
namespace {

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
  if (key == nullptr) return MissingValue(called("key"));
  if (!key->is_string()) return tl::unexpected(TextOf(*key, called("key")).error());
  if (value == nullptr) return MissingValue(called("value"));
  if (timestamp == nullptr) return MissingValue(called("timestamp"));
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

// Stored when this returns: it survives the end of the server. A call that an agent kept and
// delivers is recognised by its position, and stored once.
Status Store(Mlflow& mlflow, JobId run, std::vector<Point> points, const Call& call) {
  if (points.empty()) return Ok();
  PointBatch batch;
  batch.channel = kMlflowChannel;
  batch.attempt = AttemptFor(mlflow, run, call);
  for (auto& point : points) batch.items.push_back({0, std::move(point)});
  const auto place =
      call.caller.attempt ? ParsePlace(call.request.headers.Get(kPlaceHeader)) : std::nullopt;
  if (place) {
    batch.channel = place->channel;
    for (size_t i = 0; i < batch.items.size(); ++i) batch.items[i].seq = SeqOfPoint(*place, i);
  }
  auto& points_in = mlflow.context.points;
  auto added = place ? points_in.Take(run, batch) : points_in.Add(run, std::move(batch));
  if (added) return Ok();
  if (added.error().id != kTooManyNames) return tl::unexpected(added.error());
  return InvalidParameter(fmt::format("Run {}: {}: {}. {}", run.value.ToHex(), added.error().what,
                                      added.error().why, added.error().hint));
}

struct ModelNote {
  std::string model;  // its id
  ModelMetric metric;
};

// A metric may also belong to a model, on some data set (MLflow 3).
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
  notes.push_back({id,
                   {point.name, run.value.ToHex(), text("dataset_name"), digest, point.value,
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
      "multiple requests and try again.",
      most, what, count, what, what));
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
    // The book has the params and tags already: they are stored, and reported if sent again.
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

constexpr MlflowCall kMetricCalls[] = {
    {"POST", "/2.0/mlflow/runs/log-metric", "runs.log_metric", Access::kSubmit, LogMetric, false,
     LogPlainMetric},
    {"POST", "/2.0/mlflow/runs/log-batch", "runs.log_batch", Access::kSubmit, LogBatch, false,
     LogPlainBatch},
};

}  // namespace

std::span<const MlflowCall> MetricCalls() { return kMetricCalls; }

}  // namespace athanor
