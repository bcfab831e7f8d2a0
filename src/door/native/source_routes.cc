// The native door's sources: what a job was made of, file by file, and what it ran in.
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "door/page/page_doors.h"
#include "door/queries.h"
#include "job/codec.h"
#include "job/manifest.h"

namespace athanor {
namespace {

constexpr size_t kMostDiff = 8 << 20;

// kNotFound when it has none, or it was removed with `ath gc`.
Result<BundleManifest> ManifestOf(const DoorContext& context, const JobRecord& record) {
  const auto& bundle = record.spec.source.bundle;
  auto fd = bundle.empty() ? Result<UniqueFd>(Fail(ErrorCode::kNotFound, ""))
                           : context.blobs.Read(bundle);
  if (!fd) {
    return Fail(Error{ErrorCode::kNotFound, record.spec.name + " has no source here",
                      "ath show " + ShellQuote(record.spec.name)}
                    .Why(bundle.empty() ? "it was submitted without one" : "it was removed")
                    .Id("ATH-R0040"));
  }
  ATHANOR_TRY(const auto text, ReadAll(fd->get(), kManifestTextLimit));
  return ReadManifest(text);
}

Json GitView(const DoorContext& context, const SourceSpec& source) {
  if (source.git_commit.empty()) return nullptr;
  Json git = {{"commit", source.git_commit},
              {"branch", source.git_branch},
              {"dirty", !source.git_diff.empty()},
              {"diff", nullptr}};
  if (source.git_diff.empty()) return git;
  if (auto fd = context.blobs.Read(source.git_diff)) {
    git["diff"] = ReadAll(fd->get(), kMostDiff).value_or("");
  }
  return git;
}

void ListSource(DoorContext& context, const Call& call) {
  const auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  OnReader(context, call, [&context, call, record = *record] {
    Json files = Json::array();
    if (const auto manifest = ManifestOf(context, record)) {
      for (const auto& entry : manifest->entries) {
        if (entry.kind == BundleEntry::Kind::kFolder) continue;
        Json row = {{"path", entry.path}, {"size", entry.size}, {"sha256", entry.sha256}};
        if (entry.kind == BundleEntry::Kind::kLink) row["link"] = entry.target;
        files.push_back(std::move(row));
      }
    } else if (!record.spec.source.bundle.empty()) {
      return call.Refuse(manifest.error());
    }
    call.Json(200, DumpJson(Json{{"files", std::move(files)},
                                 {"git", GitView(context, record.spec.source)}}));
  });
}

void File(DoorContext& context, const Call& call) {
  const auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  OnReader(context, call, [&context, call, record = *record] {
    const auto manifest = ManifestOf(context, record);
    if (!manifest) return call.Refuse(manifest.error());
    const auto& path = call.captures["path"];
    const auto* entry = manifest->Find(path);
    if (!entry || entry->kind != BundleEntry::Kind::kFile) {
      return call.Refuse(Error{ErrorCode::kNotFound,
                               "the source of " + record.spec.name + " has no file \"" +
                                   Printable(path.substr(0, 200)) + "\"",
                               "ath show " + ShellQuote(record.spec.name)}
                             .Id("ATH-R0040"));
    }
    SendUserBytes(call, "text/plain; charset=utf-8", true, context.blobs.Read(entry->sha256));
  });
}

void SendEnvironment(const DoorContext& context, const Call& call, const JobRecord& record) {
  Json packages = Json::array();
  if (auto fd = record.packages.empty() ? Result<UniqueFd>(Fail(ErrorCode::kNotFound, ""))
                                        : context.blobs.Read(record.packages)) {
    for (const auto& line : Split(ReadAll(fd->get(), kMostDiff).value_or(""), '\n')) {
      if (!line.empty()) packages.push_back(line);
    }
  }
  const Json spec = ToJson(record.spec);
  Json out = {{"packages", std::move(packages)},
              {"environment", spec.value("environment", Json::object())},
              {"python", record.spec.environment.python},
              {"image", record.spec.environment.image},
              {"variables", spec.value("env", Json::object())},
              {"resources", spec.value("resources", Json::object())},
              {"host", context.inventory.host}};
  call.Json(200, DumpJson(out));
}

void Environment(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  OnReader(context, call, [&context, call, record = std::move(*record)] {
    SendEnvironment(context, call, record);
  });
}

}  // namespace

std::vector<DoorRoute> SourceRoutes(DoorContext& context) {
  const auto bind = [&context](void (*handler)(DoorContext&, const Call&)) {
    return [&context, handler](const Call& call) { handler(context, call); };
  };
  return {
      {"GET", "/api/v1/jobs/{job}/source", "jobs.source", bind(ListSource)},
      {"GET", "/api/v1/jobs/{job}/source/{path...}", "jobs.sourcefile", bind(File)},
      {"GET", "/api/v1/jobs/{job}/environment", "jobs.environment", bind(Environment)},
  };
}

}  // namespace athanor
