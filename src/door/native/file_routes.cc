// The native door's files: blobs of sources in, outputs out.
#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "door/doors.h"
#include "door/native/log_part.h"
#include "door/queries.h"
#include "job/codec.h"
#include "job/host_folder.h"
#include "job/manifest.h"
#include "job/shown.h"
#include "link/job_folder.h"
#include "record/layout.h"
#include "record/objects/member_list.h"
#include "steer/hub.h"

namespace athanor {
namespace {

// On a reader: a source of a hundred thousand files names as many blobs.
void Missing(DoorContext& context, const Call& call) {
  auto body = ParseJson(call.request.body);
  if (!body) return call.Refuse(body.error());
  Json missing = Json::array();
  if (body->is_object() && body->contains("sha256") && (*body)["sha256"].is_array()) {
    for (const auto& name : (*body)["sha256"]) {
      if (name.is_string() && !context.blobs.Use(name.get<std::string>())) missing.push_back(name);
    }
  }
  Json out = Json::object();
  out["missing"] = std::move(missing);
  call.Json(200, DumpJson(out));
}

// Hashing may take seconds: on a reader's thread, answered from there.
void Put(DoorContext& context, const Call& call) {
  auto sha = call.captures["sha256"];
  if (context.blobs.Use(sha)) return call.Json(200, "{\"stored\":false}");
  bool taken = context.readers.Submit([&context, call, sha] {
    auto store = [&]() -> Result<BlobRef> {
      ATHANOR_TRY(auto writer, context.blobs.NewBlob());
      if (call.request.body_file) {
        ATHANOR_CHECK_OK([&]() -> Status {
          std::string buffer(1 << 20, '\0');
          off_t offset = 0;
          for (;;) {
            ssize_t n =
                ::pread(call.request.body_file->get(), buffer.data(), buffer.size(), offset);
            if (n < 0) return FailErrno("read an upload", errno);
            if (n == 0) return Ok();
            offset += n;
            ATHANOR_CHECK_OK(writer.Write({buffer.data(), static_cast<size_t>(n)}));
          }
        }());
      } else {
        ATHANOR_CHECK_OK(writer.Write(call.request.body));
      }
      return writer.Commit(sha);
    };
    auto ref = store();
    if (!ref) return call.Refuse(ref.error());
    call.Json(201, "{\"stored\":true}");
  });
  if (!taken) call.Refuse(Error{ErrorCode::kUnavailable, "the server is stopping"});
}

void SendBlob(const DoorContext& context, const Call& call, std::string_view sha) {
  auto fd = context.blobs.Read(sha);
  if (!fd) return call.Refuse(fd.error());
  struct stat info {};
  if (::fstat(fd->get(), &info) != 0) return call.Refuse(FailErrno("stat", errno).value());
  Response head;
  // Users' bytes never run in the browser.
  head.headers.Add("Content-Type", "application/octet-stream");
  head.headers.Add("Content-Disposition", "attachment");
  head.headers.Add("X-Content-Type-Options", "nosniff");
  head.headers.Add("Content-Security-Policy", "sandbox; default-src 'none'");
  call.responder.SendFile(std::move(head), std::move(*fd), 0, static_cast<uint64_t>(info.st_size));
}

void Get(DoorContext& context, const Call& call) {
  SendBlob(context, call, call.captures["sha256"]);
}

// The files of the working folder that a listing names.
Result<BundleManifest> ListingOf(const DoorContext& context, const Output& output) {
  ATHANOR_TRY(const auto fd, context.blobs.Read(output.blob));
  ATHANOR_TRY(const auto text, ReadAll(fd.get(), kManifestTextLimit));
  return ReadManifest(text);
}

Json MembersView(const DoorContext& context, const Output& output, const std::string& members_dir) {
  Json rows = Json::array();
  if (output.is_listing()) {
    const auto listing = ListingOf(context, output);
    if (!listing) return nullptr;
    for (const auto& entry : listing->entries) {
      Json row = {{"name", entry.path}, {"bytes", entry.size}};
      if (entry.kind == BundleEntry::Kind::kLink) row["link"] = entry.target;
      if (entry.kind == BundleEntry::Kind::kFile) row["sha256"] = entry.sha256;
      rows.push_back(std::move(row));
    }
    return rows;
  }
  const auto members = MembersOf(members_dir, context.blobs, output.blob);
  if (!members) return nullptr;
  for (const auto& member : *members) {
    rows.push_back({{"name", member.name}, {"bytes", member.bytes}});
  }
  return rows;
}

void Outputs(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  const auto members_dir = JobFolder(context.info.home, record->id).members();
  // An output of an older version has no list of what is in it yet.
  OnDisk(context, call, [&context, call, outputs = record->outputs, members_dir] {
    Json out = Json::object();
    out["outputs"] = Json::array();
    for (const auto& output : outputs) {
      Json row = {{"name", output.name}, {"sha256", output.blob}, {"bytes", output.bytes}};
      if (auto members = MembersView(context, output, members_dir); !members.is_null()) {
        row["members"] = std::move(members);
      }
      if (output.left_out.files > 0) row["left_out"] = ToJson(output)["left_out"];
      out["outputs"].push_back(std::move(row));
    }
    call.Json(200, DumpJson(out));
  });
}

// The archive of an output by name: "model.tar.gz".
void OutputFile(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  std::string names;
  for (const auto& output : record->outputs) {
    if (output.is_listing()) continue;  // each of its files is had by itself
    if (output.name == call.captures["name"]) return SendBlob(context, call, output.blob);
    names += (names.empty() ? "" : ", ") + output.name;
  }
  call.Refuse(
      Error{ErrorCode::kNotFound,
            record->spec.name + " kept no output \"" + Printable(call.captures["name"]) + "\"",
            "ath show " + ShellQuote(record->spec.name)}
          .Why(names.empty() ? "it kept none" : "it kept: " + names)
          .Id("ATH-R0008"));
}

// A file that the script left in its working folder.
void SendLeftFile(DoorContext& context, const Call& call) {
  const auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  OnReader(context, call, [&context, call, record = *record] {
    const auto& path = call.captures["path"];
    for (const auto& output : record.outputs) {
      if (!output.is_listing()) continue;
      // Of another host than the first: "algo-2/files/PATH".
      const std::string prefix = output.name == Output::kFiles ? "" : output.name + "/";
      if (!StartsWith(path, prefix)) continue;
      const auto listing = ListingOf(context, output);
      if (!listing) return call.Refuse(listing.error());
      const auto* entry = listing->Find(path.substr(prefix.size()));
      if (entry == nullptr || entry->kind != BundleEntry::Kind::kFile) continue;
      return SendUserBytes(call, "application/octet-stream", false,
                           context.blobs.Read(entry->sha256), BaseName(path));
    }
    call.Refuse(Error{ErrorCode::kNotFound,
                      record.spec.name + " kept no file \"" + Printable(path.substr(0, 200)) + "\"",
                      "ath cp " + ShellQuote(record.spec.name + ":")}
                    .Id("ATH-R0008"));
  });
}

// What `ath exec` needs to enter a running job: only for callers on this machine.
void ExecInfo(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  const auto part = LogPartIn(call.request, *record);  // named as the part of a log is
  if (!part) return call.Refuse(part.error());
  const bool alone = record->spec.resources.ranks() == 1;
  if (alone && part->rank.value_or(0) > 0) return call.Refuse(NoSuchRank(*record, *part->rank));
  const auto* stats = context.hub.FindStats(record->id);
  if (record->state != JobState::kRunning || !record->current()) {
    return call.Refuse(Error{ErrorCode::kConflict, record->spec.name + " is not running", "ath ps"}
                           .Why("it is " + std::string(ShownState(*record, context.clock.Wall())))
                           .Id("ATH-R0004"));
  }
  Json out = Json::object();
  out["attempt"] = record->current()->id.ToString();
  out["dir"] =
      JoinPath(StoreLayout{context.info.home}.attempts(), HostFolderName(record->current()->id, 0));
  out["host"] = part->host.value_or(0);
  out["local_rank"] = part->rank.value_or(0) % std::max(record->spec.resources.processes, 1u);
  out["supervisor_pid"] = stats ? stats->supervisor_pid : 0;
  out["secrets"] = Json::array();  // names; the values stay in the script's environment
  for (const auto& secret : record->spec.secrets) {
    if (secret.as != "none") out["secrets"].push_back(secret.name);
  }
  call.Json(200, DumpJson(out));
}

}  // namespace

std::vector<DoorRoute> FileRoutes(DoorContext& context) {
  auto bind = [&context](void (*handler)(DoorContext&, const Call&)) {
    return [&context, handler](const Call& call) { handler(context, call); };
  };
  return {
      Native("blobs.missing", bind(Missing)), Native("blobs.put", bind(Put)),
      Native("blobs.get", bind(Get)),         Native("jobs.outputs", bind(Outputs)),
      Native("jobs.file", bind(OutputFile)),  Native("jobs.leftfile", bind(SendLeftFile)),
      Native("jobs.exec", bind(ExecInfo)),
  };
}

}  // namespace athanor
