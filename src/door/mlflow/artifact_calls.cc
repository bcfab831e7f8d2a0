// Artifacts over HTTP: files of runs and models beneath one folder (artifact_places.h), streamed
// both ways. A path from outside is checked as a name first and resolved by the kernel beneath
// that folder, so that nothing else can be touched.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/io/unnamed_file.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "door/mlflow/artifacts.h"
#include "door/mlflow/calls.h"
#include "door/mlflow/job_rights.h"
#include "door/mlflow/validate.h"
#include "door/native/artifact_places.h"
#include "door/queries.h"
#include "record/artifacts/artifact_sums.h"

namespace athanor {
namespace {

constexpr size_t kMostUiUpload = 10 << 20;

tl::unexpected<Error> NoFile(std::string_view path) {
  return MlflowFail("RESOURCE_DOES_NOT_EXIST",
                    "No such artifact: " + Printable(path.substr(0, 500)));
}

Result<UniqueFd> Root(const std::string& root) {
  ATHANOR_CHECK_OK(MakeDirs(root));
  return OpenDir(root);
}

// What this server keeps at `path` itself.
ArtifactPlace Own(const DoorContext& context, const std::string& path) {
  return {context.artifacts, path};
}

// A browser shows text as text, also where it could run it.
constexpr std::string_view kTexts[] = {
    ".txt",  ".log",   ".err",  ".cfg",  ".conf", ".cnf",  ".cf",   ".ini", ".properties",
    ".prop", ".hocon", ".toml", ".yaml", ".yml",  ".xml",  ".json", ".js",  ".py",
    ".py3",  ".csv",   ".tsv",  ".md",   ".rst",  ".html", ".htm",  ".svg"};
constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {".png", "image/png"},       {".jpg", "image/jpeg"},        {".jpeg", "image/jpeg"},
    {".gif", "image/gif"},       {".webp", "image/webp"},       {".bmp", "image/bmp"},
    {".tif", "image/tiff"},      {".tiff", "image/tiff"},       {".pdf", "application/pdf"},
    {".zip", "application/zip"}, {".tar", "application/x-tar"}, {".wav", "audio/x-wav"},
    {".mp3", "audio/mpeg"},      {".mp4", "video/mp4"},         {".webm", "video/webm"}};

std::string TypeOf(std::string_view path) {
  const std::string name = BaseName(path);
  if (name == "MLmodel" || ToLower(name) == "mlproject") return "text/plain";
  const size_t dot = name.rfind('.');
  const auto end = dot == std::string::npos ? std::string() : name.substr(dot);
  for (const auto text : kTexts) {
    if (end == text) return "text/plain";
  }
  for (const auto& [known, type] : kTypes) {
    if (end == known) return std::string(type);
  }
  return "application/octet-stream";
}

// Users' bytes never run in the browser. The plain name is for clients that know only that form;
// the second has what it cannot represent.
std::string Attachment(const std::string& name) {
  const auto is_token = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  if (std::all_of(name.begin(), name.end(), is_token)) return "attachment; filename=" + name;
  std::string plain;
  for (const char c : name) {
    if (static_cast<unsigned char>(c) >= 0x80) continue;
    if (c == '"' || c == '\\') plain += '\\';
    plain += c;
  }
  if (plain.empty()) plain = "download";
  return fmt::format("attachment; filename=\"{}\"; filename*=UTF-8''{}", plain, UrlEncode(name));
}

void SendArtifact(const Call& call, const ArtifactPlace& place) {
  const auto refuse = [&](const Error& error) { call.responder.Send(MlflowError(error)); };
  const std::string& path = place.path;
  if (auto checked = CheckArtifactPath(path); !checked) return refuse(checked.error());
  auto root = Root(place.root);
  if (!root) return refuse(root.error());
  auto fd = OpenBeneath(root->get(), path, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!fd || ::fstat(fd->get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return refuse(NoFile(path).value());
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  Response head;
  head.headers.Add("Content-Type", TypeOf(path));
  head.headers.Add("Content-Disposition", Attachment(BaseName(path)));
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
Status Keep(const ArtifactPlace& place, const Request& request) {
  const std::string& path = place.path;
  ATHANOR_TRY(const auto root, Root(place.root));
  ATHANOR_CHECK_OK(MakeParentsBeneath(root.get(), path));
  const size_t slash = path.rfind('/');
  ATHANOR_TRY(const auto dir,
              slash == std::string::npos
                  ? OpenDir(place.root)
                  : OpenBeneath(root.get(), path.substr(0, slash), O_RDONLY | O_DIRECTORY));
  const std::string temporary = ".upload-" + RandomHex(8);
  const std::string name = BaseName(path);
  if (request.body_file) {
    // The spool has no name yet: it is given one, and then the right one.
    ATHANOR_CHECK_OK(NameFile(request.body_file->get(), dir.get(), temporary));
  } else {
    UniqueFd out(
        ::openat(dir.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
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

void Put(Mlflow& mlflow, const Call& call, const ArtifactPlace& place) {
  const auto refuse = [call](const Error& error) { call.responder.Send(MlflowError(error)); };
  if (auto checked = CheckArtifactPath(place.path); !checked) return refuse(checked.error());
  if (const auto name = BaseName(place.path); name == kArtifactSums) {
    return refuse(InvalidParameter("That name is the server's own: " + name).value());
  }
  if (auto may = CheckMayChange(mlflow, call, place); !may) return refuse(may.error());
  const bool taken = mlflow.context.readers.Submit([call, place, refuse] {
    if (auto kept = Keep(place, call.request); !kept) return refuse(kept.error());
    call.Json(200, "{}");
  });
  if (!taken) refuse(Error{ErrorCode::kUnavailable, "the server is stopping"});
}

// Clients ask for a folder also as ".", "a/" and "./a".
std::string WithoutDots(std::string_view path) {
  auto parts = Split(path, '/');
  std::erase(parts, ".");
  while (!parts.empty() && parts.back().empty()) parts.pop_back();
  return Join(parts, "/");
}

struct Listed {
  std::string name;
  bool is_dir = false;
  uint64_t size = 0;
};

// What is in a folder, by name; nothing when it is a file, or not there.
Result<std::vector<Listed>> ListArtifacts(const ArtifactPlace& place) {
  std::vector<Listed> all;
  const std::string& path = place.path;
  ATHANOR_TRY(auto dir, Root(place.root));
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
  auto listed = ListArtifacts(Own(context, WithoutDots(call.request.Query("path").value_or(""))));
  if (!listed) return call.responder.Send(MlflowError(listed.error()));
  call.Json(200, ListText(*listed, "", ""));
}

void Delete(Mlflow& mlflow, const Call& call) {
  const std::string path = call.captures["path"];
  const auto refuse = [&](const Error& error) { call.responder.Send(MlflowError(error)); };
  if (auto checked = CheckArtifactPath(path); !checked) return refuse(checked.error());
  const DoorContext& context = mlflow.context;
  if (auto may = CheckMayChange(mlflow, call, Own(context, path)); !may) return refuse(may.error());
  auto root = Root(context.artifacts);
  if (!root) return refuse(root.error());
  auto fd = OpenBeneath(root->get(), path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  if (!fd) return refuse(NoFile(path).value());
  // Resolved beneath the root just now, without links: what is removed is there.
  auto removed = RemoveTree(JoinPath(context.artifacts, path));
  if (!removed) return refuse(removed.error());
  call.Json(200, "{}");
}

// The place of `path` beneath the artifacts at `uri`.
Result<ArtifactPlace> PlaceIn(const DoorContext& context, const std::string& uri,
                              const std::string& path) {
  if (!path.empty()) ATHANOR_CHECK_OK(CheckArtifactPath(path));
  auto place = PlaceOfUri(context, uri);
  if (!place) {
    return MlflowFail("NOT_IMPLEMENTED", "This server cannot read artifacts that are kept at " +
                                             Printable(uri.substr(0, 500)));
  }
  if (!place->path.empty() && !path.empty()) place->path += '/';
  place->path += path;
  return std::move(*place);
}

Result<std::string> UriOfRun(const Mlflow& mlflow, JobId run) {
  auto uri = mlflow.context.runs.ArtifactsOf(run);
  if (!uri.empty()) return uri;
  return MlflowFail("RESOURCE_DOES_NOT_EXIST",
                    fmt::format("Run with id={} not found", run.value.ToHex()));
}

// Where the files of a version are; a source may name them through a run.
Result<std::string> UriOfVersion(const Mlflow& mlflow, const ModelVersion& version) {
  constexpr std::string_view kRuns = "runs:/";
  const std::string& place = version.place();
  if (!StartsWith(place, kRuns)) return place;
  const size_t slash = place.find('/', kRuns.size());
  const auto run = JobId::Parse(place.substr(kRuns.size(), slash - kRuns.size()));
  if (!run) return place;
  ATHANOR_TRY(const auto uri, UriOfRun(mlflow, *run));
  return slash == std::string::npos ? uri : uri + place.substr(slash);
}

Result<Answer> ListAt(const Mlflow& mlflow, const std::string& uri, const std::string& asked) {
  const std::string path = WithoutDots(asked);
  ATHANOR_TRY(const auto place, PlaceIn(mlflow.context, uri, path));
  ATHANOR_TRY(const auto listed, ListArtifacts(place));
  return Answer{ListText(listed, path, uri), {}};
}

Result<Answer> ListRun(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const JobId run, fields.Run());
  ATHANOR_TRY(const std::string path, fields.Text("path"));
  ATHANOR_TRY(const std::string uri, UriOfRun(mlflow, run));
  return ListAt(mlflow, uri, path);
}

// The model is looked up here, on the loop's thread; its folder is read on another.
void ListLogged(const std::shared_ptr<Mlflow>& mlflow, const Call& call) {
  const auto refuse = [call](const Error& error) { call.responder.Send(MlflowError(error)); };
  const auto model = mlflow->context.models.FindLogged(call.captures["id"]);
  if (!model) return refuse(model.error());
  const auto path = call.request.Query("artifact_directory_path").value_or("");
  const bool taken =
      mlflow->context.readers.Submit([mlflow, call, refuse, path, uri = (*model)->row.artifacts] {
        auto answer = ListAt(*mlflow, uri, path);
        if (!answer) return refuse(answer.error());
        call.Json(200, std::move(answer->body));
      });
  if (!taken) refuse(Error{ErrorCode::kUnavailable, "the server is stopping"});
}

// Multipart transfers and signed URLs are for stores in a cloud. Clients that get this message send
// the file in one piece.
Result<Answer> NoMultipart(Mlflow&, const Fields&, const Call&) {
  return MlflowFail("NOT_IMPLEMENTED",
                    "Multipart upload is not supported for the current artifact repository");
}

Result<Answer> NoSignedUpload(Mlflow&, const Fields&, const Call&) {
  return MlflowFail("NOT_IMPLEMENTED",
                    "Presigned upload is not supported for the current artifact repository");
}

Result<Answer> NoSignedDownload(Mlflow&, const Fields&, const Call&) {
  return MlflowFail("NOT_IMPLEMENTED",
                    "Presigned download is not supported for the current artifact repository");
}

constexpr MlflowCall kArtifactCalls[] = {
    {"GET", "/2.0/mlflow/artifacts/list", "artifacts.list", Access::kRead, ListRun, true},
    {"POST", "/2.0/mlflow/artifacts/presigned-upload-url", "artifacts.presigned_upload",
     Access::kSubmit, NoSignedUpload},
    {"POST", "/2.0/mlflow/artifacts/presigned-download-url", "artifacts.presigned_download",
     Access::kRead, NoSignedDownload},
    {"POST", "/2.0/mlflow-artifacts/mpu/create/{path...}", "artifacts.mpu_create", Access::kSubmit,
     NoMultipart},
    {"POST", "/2.0/mlflow-artifacts/mpu/complete/{path...}", "artifacts.mpu_complete",
     Access::kSubmit, NoMultipart},
    {"POST", "/2.0/mlflow-artifacts/mpu/abort/{path...}", "artifacts.mpu_abort", Access::kSubmit,
     NoMultipart},
    {"GET", "/2.0/mlflow-artifacts/presigned/{path...}", "artifacts.presigned", Access::kRead,
     NoSignedDownload},
};

Fields QueryOf(const Call& call) {
  Json json = Json::object();
  for (const auto& [key, value] : call.request.query) json[key] = value;
  return Fields(std::move(json));
}

// The file of a run that a query names: run_id (or run_uuid) and path.
Result<ArtifactPlace> AskedFile(const Mlflow& mlflow, const Call& call) {
  const Fields fields = QueryOf(call);
  ATHANOR_TRY(const JobId run, fields.Run());
  ATHANOR_TRY(const std::string path, fields.Needed("path"));
  ATHANOR_CHECK_OK(CheckArtifactPath(path));
  ATHANOR_TRY(const std::string uri, UriOfRun(mlflow, run));
  return PlaceIn(mlflow.context, uri, path);
}

Result<ArtifactPlace> AskedOfVersion(const Mlflow& mlflow, const Call& call) {
  const Fields fields = QueryOf(call);
  ATHANOR_TRY(const std::string path, fields.Needed("path"));
  ATHANOR_CHECK_OK(CheckArtifactPath(path));
  ATHANOR_TRY(const std::string name, fields.Needed("name"));
  ATHANOR_TRY(const int64_t number, fields.NeededInt("version"));
  ATHANOR_TRY(const auto* version, mlflow.context.models.FindVersion(name, number));
  ATHANOR_TRY(const std::string uri, UriOfVersion(mlflow, *version));
  return PlaceIn(mlflow.context, uri, path);
}

Result<ArtifactPlace> AskedOfLogged(const Mlflow& mlflow, const Call& call) {
  ATHANOR_TRY(const std::string path, QueryOf(call).Needed("artifact_file_path"));
  ATHANOR_CHECK_OK(CheckArtifactPath(path));
  ATHANOR_TRY(const auto* model, mlflow.context.models.FindLogged(call.captures["id"]));
  return PlaceIn(mlflow.context, model->row.artifacts, path);
}

// What MLflow's page sends: a small file of a run, with this message if there is none.
Result<ArtifactPlace> AskedUpload(const Mlflow& mlflow, const Call& call) {
  for (const char* name : {"run_uuid", "path"}) {
    const bool given = !call.request.Query(name).value_or("").empty();
    const bool either =
        name == std::string_view("run_uuid") && !call.request.Query("run_id").value_or("").empty();
    if (!given && !either) return InvalidParameter(fmt::format("Request must specify {}.", name));
  }
  ATHANOR_TRY(auto place, AskedFile(mlflow, call));
  if (call.request.body_size > kMostUiUpload) {
    return InvalidParameter("Artifact size is too large. Max size is 10MB.");
  }
  if (call.request.body_size == 0) return InvalidParameter("Request must specify data.");
  return place;
}

}  // namespace

std::span<const MlflowCall> ArtifactCalls() { return kArtifactCalls; }

std::vector<DoorRoute> ArtifactRoutes(const std::shared_ptr<Mlflow>& mlflow) {
  std::vector<DoorRoute> routes;
  DoorContext& context = mlflow->context;
  const auto send = [mlflow](Result<ArtifactPlace> (*find)(const Mlflow&, const Call&)) {
    return [mlflow, find](const Call& call) {
      const auto place = find(*mlflow, call);
      if (!place) return call.responder.Send(MlflowError(place.error()));
      SendArtifact(call, *place);
    };
  };
  for (const std::string door : {"", "ajax."}) {
    const std::string api = (door.empty() ? "/api" : "/ajax-api") + std::string("/2.0");
    const std::string base = api + "/mlflow-artifacts/artifacts";
    const std::string name = door + "mlflow.artifacts.";
    routes.push_back({"PUT", base + "/{path...}", name + "put",
                      [mlflow](const Call& call) {
                        Put(*mlflow, call, Own(mlflow->context, call.captures["path"]));
                      },
                      true});
    routes.push_back(
        {"GET", base + "/{path...}", name + "get",
         [&context](const Call& call) { SendArtifact(call, Own(context, call.captures["path"])); },
         true});
    routes.push_back({"DELETE", base + "/{path...}", name + "delete",
                      [mlflow](const Call& call) {
                        OnReader(mlflow->context, call, [mlflow, call] { Delete(*mlflow, call); });
                      },
                      true});
    routes.push_back({"GET", base, name + "folder", [&context](const Call& call) {
                        OnReader(context, call, [&context, call] { ListFolder(context, call); });
                      }});
    routes.push_back({"GET", api + "/mlflow/logged-models/{id}/artifacts/directories",
                      door + "mlflow.logged.artifacts",
                      [mlflow](const Call& call) { ListLogged(mlflow, call); }});
    routes.push_back({"GET", api + "/mlflow/logged-models/{id}/artifacts/files",
                      door + "mlflow.logged.artifact", send(AskedOfLogged)});
  }
  routes.push_back({"GET", "/get-artifact", "mlflow.artifacts.download", send(AskedFile)});
  routes.push_back(
      {"GET", "/model-versions/get-artifact", "mlflow.versions.artifact", send(AskedOfVersion)});
  routes.push_back({"POST", "/ajax-api/2.0/mlflow/upload-artifact", "mlflow.artifacts.upload",
                    [mlflow](const Call& call) {
                      const auto place = AskedUpload(*mlflow, call);
                      if (!place) return call.responder.Send(MlflowError(place.error()));
                      Put(*mlflow, call, *place);
                    }});
  return routes;
}

}  // namespace athanor
