// The native door's media: what a run's event files hold besides scalars, for charts and viewers.
#include <algorithm>
#include <memory>

#include "base/io/files.h"
#include "base/text/json_writer.h"
#include "base/text/text.h"
#include "door/page/page_doors.h"
#include "door/queries.h"
#include "eventfile/media.h"
#include "eventfile/plugins.h"
#include "eventfile/projector.h"
#include "eventfile/tensor.h"
#include "link/job_folder.h"

namespace athanor {
namespace {

constexpr uint64_t kUsualItems = 100;
constexpr uint64_t kMostItems = 1000;
constexpr size_t kMostNumbers = 10'000;   // of a tensor
constexpr size_t kMostEmbeddings = 4;     // of one answer
constexpr size_t kMostVectors = 100'000;  // numbers of one embedding
constexpr size_t kMostNodes = 20'000;     // of a graph
constexpr size_t kMostText = 256 << 10;

std::string FolderOf(const DoorContext& context, JobId run) {
  return JobFolder(context.info.home, run).events();
}

void WriteNumbers(JsonWriter& json, std::string_view name, const std::vector<double>& numbers,
                  size_t most = kMostNumbers) {
  json.Key(name);
  json.BeginArray();
  for (size_t i = 0; i < std::min(numbers.size(), most); ++i) json.Double(numbers[i]);
  json.EndArray();
}

void WriteHistogram(JsonWriter& json, const HistogramValue& value) {
  std::vector<double> edges;
  std::vector<double> counts;
  for (const auto& bucket : value.buckets) {
    if (edges.empty()) edges.push_back(bucket.left);
    edges.push_back(bucket.right);
    counts.push_back(bucket.count);
  }
  WriteNumbers(json, "edges", edges);
  WriteNumbers(json, "counts", counts);
}

void WriteHParams(JsonWriter& json, const HParamsValue& value) {
  json.Key("params");
  json.BeginObject();
  for (const auto& [name, param] : value.params) {
    json.Key(name);
    if (const auto* text = std::get_if<std::string>(&param)) json.Text(*text);
    if (const auto* number = std::get_if<double>(&param)) json.Double(*number);
    if (const auto* flag = std::get_if<bool>(&param)) json.Bool(*flag);
  }
  json.EndObject();
  json.Key("metrics");
  json.BeginArray();
  for (const auto& metric : value.metrics) json.Text(metric);
  json.EndArray();
}

// A GraphDef's nodes: what each is and what it takes in.
void WriteGraph(JsonWriter& json, std::string_view graph) {
  json.Key("nodes");
  json.BeginArray();
  proto::Field field;
  for (size_t nodes = 0; nodes < kMostNodes && proto::TakeField(graph, field);) {
    if (field.number != 1 || field.type != proto::WireType::kBytes) continue;
    ++nodes;
    std::string_view node = field.bytes;
    std::string_view name;
    std::string_view op;
    std::vector<std::string_view> inputs;
    proto::Field part;
    while (proto::TakeField(node, part)) {
      if (part.type != proto::WireType::kBytes) continue;
      if (part.number == 1) name = part.bytes;
      if (part.number == 2) op = part.bytes;
      if (part.number == 3) inputs.push_back(part.bytes);
    }
    json.BeginObject();
    json.Text("name", name);
    json.Text("op", op);
    json.Key("inputs");
    json.BeginArray();
    for (const auto input : inputs) json.Text(input);
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
}

// What `kind` has besides step and time. Nothing where the bytes are not what they claim.
void WriteValue(JsonWriter& json, const std::string& kind, const MediaRecord& record) {
  EventView event;
  SummaryValue value;
  const bool summary = record.Value(event, value);
  if (kind == "graph") return WriteGraph(json, event.body);
  if (!summary) return;
  if (kind == "histogram") {
    if (const auto histogram = ReadHistogram(value)) WriteHistogram(json, *histogram);
  } else if (kind == "text") {
    const auto text = ReadText(value);
    if (text) json.Text("text", Join(text->texts, "\n\n").substr(0, kMostText));
  } else if (kind == "pr_curve") {
    if (const auto curve = ReadPrCurve(value)) {
      WriteNumbers(json, "precision", curve->precision);
      WriteNumbers(json, "recall", curve->recall);
    }
  } else if (kind == "hparams") {
    if (const auto params = ReadHParams(value)) WriteHParams(json, *params);
  } else if (kind == "image") {
    if (const auto image = ReadImage(value)) {
      json.Int("width", image->width);
      json.Int("height", image->height);
      json.Int("images", static_cast<int64_t>(image->encoded.size()));
    }
  } else if (kind == "tensor" && value.form == SummaryValue::Form::kTensor) {
    if (const auto tensor = ReadTensor(value.bytes)) {
      json.Key("shape");
      json.BeginArray();
      for (const int64_t size : tensor->shape) json.Int(size);
      json.EndArray();
      WriteNumbers(json, "values", tensor->numbers);
    }
  }
}

constexpr char kEmbedding[] = "embedding";

void WriteSeries(JsonWriter& json, const MediaSeries& series) {
  json.BeginObject();
  json.Text("kind", series.kind);
  json.Text("name", series.name);
  json.Int("count", static_cast<int64_t>(series.count));
  json.Int("last_step", series.last_step);
  json.EndObject();
}

// Embeddings as series: those of one name are one, by step.
std::vector<MediaSeries> EmbeddingSeries(const std::string& folder) {
  std::vector<MediaSeries> all;
  for (const auto& one : FindEmbeddings(folder)) {
    if (all.empty() || all.back().name != one.name) all.push_back({kEmbedding, one.name, 0, 0});
    ++all.back().count;
    all.back().last_step = one.step;
  }
  return all;
}

// The newest `most` of a name.
void SendEmbeddings(const Call& call, const std::string& folder, size_t most) {
  auto all = FindEmbeddings(folder);
  std::erase_if(all, [&](const auto& one) { return one.name != call.captures["name"]; });
  if (all.size() > most) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(most));
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  json.Key("items");
  json.BeginArray();
  for (const auto& one : all) {
    const auto rows = ReadEmbedding(folder, one, kMostVectors);
    if (!rows) continue;
    json.BeginObject();
    json.Int("step", one.step);
    json.Int("wall_ms", one.wall_ms);
    json.Key("shape");
    json.BeginArray();
    json.Int(
        static_cast<int64_t>(rows->dimensions == 0 ? 0 : rows->values.size() / rows->dimensions));
    json.Int(static_cast<int64_t>(rows->dimensions));
    json.EndArray();
    json.Int("rows", static_cast<int64_t>(rows->rows));
    WriteNumbers(json, "values", rows->values, kMostVectors);
    json.Key("labels");
    json.BeginArray();
    for (const auto& label : rows->labels) json.Text(label);
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  call.Json(200, std::move(body));
}

void ListMedia(DoorContext& context, const std::shared_ptr<MediaBook>& book, const Call& call) {
  const auto run = ResolveRun(context, call.captures["run"]);
  if (!run) return call.Refuse(run.error());
  const auto folder = FolderOf(context, *run);
  const auto all = book->List(folder);
  if (!all) return call.Refuse(all.error());
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  json.Key("media");
  json.BeginArray();
  for (const auto& series : *all) WriteSeries(json, series);
  for (const auto& series : EmbeddingSeries(folder)) WriteSeries(json, series);
  json.EndArray();
  json.EndObject();
  call.Json(200, std::move(body));
}

void Items(DoorContext& context, const std::shared_ptr<MediaBook>& book, const Call& call) {
  const auto asked = WholeNumber(call.request, "max");
  if (!asked) return call.Refuse(asked.error());
  const auto most = std::min(asked->value_or(kUsualItems), kMostItems);
  const auto run = ResolveRun(context, call.captures["run"]);
  if (!run) return call.Refuse(run.error());
  const auto folder = FolderOf(context, *run);
  const auto& kind = call.captures["kind"];
  if (kind == kEmbedding)
    return SendEmbeddings(call, folder, std::min<size_t>(most, kMostEmbeddings));
  const auto items = book->Items(folder, kind, call.captures["name"], most);
  if (!items) return call.Refuse(items.error());
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  json.Key("items");
  json.BeginArray();
  for (const auto& item : *items) {
    json.BeginObject();
    json.Int("step", item.step);
    json.Int("wall_ms", item.wall_ms);
    if (kind == "image" || kind == "audio") {
      json.Text("url", "api/v1/runs/" + run->ToString() + "/mediabytes/" + item.key);
    }
    if (kind != "audio") {
      if (const auto record = book->Read(folder, item.key)) WriteValue(json, kind, *record);
    }
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  call.Json(200, std::move(body));
}

// What the bytes themselves are, whatever the file says: only what cannot carry a script.
const char* TypeOf(std::string_view bytes) {
  if (StartsWith(bytes, "\x89PNG\r\n\x1a\n")) return "image/png";
  if (StartsWith(bytes, "\xff\xd8\xff")) return "image/jpeg";
  if (StartsWith(bytes, "GIF87a") || StartsWith(bytes, "GIF89a")) return "image/gif";
  if (bytes.size() > 12 && StartsWith(bytes, "RIFF")) {
    if (bytes.substr(8, 4) == "WAVE") return "audio/wav";
    if (bytes.substr(8, 4) == "WEBP") return "image/webp";
  }
  return nullptr;
}

void Bytes(DoorContext& context, const std::shared_ptr<MediaBook>& book, const Call& call) {
  const auto asked = WholeNumber(call.request, "image");
  if (!asked) return call.Refuse(asked.error());
  const uint64_t index = asked->value_or(0);
  const auto run = ResolveRun(context, call.captures["run"]);
  if (!run) return call.Refuse(run.error());
  const auto record = book->Read(FolderOf(context, *run), call.captures["key"]);
  if (!record) return call.Refuse(record.error());
  EventView event;
  SummaryValue value;
  std::vector<std::string> encoded;
  if (record->Value(event, value)) {
    if (auto image = ReadImage(value)) {
      encoded = std::move(image->encoded);
    } else if (auto audio = ReadAudio(value)) {
      encoded = std::move(audio->encoded);
    }
  }
  if (index >= encoded.size()) {
    return call.Refuse(
        Error{ErrorCode::kNotFound, "this is no image and no sound", "reload the page"}.Id(
            "ATH-R0042"));
  }
  Response response;
  const char* type = TypeOf(encoded[index]);
  response.headers.Set("Content-Type", type ? type : "application/octet-stream");
  response.headers.Set("Content-Disposition", type ? "inline" : "attachment");
  response.headers.Set("X-Content-Type-Options", "nosniff");
  response.headers.Set("Content-Security-Policy", "sandbox; default-src 'none'");
  response.headers.Set("Cache-Control", "private, max-age=86400");
  response.body = std::move(encoded[index]);
  call.responder.Send(std::move(response));
}

}  // namespace

std::vector<DoorRoute> MediaRoutes(DoorContext& context) {
  auto book = std::make_shared<MediaBook>();  // of the three routes
  const auto bind = [&context, book](void (*handler)(
                        DoorContext&, const std::shared_ptr<MediaBook>&, const Call&)) {
    return [&context, book, handler](const Call& call) { handler(context, book, call); };
  };
  return {
      Native("runs.media", bind(ListMedia)),
      Native("runs.mediaitems", bind(Items)),
      Native("runs.mediabytes", bind(Bytes)),
  };
}

}  // namespace athanor
