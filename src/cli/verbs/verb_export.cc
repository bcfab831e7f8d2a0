// ath export tb|csv|jsonl|mlflow JOB: a job's metrics for other programs.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/exported.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"
#include "eventfile/event_writer.h"

namespace athanor {
namespace {

std::string Quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  return "\"" + ReplaceAll(cell, "\"", "\"\"") + "\"";
}

std::string CsvLine(const ExportedPoint& point, const std::string& time) {
  return Quoted(point.name) + "," + (point.step ? std::to_string(*point.step) : "") + "," + time +
         "," + point.value_text + "," + std::to_string(point.attempt) + "," +
         (point.abandoned ? "true" : "false") + "\n";
}

// Event files: the run in the folder itself, abandoned branches below it.
class EventFolder {
 public:
  explicit EventFolder(std::string dir) : dir_(std::move(dir)) {}

  Status Add(const ExportedPoint& point) {
    const auto sub =
        point.abandoned ? "abandoned/attempt-" + std::to_string(point.attempt) : std::string();
    ATHANOR_TRY(auto* const writer, WriterOf(sub, point.time_ms));
    // TensorBoard has no points without a step: they are counted.
    const int64_t step = point.step ? *point.step : counted_[sub + "/" + point.name]++;
    return writer->Scalar(point.name, step, static_cast<double>(point.time_ms) / 1000, point.value);
  }

  Status AddParams(const Json& params) {
    HParamsValue start;
    for (const auto& param : params) {
      const auto kind = Text(param, "kind");
      const auto text = Text(param, "value");
      if (kind == "number") {
        start.params.emplace_back(Text(param, "name"), std::strtod(text.c_str(), nullptr));
      } else if (kind == "bool") {
        start.params.emplace_back(Text(param, "name"), text == "true");
      } else {
        start.params.emplace_back(Text(param, "name"), text);
      }
    }
    if (start.params.empty() || !writers_.contains("")) return Ok();
    auto& writer = writers_.at("");
    auto experiment = start;
    experiment.part = HParamsValue::Part::kExperiment;
    for (const auto& name : names_) experiment.metrics.push_back(name);
    ATHANOR_CHECK_OK(writer.HParams(first_, experiment));
    return writer.HParams(first_, start);
  }

  Status Finish() {
    for (auto& [sub, writer] : writers_) ATHANOR_CHECK_OK(writer.Flush());
    return Ok();
  }

  void AddName(const std::string& name) {
    if (names_.empty() || names_.back() != name) names_.push_back(name);
  }

 private:
  Result<EventWriter*> WriterOf(const std::string& sub, int64_t time_ms) {
    auto known = writers_.find(sub);
    if (known == writers_.end()) {
      first_ = static_cast<double>(time_ms) / 1000;
      ATHANOR_TRY(auto made,
                  EventWriter::Create(sub.empty() ? dir_ : JoinPath(dir_, sub), first_, "athanor"));
      known = writers_.emplace(sub, std::move(made)).first;
    }
    return &known->second;
  }

  std::string dir_;
  double first_ = 0;
  std::map<std::string, EventWriter> writers_;
  std::map<std::string, int64_t> counted_;
  std::vector<std::string> names_;
};

Result<uint64_t> ExportEvents(Client& client, const ExportOptions& options,
                              const std::string& dir) {
  ATHANOR_TRY(const auto job, client.Get("/api/v1/jobs/" + UrlEncode(options.job)));
  EventFolder folder(dir);
  uint64_t points = 0;
  ATHANOR_CHECK_OK(ForEachLine(client, options, [&](const std::string& line) -> Status {
    ATHANOR_TRY(const auto point, ReadPoint(line));
    folder.AddName(point.name);
    ++points;
    return folder.Add(point);
  }));
  if (job["spec"].contains("params")) ATHANOR_CHECK_OK(folder.AddParams(job["spec"]["params"]));
  ATHANOR_CHECK_OK(folder.Finish());
  return points;
}

Result<uint64_t> ExportText(Client& client, const ExportOptions& options, std::FILE* out) {
  uint64_t points = 0;
  const bool csv = options.format == "csv";
  if (csv) std::fputs("metric,step,time,value,attempt,abandoned\n", out);
  ATHANOR_CHECK_OK(ForEachLine(client, options, [&](const std::string& line) -> Status {
    ++points;
    if (!csv) {
      std::fprintf(out, "%s\n", line.c_str());
      return Ok();
    }
    ATHANOR_TRY(const auto json, ParseJson(line));
    ATHANOR_TRY(const auto point, ReadPoint(line));
    std::fputs(CsvLine(point, Text(json, "time")).c_str(), out);
    return Ok();
  }));
  return points;
}

// To the file whole or not at all.
Result<uint64_t> ExportFile(Client& client, const ExportOptions& options, const std::string& path) {
  const auto part = path + ".part";
  std::FILE* out = std::fopen(part.c_str(), "we");
  if (out == nullptr) return FailErrno("write " + path, errno);
  auto points = ExportText(client, options, out);
  const bool written = std::fflush(out) == 0 && std::ferror(out) == 0;
  std::fclose(out);
  if (!written) points = FailErrno("write " + path, errno);
  if (points && std::rename(part.c_str(), path.c_str()) != 0) points = FailErrno(path, errno);
  if (!points) ::unlink(part.c_str());
  return points;
}

}  // namespace

int ExportVerb(const Common& common, const ExportOptions& options) {
  if (common.json && options.format == "csv" && options.to.empty()) {
    return Refuse(Error{ErrorCode::kInvalid, "ath export csv prints CSV and cannot print JSON",
                        "ath export jsonl " + ShellQuote(options.job)}
                      .Id("ATH-C0010"),
                  true);
  }
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto to = options.to;
  Result<uint64_t> points = 0;
  if (options.format == "tb") {
    if (to.empty()) to = "tb-" + options.job;
    const auto names = ListDir(to);
    if (names && !names->empty()) {
      return Refuse(Error{ErrorCode::kConflict, "the folder " + Printable(to) + " is not empty",
                          "ath export tb " + ShellQuote(options.job) + " -o OTHER"}
                        .Why("an event file beside others would be one run with them")
                        .Id("ATH-C0050"),
                    common.json);
    }
    points = ExportEvents(*client, options, to);
  } else if (options.format == "mlflow") {
    if (to.empty()) to = "mlruns";
    points = ExportMlflow(*client, options, to);
  } else if (to.empty()) {
    points = ExportText(*client, options, stdout);
  } else {
    points = ExportFile(*client, options, to);
  }
  if (!points) return Refuse(points.error(), common.json);
  if (to.empty()) return 0;  // the points themselves were the answer
  if (common.json) return PrintJson(Json{{"points", *points}, {"to", to}});
  std::printf("wrote %llu point%s to %s\n", static_cast<unsigned long long>(*points),
              *points == 1 ? "" : "s", Printable(to).c_str());
  if (options.format == "tb") PrintHint("tensorboard --logdir " + ShellQuote(to), common.quiet);
  if (options.format == "mlflow") {
    PrintHint("mlflow ui --backend-store-uri " + ShellQuote(to), common.quiet);
  }
  return 0;
}

}  // namespace athanor
