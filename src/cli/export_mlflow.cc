// MLflow's file store, as its documentation and its own reader have it: a folder for an experiment,
// one below it for a run, a file for each parameter, tag and metric.
#include <fcntl.h>

#include <cstdio>
#include <map>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "cli/exported.h"
#include "cli/screen/reading.h"

namespace athanor {
namespace {

// Double quotes, and JSON's escapes, are YAML's too.
std::string Yaml(const std::string& text) { return DumpJson(Json(text)); }

int StatusNumber(const std::string& status) {
  static const std::map<std::string, int> kNumbers = {
      {"RUNNING", 1}, {"SCHEDULED", 2}, {"FINISHED", 3}, {"FAILED", 4}, {"KILLED", 5}};
  const auto at = kNumbers.find(status);
  return at == kNumbers.end() ? 1 : at->second;
}

std::string NumberOf(const std::string& experiment) {
  uint64_t hash = 1469598103934665603ull;
  for (const unsigned char c : experiment) hash = (hash ^ c) * 1099511628211ull;
  return std::to_string(hash % 900'000'000'000'000'000ull + 100'000'000'000'000'000ull);
}

Status Write(int root, const std::string& name, const std::string& text) {
  ATHANOR_CHECK_OK(MakeParentsBeneath(root, name, 0755));
  ATHANOR_TRY(const auto fd, OpenBeneath(root, name, O_WRONLY | O_CREAT | O_TRUNC, 0644));
  return WriteAll(fd.get(), text);
}

// Names of metrics and so on become paths; names that cannot be a path are reported, not changed.
Status WriteNamed(int root, const std::string& kind, const std::string& name,
                  const std::string& text) {
  if (CheckRelativeName(name).ok()) return Write(root, kind + "/" + name, text);
  std::fprintf(stderr, "left out, as MLflow has no file for such a name: %s\n",
               Printable(name.substr(0, 100)).c_str());
  return Ok();
}

// The folder of the experiment called `name`, made if there is none.
Result<std::string> ExperimentFolder(int root, const std::string& name, int64_t now_ms) {
  const std::string id = name == "Default" ? "0" : NumberOf(name);
  if (OpenBeneath(root, id + "/meta.yaml", O_RDONLY)) return id;
  ATHANOR_CHECK_OK(
      Write(root, id + "/meta.yaml",
            fmt::format("artifact_location: {}\ncreation_time: {}\nexperiment_id: '{}'\n"
                        "last_update_time: {}\nlifecycle_stage: active\nname: {}\n",
                        Yaml("mlflow-artifacts:/" + id), now_ms, id, now_ms, Yaml(name))));
  return id;
}

Status WriteRun(int root, const std::string& folder, const std::string& experiment,
                const Json& run) {
  const std::string id = Text(run, "run_id");
  const int64_t ended = TimeOf(run, "ended");
  const int64_t started = TimeOf(run, run.contains("started") ? "started" : "created");
  ATHANOR_CHECK_OK(Write(
      root, folder + "/meta.yaml",
      fmt::format("artifact_uri: {}\nend_time: {}\nentry_point_name: ''\nexperiment_id: '{}'\n"
                  "lifecycle_stage: active\nrun_id: {}\nrun_name: {}\nrun_uuid: {}\n"
                  "source_name: ''\nsource_type: 4\nsource_version: ''\nstart_time: {}\n"
                  "status: {}\ntags: []\nuser_id: {}\n",
                  Yaml("mlflow-artifacts:/" + experiment + "/" + id + "/artifacts"),
                  ended == 0 ? "null" : std::to_string(ended), experiment, Yaml(id),
                  Yaml(Text(run, "name")), Yaml(id), started, StatusNumber(Text(run, "status")),
                  Yaml(Text(run, "user")))));
  for (const char* kind : {"params", "tags"}) {
    if (!run.contains(kind)) continue;
    for (const auto& [name, value] : run[kind].items()) {
      ATHANOR_CHECK_OK(WriteNamed(root, folder + "/" + kind, name,
                                  value.is_string() ? value.get<std::string>() : DumpJson(value)));
    }
  }
  return Ok();
}

}  // namespace

Result<uint64_t> ExportMlflow(Client& client, const ExportOptions& options,
                              const std::string& dir) {
  ATHANOR_TRY(const auto run, client.Get("/api/v1/runs/" + UrlEncode(options.job)));
  ATHANOR_CHECK_OK(MakeDirs(dir, 0755));
  ATHANOR_TRY(const auto root, OpenDir(dir));
  ATHANOR_TRY(const auto experiment,
              ExperimentFolder(root.get(), Text(run, "experiment"), TimeOf(run, "created")));
  const std::string folder = experiment + "/" + Text(run, "run_id");
  if (OpenBeneath(root.get(), folder, O_RDONLY | O_DIRECTORY)) {
    return Fail(Error{ErrorCode::kConflict, "the run is already in " + Printable(dir),
                      "rm -r " + ShellQuote(JoinPath(dir, folder))}
                    .Id("ATH-C0050"));
  }
  std::map<std::string, std::string> metrics;
  uint64_t points = 0;
  ATHANOR_CHECK_OK(ForEachLine(client, options, [&](const std::string& line) -> Status {
    ATHANOR_TRY(const auto point, ReadPoint(line));
    const std::string value = point.value_text == "Infinity"    ? "inf"
                              : point.value_text == "-Infinity" ? "-inf"
                              : point.value_text == "NaN"       ? "nan"
                                                                : point.value_text;
    metrics[point.name] += fmt::format("{} {} {}\n", point.time_ms, value, point.step.value_or(0));
    ++points;
    return Ok();
  }));
  for (const auto& [name, text] : metrics) {
    ATHANOR_CHECK_OK(WriteNamed(root.get(), folder + "/metrics", name, text));
  }
  // Last: without it MLflow does not see the folder as a run, so a broken export is not shown.
  ATHANOR_CHECK_OK(WriteRun(root.get(), folder, experiment, run));
  return points;
}

}  // namespace athanor
