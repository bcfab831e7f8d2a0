// The native door's artifacts: what runs keep, as a tree, and each file's bytes.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/io/files.h"
#include "base/text/json_writer.h"
#include "base/text/text.h"
#include "door/mlflow/validate.h"
#include "door/native/artifact_places.h"
#include "door/page/page_doors.h"
#include "door/queries.h"
#include "record/artifacts/artifact_sums.h"

namespace athanor {
namespace {

tl::unexpected<Error> NoFile(std::string_view path) {
  return Fail(Error{ErrorCode::kNotFound,
                    "this run keeps no \"" + Printable(path.substr(0, 200)) + "\"", "ath runs"}
                  .Id("ATH-R0041"));
}

// The run's place, and `path` within it.
Result<ArtifactPlace> PlaceOf(const DoorContext& context, JobId run, const std::string& path) {
  auto place = PlaceOfUri(context, context.runs.ArtifactsOf(run));
  if (!place || place->path.empty()) return NoFile(path);
  if (path.empty()) return std::move(*place);
  if (!CheckArtifactPath(path)) return NoFile(path);
  place->path += "/" + path;
  return std::move(*place);
}

Result<UniqueFd> OpenPlace(const ArtifactPlace& place, int flags) {
  ATHANOR_TRY(const auto root, OpenDir(place.root));
  return OpenBeneath(root.get(), place.path, flags);
}

void ListRunFiles(DoorContext& context, const Call& call) {
  const auto run = ResolveRun(context, call.captures["run"]);
  if (!run) return call.Refuse(run.error());
  const auto path = call.request.Query("path").value_or("");
  const auto place = PlaceOf(context, *run, path);
  if (!place) return call.Refuse(place.error());
  const auto dir = OpenPlace(*place, O_RDONLY | O_DIRECTORY);
  std::vector<std::string> names;
  // A run that stored nothing has no folder.
  if (dir) names = ListDirAt(dir->get()).value_or(std::vector<std::string>());
  if (!dir && !path.empty()) return call.Refuse(NoFile(path).value());
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  json.Key("entries");
  json.BeginArray();
  for (const auto& name : names) {
    struct stat info {};
    if (StartsWith(name, ".upload-") || name == kArtifactSums ||
        ::fstatat(dir->get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode))) {
      continue;
    }
    json.BeginObject();
    json.Text("path", path.empty() ? name : path + "/" + name);
    json.Int("size", S_ISREG(info.st_mode) ? info.st_size : 0);
    json.Key("dir");
    json.Bool(S_ISDIR(info.st_mode));
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  call.Json(200, std::move(body));
}

void File(DoorContext& context, const Call& call) {
  const auto run = ResolveRun(context, call.captures["run"]);
  if (!run) return call.Refuse(run.error());
  const auto& path = call.captures["path"];
  const auto place = PlaceOf(context, *run, path);
  if (!place) return call.Refuse(place.error());
  auto fd = OpenPlace(*place, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!fd || ::fstat(fd->get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return call.Refuse(NoFile(path).value());
  }
  const auto raster = RasterTypeOf(path);
  SendUserBytes(call, raster ? *raster : "application/octet-stream", raster.has_value(),
                std::move(fd), BaseName(path));
}

}  // namespace

std::vector<DoorRoute> RunFileRoutes(DoorContext& context) {
  return {
      Native("runs.artifacts", [&context](const Call& call) { ListRunFiles(context, call); }),
      Native("runs.artifact", [&context](const Call& call) { File(context, call); }),
  };
}

}  // namespace athanor
