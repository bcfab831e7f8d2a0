// Where the artifacts of runs and models are, as far as this server can show them: beneath its own
// folder (mlflow-artifacts:/...), or beneath the local folder that it was started with (`ath serve
// --mlflow-artifact-root file:///...`). Any other URI is a place that only clients can reach: a
// client that names file:///etc as the place of an experiment must not make the server show it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "door/context.h"

namespace athanor {

struct ArtifactPlace {
  std::string root;  // a folder of ours
  std::string path;  // beneath it; empty: the folder itself
};

// Of a server whose own folder is `own` and that was started with `artifact_root`. None: it has no
// access to it. The path is only checked for "..".
std::optional<ArtifactPlace> PlaceOfUri(const std::string& own, const std::string& artifact_root,
                                        std::string_view uri);
inline std::optional<ArtifactPlace> PlaceOfUri(const DoorContext& context, std::string_view uri) {
  return PlaceOfUri(context.artifacts, context.artifact_root, uri);
}

// "s3" for "S3://bucket/x"; empty: it has none.
std::string SchemeOf(std::string_view uri);

// The path of a local place, "/a/b" for "file:///a/b" and for "/a/b"; none: it is not local.
std::optional<std::string> LocalPathOf(std::string_view uri);

// "/a/b" for "/a/./x/../b/"; without reading the disk.
std::string PlainPath(std::string_view path);

// The argument of `ath serve --mlflow-artifact-root`, as a URI without a slash at its end.
// kInvalid: it is neither a URI nor an absolute path.
Result<std::string> ArtifactRootFrom(std::string_view given);

}  // namespace athanor
