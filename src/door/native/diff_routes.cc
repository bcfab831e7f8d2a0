// The native door's comparison of runs.
#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "door/doors.h"
#include "door/queries.h"
#include "track/diff.h"

namespace athanor {
namespace {

constexpr size_t kMostRuns = 16;

RunFacts FactsOf(const DoorContext& context, const JobRecord& record) {
  RunFacts facts;
  facts.record = record;
  // What was removed meanwhile is left out of the comparison, not an error.
  auto text = [&](const std::string& sha) -> std::string {
    auto fd = context.blobs.Read(sha);
    return fd ? ReadAll(fd->get(), kManifestTextLimit).value_or("") : "";
  };
  if (auto manifest = ReadManifest(text(facts.record.spec.source.bundle))) {
    facts.source = std::move(*manifest);
  }
  if (!facts.record.packages.empty()) facts.packages = text(facts.record.packages);
  auto metrics = context.series.Summaries(facts.record.id, ResumesOf(facts.record));
  if (metrics) facts.metrics = std::move(*metrics);
  return facts;
}

void SendDifferences(const DoorContext& context, const Call& call,
                     const std::vector<JobRecord>& records) {
  std::vector<RunFacts> runs;
  Json jobs = Json::array();
  for (const auto& record : records) {
    jobs.push_back({{"id", record.id.ToString()}, {"name", record.spec.name}});
    runs.push_back(FactsOf(context, record));
  }
  Json rows = Json::array();
  for (const auto& row : Differences(runs)) {
    rows.push_back({{"section", row.section}, {"key", row.key}, {"values", row.values}});
  }
  Json out = Json::object();
  out["jobs"] = std::move(jobs);
  out["differences"] = std::move(rows);
  call.Json(200, DumpJson(out));
}

void Diff(DoorContext& context, const Call& call) {
  // Once for each job: a name may hold any separator.
  std::vector<std::string> names;
  for (const auto& [key, value] : call.request.query) {
    if (key == "jobs") names.push_back(value);
  }
  if (names.size() < 2 || names.size() > kMostRuns) {
    return call.Refuse(
        Error{ErrorCode::kInvalid, "two to sixteen jobs can be compared", "ath diff A B"}.Id(
            "ATH-R0012"));
  }
  std::vector<JobRecord> records;
  for (const auto& name : names) {
    auto record = FindJob(context, name);
    if (!record) return call.Refuse(record.error());
    records.push_back(std::move(*record));
  }
  OnReader(context, call, [&context, call, records = std::move(records)] {
    SendDifferences(context, call, records);
  });
}

}  // namespace

std::vector<DoorRoute> DiffRoutes(DoorContext& context) {
  return {
      {"GET", "/api/v1/diff", "jobs.diff", [&context](const Call& call) { Diff(context, call); }}};
}

}  // namespace athanor
