#include "door/native/artifact_places.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kScheme = "mlflow-artifacts:";

bool StepsUp(std::string_view path) {
  const auto parts = Split(path, '/');
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

// `path` without empty and "." parts: "a/b" for "/a//./b/".
std::string Beneath(std::string_view path) {
  auto parts = Split(path, '/');
  std::erase_if(parts, [](const auto& part) { return part.empty() || part == "."; });
  return Join(parts, "/");
}

}  // namespace

std::string SchemeOf(std::string_view uri) {
  const size_t colon = uri.find(':');
  if (colon == std::string_view::npos || colon == 0) return "";
  const auto scheme = uri.substr(0, colon);
  const bool plain = std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
  });
  return plain && std::isalpha(static_cast<unsigned char>(scheme.front())) != 0 ? ToLower(scheme)
                                                                                : "";
}

std::optional<std::string> LocalPathOf(std::string_view uri) {
  if (StartsWith(uri, "/")) return std::string(uri);
  if (SchemeOf(uri) != "file") return std::nullopt;
  uri.remove_prefix(5);
  if (StartsWith(uri, "//")) {
    uri.remove_prefix(2);
    const auto host = uri.substr(0, uri.find('/'));
    if (!host.empty() && host != "localhost" && host != "127.0.0.1") return std::nullopt;
    uri.remove_prefix(host.size());
  }
  auto path = UrlDecode(uri);
  if (!path || !StartsWith(*path, "/")) return std::nullopt;
  return path;
}

std::string PlainPath(std::string_view path) {
  std::vector<std::string> parts;
  for (auto& part : Split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(std::move(part));
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  return "/" + Join(parts, "/");
}

std::optional<ArtifactPlace> PlaceOfUri(const std::string& own, const std::string& artifact_root,
                                        std::string_view uri) {
  if (StartsWith(uri, kScheme)) {
    uri.remove_prefix(kScheme.size());
    // With an address it is a server that the client knows, perhaps not this one.
    if (StartsWith(uri, "//") || StepsUp(uri)) return std::nullopt;
    return ArtifactPlace{own, Beneath(uri)};
  }
  const auto root = LocalPathOf(artifact_root);
  const auto path = LocalPathOf(uri);
  if (!root || !path || StepsUp(*path)) return std::nullopt;
  const std::string base = PlainPath(*root);
  const std::string plain = PlainPath(*path);
  if (plain != base && !StartsWith(plain, base + "/")) return std::nullopt;
  return ArtifactPlace{base, Beneath(std::string_view(plain).substr(base.size()))};
}

Result<std::string> ArtifactRootFrom(std::string_view given) {
  std::string root(given);
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  if (StartsWith(root, "/")) return "file://" + root;
  const auto scheme = SchemeOf(root);
  if (scheme == "file" ? LocalPathOf(root).has_value() : scheme.size() > 1) return root;
  return Fail(Error{ErrorCode::kInvalid,
                    "--mlflow-artifact-root is a URI or an absolute path, not \"" +
                        Printable(given.substr(0, 200)) + "\"",
                    "ath serve --mlflow-artifact-root file:///srv/artifacts"}
                  .Id("ATH-V0011"));
}

}  // namespace athanor
