// How runs and points look on MLflow's wire. What is empty is left out.
#include "door/mlflow/calls.h"
#include "record/runs/run_store.h"

namespace athanor {
namespace {

void WriteDataset(JsonWriter& json, const DatasetRow& dataset) {
  json.BeginObject();
  json.Text("name", dataset.name);
  json.Text("digest", dataset.digest);
  json.Text("source_type", dataset.source_type);
  json.Text("source", dataset.source);
  if (!dataset.schema.empty()) json.Text("schema", dataset.schema);
  if (!dataset.profile.empty()) json.Text("profile", dataset.profile);
  json.EndObject();
}

void WriteInputs(JsonWriter& json, const DoorContext& context, const RunEntry& run) {
  json.Key("inputs");
  json.BeginObject();
  if (!run.more().inputs.empty()) {
    json.Key("dataset_inputs");
    json.BeginArray();
    for (const auto& input : run.more().inputs) {
      const auto known = context.run_store.Dataset(run.experiment, input.name, input.digest);
      json.BeginObject();
      if (input.tags != "[]") {
        json.Key("tags");
        json.Raw(input.tags);
      }
      json.Key("dataset");
      DatasetRow bare;
      bare.name = input.name;
      bare.digest = input.digest;
      WriteDataset(json, known ? *known : bare);
      json.EndObject();
    }
    json.EndArray();
  }
  bool open = false;
  for (const auto& link : run.more().links) {
    if (link.output) continue;
    if (!open) {
      json.Key("model_inputs");
      json.BeginArray();
      open = true;
    }
    json.BeginObject();
    json.Text("model_id", link.model);
    json.EndObject();
  }
  if (open) json.EndArray();
  json.EndObject();
}

void WriteOutputs(JsonWriter& json, const RunEntry& run) {
  json.Key("outputs");
  json.BeginObject();
  bool open = false;
  for (const auto& link : run.more().links) {
    if (!link.output) continue;
    if (!open) {
      json.Key("model_outputs");
      json.BeginArray();
      open = true;
    }
    json.BeginObject();
    json.Text("model_id", link.model);
    json.Int("step", link.step);
    json.EndObject();
  }
  if (open) json.EndArray();
  json.EndObject();
}

}  // namespace

void WritePairs(JsonWriter& json, std::string_view name,
                const std::map<std::string, std::string>& pairs) {
  if (pairs.empty()) return;
  json.Key(name);
  json.BeginArray();
  for (const auto& [key, value] : pairs) {
    json.BeginObject();
    json.Text("key", key);
    json.Text("value", value);
    json.EndObject();
  }
  json.EndArray();
}

void WriteRunInfo(JsonWriter& json, const RunRow& run) {
  const std::string id = run.id.value.ToHex();
  json.BeginObject();
  json.Text("run_id", id);
  json.Text("run_uuid", id);
  json.Text("run_name", run.name);
  json.Text("experiment_id", std::to_string(run.experiment));
  json.Text("user_id", run.user);
  json.Text("status", NameOf(run.status));
  json.Int("start_time", run.started_ms);
  if (run.ended_ms != 0) json.Int("end_time", run.ended_ms);
  json.Text("artifact_uri", run.artifacts);
  json.Text("lifecycle_stage", run.deleted ? "deleted" : "active");
  json.EndObject();
}

void RunJson::Write(const RunEntry& run) {
  json_.BeginObject();
  json_.Key("info");
  WriteRunInfo(json_, context_.runs.RowOf(run));
  json_.Key("data");
  json_.BeginObject();
  WriteMetrics(run);
  WriteLabels("params", run.params);
  WriteLabels("tags", run.tags);
  json_.EndObject();
  WriteInputs(json_, context_, run);
  WriteOutputs(json_, run);
  json_.EndObject();
}

const std::string& RunJson::HeadOf(uint32_t key) {
  std::string& head = heads_[key];
  if (head.empty()) {
    head = "{\"key\":";
    AppendJsonText(head, context_.runs.KeyName(key));
    head += ",\"value\":";
  }
  return head;
}

void RunJson::WriteLabels(std::string_view name, const RunLabels& labels) {
  if (labels.empty()) return;
  json_.Key(name);
  json_.BeginArray();
  for (const auto label : labels) {
    text_ = HeadOf(label.key);
    AppendJsonText(text_, label.value);
    text_ += '}';
    json_.Raw(text_);
  }
  json_.EndArray();
}

void RunJson::WriteMetrics(const RunEntry& run) {
  if (run.metrics.empty()) return;
  json_.Key("metrics");
  json_.BeginArray();
  for (const auto& metric : run.metrics) {
    text_ = HeadOf(metric.key);
    JsonWriter(text_).Double(metric.last);
    text_ += ",\"timestamp\":";
    JsonWriter(text_).Int(metric.wall_ms);
    text_ += ",\"step\":";
    JsonWriter(text_).Int(metric.step);
    text_ += '}';
    json_.Raw(text_);
  }
  json_.EndArray();
}

PointWriter::PointWriter(JsonWriter& json, std::string_view key, std::string_view run_id)
    : json_(json) {
  text_ = "{\"key\":";
  AppendJsonText(text_, key);
  text_ += ",\"value\":";
  begin_ = text_.size();
  if (!run_id.empty()) {
    ending_ = ",\"run_id\":";
    AppendJsonText(ending_, run_id);
  }
  ending_ += '}';
}

void PointWriter::Write(const SeriesPoint& point) {
  text_.resize(begin_);
  JsonWriter(text_).Double(point.value);
  text_ += ",\"timestamp\":";
  JsonWriter(text_).Int(point.wall_ns / 1'000'000);
  text_ += ",\"step\":";
  JsonWriter(text_).Int(point.step.value_or(0));
  text_ += ending_;
  json_.Raw(text_);
}

}  // namespace athanor
