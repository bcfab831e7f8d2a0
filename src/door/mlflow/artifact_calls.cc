// Artifacts over HTTP: files of runs beneath one folder, streamed both ways. A path from
// outside is checked as a name first and resolved by the kernel beneath that folder, so that
// nothing else can be touched.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/format.h"
#include "base/text.h"
#include "base/unnamed_file.h"
#include "door/mlflow/artifacts.h"
#include "door/mlflow/calls.h"
#include "door/mlflow/job_rights.h"
#include "door/mlflow/validate.h"
#include "door/queries.h"
#include "record/artifacts/artifact_sums.h"

namespace athanor {
namespace {

constexpr std::string_view kScheme = "mlflow-artifacts:/";
constexpr size_t kMostUiUpload = 10 << 20;

tl::unexpected<Error> NoFile(std::string_view path) {
  return MlflowFail("RESOURCE_DOES_NOT_EXIST",
                    "No such artifact: " + Printable(path.substr(0, 500)));
}

Result<UniqueFd> Root(const DoorContext& context) {
  ATHANOR_CHECK_OK(MakeDirs(context.artifacts));
  return OpenDir(context.artifacts);
}

std::string TypeOf(std::string_view path) {
  static constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {".json", "application/json"}, {".png", "image/png"},   {".jpg", "image/jpeg"},
      {".jpeg", "image/jpeg"},       {".gif", "image/gif"},   {".csv", "text/csv"},
      {".pdf", "application/pdf"},   {".zip", "application/zip"}};
  for (const auto& [end, type] : kTypes) {
    if (EndsWith(path, end)) return std::string(type);
  }
  for (const auto* end : {".txt", ".log", ".yaml", ".yml", ".md", ".py", "MLmodel", ".html", ".svg",
                          ".xml", ".js"}) {
    // Text that a browser would run is shown as text.
    if (EndsWith(path, end)) return "text/plain";
  }
  return "application/octet-stream";
}

void SendArtifact(const DoorContext& context, const Call& call, const std::string& path) {
  const auto refuse = [&](const Error& error) { call.responder.Send(MlflowError(error)); };
  if (auto checked = CheckArtifactPath(path); !checked) return refuse(checked.error());
  auto root = Root(context);
  if (!root) return refuse(root.error());
  auto fd = OpenBeneath(root->get(), path, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!fd || ::fstat(fd->get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return refuse(NoFile(path).value());
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  Response head;
  head.headers.Add("Content-Type", TypeOf(path));
  // Bytes of users never run in a browser of ours.
  head.headers.Add("Content-Disposition",
                   "attachment; filename*=UTF-8''" + UrlEncode(BaseName(path)));
  head.headers.Add("X-Content-Type-Options", "nosniff");
  head.headers.Add("Content-Security-Policy", "sandbox; default-src 'none'");
  head.headers.Add("Accept-Ranges", "bytes");
  uint64_t offset = 0;
  uint64_t length = size;
  if (const auto header = call.request.headers.Get("Range"); !header.empty()) {
    const auto range = ByteRange(header, size);
    if (range) {
      std::tie(offset, length) = *range;
      head.status = 206;
      head.headers.Add("Content-Range",
                       fmt::format("bytes {}-{}/{}", offset, offset + length - 1, size));
    } else if (StartsWith(header, "bytes=") && header.find(',') == std::string_view::npos) {
      Response none = Response::Text(416, "");
      none.headers.Add("Content-Range", fmt::format("bytes */{}", size));
      return call.responder.Send(std::move(none));
    }
  }
  call.responder.SendFile(std::move(head), std::move(*fd), offset, length);
}

// Copies what was sent into place: whole or not at all, on a thread that may wait.
Status Keep(const DoorContext& context, const Request& request, const std::string& path) {
  ATHANOR_TRY(const auto root, Root(context));
  ATHANOR_CHECK_OK(MakeParentsBeneath(root.get(), path));
  const size_t slash = path.rfind('/');
  ATHANOR_TRY(const auto dir, slash == std::string::npos
                                  ? OpenDir(context.artifacts)
                                  : OpenBeneath(root.get(), path.substr(0, slash),
                                                O_RDONLY | O_DIRECTORY));
  const std::string temporary = ".upload-" + RandomHex(8);
  const std::string name = BaseName(path);
  if (request.body_file) {
    // The spool has no name yet: it is given one, and then the right one.
    ATHANOR_CHECK_OK(NameFile(request.body_file->get(), dir.get(), temporary));
  } else {
    UniqueFd out(::openat(dir.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!out) return FailErrno("keep an artifact", errno);
    auto written = WriteAll(out.get(), request.body);
    if (written.ok() && ::fdatasync(out.get()) != 0) written = FailErrno("sync", errno);
    if (!written.ok()) {
      ::unlinkat(dir.get(), temporary.c_str(), 0);
      return written;
    }
  }
  // Best effort: an artifact that nothing is known of is served like any other.
  (void)NoteArtifactFile(root.get(), path, dir.get(), temporary).ok();
  if (::renameat(dir.get(), temporary.c_str(), dir.get(), name.c_str()) != 0) {
    const int error = errno;
    ::unlinkat(dir.get(), temporary.c_str(), 0);
    if (error == EISDIR || error == ENOTEMPTY || error == EEXIST) {
      return InvalidParameter("There is a folder of that name: " + Printable(path));
    }
    return FailErrno("keep an artifact", error);
  }
  return Ok();
}

void Put(Mlflow& mlflow, const Call& call, const std::string& path) {
  const auto refuse = [call](const Error& error) { call.responder.Send(MlflowError(error)); };
  if (auto checked = CheckArtifactPath(path); !checked) return refuse(checked.error());
  if (BaseName(path) == kArtifactSums) {
    return refuse(InvalidParameter("That name is the server's own: " + BaseName(path)).value());
  }
  if (auto may = CheckMayChange(mlflow, call, path); !may) return refuse(may.error());
  DoorContext& context = mlflow.context;
  const bool taken = context.readers.Submit([&context, call, path, refuse] {
    if (auto kept = Keep(context, call.request, path); !kept) return refuse(kept.error());
    call.Json(200, "{}");
  });
  if (!taken) refuse(Error{ErrorCode::kUnavailable, "the server is stopping", "", "", "", ""});
}

struct Listed {
  std::string name;
  bool is_dir = false;
  uint64_t size = 0;
};

// What is in a folder, by name; nothing when it is a file, or not there.
Result<std::vector<Listed>> List(const DoorContext& context, const std::string& path) {
  std::vector<Listed> all;
  ATHANOR_TRY(auto dir, Root(context));
  if (!path.empty()) {
    ATHANOR_CHECK_OK(CheckArtifactPath(path));
    auto inner = OpenBeneath(dir.get(), path, O_RDONLY | O_DIRECTORY);
    if (!inner) return all;
    dir = std::move(*inner);
  }
  ATHANOR_TRY(const auto names, ListDirAt(dir.get()));
  for (const auto& name : names) {
    struct stat info {};
    if (StartsWith(name, ".upload-") || name == kArtifactSums ||
        ::fstatat(dir.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    if (S_ISDIR(info.st_mode)) all.push_back({name, true, 0});
    if (S_ISREG(info.st_mode)) all.push_back({name, false, static_cast<uint64_t>(info.st_size)});
  }
  return all;
}

std::string ListText(const std::vector<Listed>& all, const std::string& prefix,
                     const std::string& root_uri) {
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  if (!root_uri.empty()) json.Text("root_uri", root_uri);
  if (!all.empty()) {
    json.Key("files");
    json.BeginArray();
    for (const auto& file : all) {
      json.BeginObject();
      json.Text("path", prefix.empty() ? file.name : prefix + "/" + file.name);
      json.Key("is_dir");
      json.Bool(file.is_dir);
      if (!file.is_dir) json.Int("file_size", static_cast<int64_t>(file.size));
      json.EndObject();
    }
    json.EndArray();
  }
  json.EndObject();
  return body;
}

void ListFolder(DoorContext& context, const Call& call) {
  auto listed = List(context, call.request.Query("path").value_or(""));
  if (!listed) return call.responder.Send(MlflowError(listed.error()));
  call.Json(200, ListText(*listed, "", ""));
}

void Delete(Mlflow& mlflow, const Call& call) {
  const std::string path = call.captures["path"];
  const auto refuse = [&](const Error& error) { call.responder.Send(MlflowError(error)); };
  if (auto checked = CheckArtifactPath(path); !checked) return refuse(checked.error());
  if (auto may = CheckMayChange(mlflow, call, path); !may) return refuse(may.error());
  const DoorContext& context = mlflow.context;
  auto root = Root(context);
  if (!root) return refuse(root.error());
  auto fd = OpenBeneath(root->get(), path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  if (!fd) return refuse(NoFile(path).value());
  // Resolved beneath the root just now, without links: what is removed lies there.
  auto removed = RemoveTree(JoinPath(context.artifacts, path));
  if (!removed) return refuse(removed.error());
  call.Json(200, "{}");
}

Result<std::string> PathOfRun(const Mlflow& mlflow, JobId run, const std::string& path) {
  std::string root;
  mlflow.context.runs.Look({run}, [&](const RunEntry& entry) { root = entry.row.artifacts; });
  if (root.empty()) {
    return MlflowFail("RESOURCE_DOES_NOT_EXIST",
                      fmt::format("Run with id={} not found", run.value.ToHex()));
  }
  if (!StartsWith(root, kScheme)) {
    return MlflowFail("NOT_IMPLEMENTED", "The artifacts of this run are kept at " + root);
  }
  root.erase(0, kScheme.size());
  if (!path.empty()) ATHANOR_CHECK_OK(CheckArtifactPath(path));
  return path.empty() ? root : root + "/" + path;
}

Result<Answer> ListRun(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const JobId run, fields.Run());
  ATHANOR_TRY(const std::string path, fields.Text("path"));
  ATHANOR_TRY(const std::string folder, PathOfRun(mlflow, run, path));
  ATHANOR_TRY(const auto listed, List(mlflow.context, folder));
  ATHANOR_TRY(const std::string root, PathOfRun(mlflow, run, ""));
  return Answer{ListText(listed, path, std::string(kScheme) + root), {}};
}

// Multipart transfers and signed URLs are for stores in a cloud; clients then send it whole.
Result<Answer> NotHere(Mlflow&, const Fields&, const Call&) {
  return MlflowFail("NOT_IMPLEMENTED", "The artifacts of this server are sent to it directly");
}

constexpr MlflowCall kCalls[] = {
    {"GET", "/2.0/mlflow/artifacts/list", "artifacts.list", Access::kRead, ListRun, true},
    {"POST", "/2.0/mlflow/artifacts/presigned-upload-url", "artifacts.presigned_upload",
     Access::kSubmit, NotHere},
    {"POST", "/2.0/mlflow/artifacts/presigned-download-url", "artifacts.presigned_download",
     Access::kRead, NotHere},
    {"POST", "/2.0/mlflow-artifacts/mpu/create/{path...}", "artifacts.mpu_create", Access::kSubmit,
     NotHere},
    {"POST", "/2.0/mlflow-artifacts/mpu/complete/{path...}", "artifacts.mpu_complete",
     Access::kSubmit, NotHere},
    {"POST", "/2.0/mlflow-artifacts/mpu/abort/{path...}", "artifacts.mpu_abort", Access::kSubmit,
     NotHere},
    {"GET", "/2.0/mlflow-artifacts/presigned/{path...}", "artifacts.presigned", Access::kRead,
     NotHere},
};

// The file of a run that a query names: run_id (or run_uuid) and path.
Result<std::string> AskedFile(Mlflow& mlflow, const Call& call) {
  Json json = Json::object();
  for (const auto& [key, value] : call.request.query) json[key] = value;
  const Fields fields(std::move(json));
  ATHANOR_TRY(const JobId run, fields.Run());
  ATHANOR_TRY(const std::string path, fields.Needed("path"));
  return PathOfRun(mlflow, run, path);
}

}  // namespace

std::span<const MlflowCall> ArtifactCalls() { return kCalls; }

std::vector<DoorRoute> ArtifactRoutes(const std::shared_ptr<Mlflow>& mlflow) {
  std::vector<DoorRoute> routes;
  DoorContext& context = mlflow->context;
  for (const std::string door : {"", "ajax."}) {
    const std::string base =
        (door.empty() ? "/api" : "/ajax-api") + std::string("/2.0/mlflow-artifacts/artifacts");
    const std::string name = door + "mlflow.artifacts.";
    routes.push_back({"PUT", base + "/{path...}", name + "put", [mlflow](const Call& call) {
                        Put(*mlflow, call, call.captures["path"]);
                      }});
    routes.push_back({"GET", base + "/{path...}", name + "get", [&context](const Call& call) {
                        SendArtifact(context, call, call.captures["path"]);
                      }});
    routes.push_back({"DELETE", base + "/{path...}", name + "delete",
                      [mlflow](const Call& call) {
                        OnReader(mlflow->context, call, [mlflow, call] { Delete(*mlflow, call); });
                      }});
    routes.push_back({"GET", base, name + "folder",
                      [&context](const Call& call) {
                        OnReader(context, call, [&context, call] { ListFolder(context, call); });
                      }});
  }
  const auto download = [mlflow](const Call& call) {
    auto path = AskedFile(*mlflow, call);
    if (!path) return call.responder.Send(MlflowError(path.error()));
    SendArtifact(mlflow->context, call, *path);
  };
  routes.push_back({"GET", "/get-artifact", "mlflow.artifacts.download", download});
  routes.push_back({"POST", "/ajax-api/2.0/mlflow/upload-artifact", "mlflow.artifacts.upload",
                    [mlflow](const Call& call) {
                      auto path = AskedFile(*mlflow, call);
                      if (path && call.request.body_size > kMostUiUpload) {
                        path = InvalidParameter("Artifact size is too large. Max size is 10MB.");
                      }
                      if (!path) return call.responder.Send(MlflowError(path.error()));
                      Put(*mlflow, call, *path);
                    }});
  return routes;
}

}  // namespace athanor
