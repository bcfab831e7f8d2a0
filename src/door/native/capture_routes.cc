// The native door's black boxes: which steps a job captured, and their files. The server only
// hands them over; it never unpickles one.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/io/held_folder.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "door/doors.h"
#include "link/job_folder.h"

namespace athanor {
namespace {

constexpr size_t kMetaLimit = 1u << 20;

// It was the script's own: what it left in its place is not followed.
Result<UniqueFd> OpenCaptures(const std::string& dir) {
  ATHANOR_TRY(const auto held, HeldFolder::At(dir));
  return held.Open();
}

// What a script wrote is taken member by member: it may be anything.
Json MetaView(int folder) {
  Json out = Json::object();
  auto file = OpenBeneath(folder, "meta.json", O_RDONLY | O_NONBLOCK);
  if (!file) return out;
  auto text = ReadAll(file->get(), kMetaLimit);
  if (!text) return out;
  auto meta = ParseJson(*text);
  if (!meta || !meta->is_object()) return out;
  for (const char* key : {"reason", "error", "weights", "python"}) {
    if (meta->contains(key) && (*meta)[key].is_string()) out[key] = (*meta)[key];
  }
  for (const char* key : {"step", "rank", "wall_ns"}) {
    if (meta->contains(key) && (*meta)[key].is_number_integer()) out[key] = (*meta)[key];
  }
  Json steps = Json::array();
  if (meta->contains("steps") && (*meta)["steps"].is_array()) {
    for (const auto& one : (*meta)["steps"]) {
      if (one.is_object() && one.contains("step") && one["step"].is_number_integer()) {
        steps.push_back(one["step"]);
      }
    }
  }
  out["steps"] = std::move(steps);
  return out;
}

// Null if it is not a captured step: its meta.json is written last.
Json CaptureView(int captures, const std::string& name) {
  if (StartsWith(name, ".")) return nullptr;
  auto folder = OpenBeneath(captures, name, O_RDONLY | O_DIRECTORY);
  if (!folder) return nullptr;
  auto out = MetaView(folder->get());
  if (!out.contains("step") || !out.contains("wall_ns")) return nullptr;
  out["name"] = name;
  out["files"] = Json::array();
  auto names = ListDirAt(folder->get());
  if (!names) return nullptr;
  for (const auto& each : *names) {
    struct stat info {};
    if (::fstatat(folder->get(), each.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(info.st_mode) || !IsUtf8(each)) continue;
    out["files"].push_back({{"name", each}, {"bytes", info.st_size}});
  }
  return out;
}

Json Listing(const std::string& dir) {
  Json all = Json::array();
  auto folder = OpenCaptures(dir);
  if (!folder) return all;  // none was kept
  auto names = ListDirAt(folder->get());
  if (!names) return all;
  for (const auto& name : *names) {
    if (Json one = CaptureView(folder->get(), name); !one.is_null()) all.push_back(std::move(one));
  }
  std::stable_sort(all.begin(), all.end(), [](const Json& a, const Json& b) {
    return a["wall_ns"].get<int64_t>() > b["wall_ns"].get<int64_t>();
  });
  return all;
}

void Captured(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  bool taken =
      context.readers.Submit([call, dir = JobFolder(context.info.home, record->id).capture()] {
        Json out = Json::object();
        out["captures"] = Listing(dir);
        call.Json(200, DumpJson(out));
      });
  if (!taken) call.Refuse(Error{ErrorCode::kUnavailable, "the server is stopping"});
}

Result<UniqueFd> OpenCaptured(const std::string& dir, const std::string& name, uint64_t& size) {
  ATHANOR_TRY(auto folder, OpenCaptures(dir));
  ATHANOR_CHECK_OK(CheckRelativeName(name));
  // Not blocking: a script may have left a FIFO there.
  ATHANOR_TRY(auto file, OpenBeneath(folder.get(), name, O_RDONLY | O_NONBLOCK));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return FailErrno("stat " + name, errno);
  if (!S_ISREG(info.st_mode)) return Fail(ErrorCode::kNotFound, name + " is no file");
  size = static_cast<uint64_t>(info.st_size);
  return file;
}

void CapturedFile(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  uint64_t size = 0;
  auto file =
      OpenCaptured(JobFolder(context.info.home, record->id).capture(), call.captures["file"], size);
  if (!file) {
    const bool outside = file.error().code != ErrorCode::kInvalid;
    return call.Refuse(
        Error{outside ? ErrorCode::kNotFound : ErrorCode::kInvalid,
              record->spec.name + " captured no file \"" + Printable(call.captures["file"]) + "\"",
              "ath replay " + ShellQuote(record->spec.name)}
            .Id("ATH-R0015"));
  }
  Response head;
  head.headers.Add("Content-Type", "application/octet-stream");
  head.headers.Add("Content-Disposition", "attachment");
  head.headers.Add("X-Content-Type-Options", "nosniff");
  head.headers.Add("Content-Security-Policy", "sandbox; default-src 'none'");
  call.responder.SendFile(std::move(head), std::move(*file), 0, size);
}

}  // namespace

std::vector<DoorRoute> CaptureRoutes(DoorContext& context) {
  auto bind = [&context](void (*handler)(DoorContext&, const Call&)) {
    return [&context, handler](const Call& call) { handler(context, call); };
  };
  return {
      Native("jobs.capture", bind(Captured)),
      Native("jobs.captured", bind(CapturedFile)),
  };
}

}  // namespace athanor
