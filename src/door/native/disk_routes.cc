#include "door/native/disk_routes.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "door/native/disk_use.h"
#include "door/queries.h"
#include "steer/removal.h"

namespace athanor {
namespace {

constexpr size_t kMostRemoved = 1'000;

Json ViewOf(const JobDisk& disk, const std::string& name) {
  return {{"id", disk.id.ToString()}, {"name", name},
          {"bytes", disk.bytes()},    {"logs", disk.logs},
          {"metrics", disk.metrics},  {"checkpoints", disk.checkpoints},
          {"outputs", disk.outputs},  {"scratch", disk.scratch}};
}

void Disk(DoorContext& context, const Call& call) {
  DiskCount count{StoreLayout{context.info.home}};
  std::map<JobId, std::string> names;
  const auto read = context.jobs.ForEach([&](const JobRecord& record) {
    count.Add(record);
    names.emplace(record.id, record.spec.name);
    return Ok();
  });
  if (!read) return call.Refuse(read.error());
  const auto use = count.Count(call.request.Query("only").value_or("") == "jobs");
  Json jobs = Json::array();
  for (const auto& job : use.jobs) jobs.push_back(ViewOf(job, names[job.id]));
  Json shared = Json::array();
  for (const auto& part : use.shared)
    shared.push_back({{"name", part.name}, {"bytes", part.bytes}});
  Json out = {{"home", context.info.home},
              {"bytes", use.bytes},
              {"jobs", std::move(jobs)},
              {"shared", std::move(shared)}};
  if (const auto free = FreeBytes(context.info.home)) out["free_bytes"] = *free;
  call.Json(200, DumpJson(out));
}

// What became of each; the answer goes out with the last.
struct ManyRemoved {
  const Call call;
  size_t open = 0;
  uint64_t removed = 0;
  Json refused = Json::array();

  void Done(const std::string& job, const Status& status) {
    if (status) {
      ++removed;
    } else {
      refused.push_back({{"job", job}, {"what", status.error().what}});
    }
    if (--open == 0)
      call.Json(200, DumpJson(athanor::Json{{"removed", removed}, {"refused", refused}}));
  }
};

void RemoveMany(DoorContext& context, const Call& call) {
  auto body = ParseJson(call.request.body);
  if (!body) return call.Refuse(body.error());
  const bool fits =
      body->is_object() && body->size() == 1 && body->contains("jobs") &&
      (*body)["jobs"].is_array() && !(*body)["jobs"].empty() &&
      (*body)["jobs"].size() <= kMostRemoved &&
      std::ranges::all_of((*body)["jobs"], [](const Json& job) { return job.is_string(); });
  if (!fits) {
    return call.Refuse(Error{ErrorCode::kInvalid, "the request must name 1 to 1,000 jobs",
                             "{\"jobs\": [\"ID\", ...]}"}
                           .Id("ATH-R0014"));
  }
  std::vector<std::pair<std::string, JobId>> jobs;
  for (const auto& job : (*body)["jobs"]) {
    const auto record = FindJob(context, job.get<std::string>());
    if (!record) return call.Refuse(record.error());
    jobs.emplace_back(job.get<std::string>(), record->id);
  }
  auto many = std::make_shared<ManyRemoved>(ManyRemoved{call, jobs.size()});
  for (const auto& [name, id] : jobs) {
    context.removal.RemoveJob(id, [&context, many, job = std::string(name)](const Status& status) {
      context.loop.Post([many, job, status] { many->Done(job, status); });
    });
  }
}

}  // namespace

std::vector<DoorRoute> DiskRoutes(DoorContext& context) {
  return {Native("server.disk", [&context](const Call& call) { Disk(context, call); }),
          Native("jobs.remove_many", [&context](const Call& call) { RemoveMany(context, call); })};
}

}  // namespace athanor
