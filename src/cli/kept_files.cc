#include "cli/kept_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/io/archive.h"
#include "base/io/files.h"
#include "base/io/unnamed_file.h"
#include "base/text/text.h"
#include "cli/fetch.h"
#include "cli/screen/reading.h"
#include "job/record.h"

namespace athanor {
namespace {

constexpr int kMostLinks = 40;

constexpr std::string_view kArchive = ".tar.gz";

// Of the first host "files"; of the second "algo-2/files".
bool IsListing(const std::string& output) {
  return output == Output::kFiles || EndsWith(output, std::string("/") + Output::kFiles);
}

bool IsOrLiesIn(std::string_view path, std::string_view folder) {
  return folder.empty() || path == folder ||
         (StartsWith(path, folder) && path[folder.size()] == '/');
}

}  // namespace

Result<KeptFiles> KeptFiles::Open(Client& client, const std::string& job) {
  KeptFiles files(client);
  ATHANOR_TRY(const auto record, client.Get("/api/v1/jobs/" + UrlEncode(job)));
  files.id_ = Text(record, "id");
  files.name_ = Text(record, "name");
  files.state_ = Text(record, "state");
  if (record.contains("spec") && record["spec"].contains("source")) {
    files.source_ = Text(record["spec"]["source"], "bundle");
  }
  for (const auto& output : record.value("outputs", Json::array())) {
    const auto name = Text(output, "name");
    if (!IsListing(name)) {
      files.archives_.push_back(
          name.substr(0, name.size() - (EndsWith(name, kArchive) ? kArchive.size() : 0)));
      continue;
    }
    ATHANOR_TRY(const auto text, client.GetText("/api/v1/blobs/" + Text(output, "blob")));
    ATHANOR_TRY(auto left, ReadManifest(text));
    if (name == Output::kFiles) {
      files.left_out_ = DumpJson(output.value("left_out", Json::object()));
    } else {
      for (auto& entry : left.entries) entry.path = name + "/" + entry.path;
    }
    auto& all = files.left_.entries;
    std::move(left.entries.begin(), left.entries.end(), std::back_inserter(all));
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  }
  return files;
}

Json KeptFiles::left_out() const { return ParseJson(left_out_).value_or(Json::object()); }

// Through the one extraction path.
Status KeptFiles::FetchArchive(const std::string& top, const std::string& tree) const {
  ATHANOR_TRY(auto file, UnnamedFile(DirName(tree)));
  HttpCall call;
  call.target = "/api/v1/jobs/" + id_ + "/outputs/" + UrlEncode(top + std::string(kArchive));
  call.body_to_fd = file.get();
  ATHANOR_TRY([[maybe_unused]] auto reply, client_->Do(std::move(call)));
  ::lseek(file.get(), 0, SEEK_SET);
  const auto place = JoinPath(tree, top);
  struct stat info {};
  if (::lstat(place.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) ::unlink(place.c_str());
  ATHANOR_CHECK_OK(MakeDirs(place));
  ATHANOR_TRY(auto folder, OpenDir(place));
  return ExtractTar(file.get(), folder.get());
}

std::string KeptFiles::Resolved(std::string path) const {
  for (int links = 0; links < kMostLinks; ++links) {
    const auto link =
        std::find_if(left_.entries.begin(), left_.entries.end(), [&](const auto& entry) {
          return entry.kind == BundleEntry::Kind::kLink && IsOrLiesIn(path, entry.path);
        });
    if (link == left_.entries.end()) return path;
    const auto folder = std::filesystem::path(link->path).parent_path();
    path = ((folder / link->target).string() + path.substr(link->path.size()));
    path = std::filesystem::path(path).lexically_normal().string();
    while (EndsWith(path, "/")) path.pop_back();
    if (path == ".") path.clear();
  }
  return path;
}

Result<bool> KeptFiles::FetchLeft(const std::string& path, const std::string& tree) const {
  BundleManifest chosen;
  for (const auto& entry : left_.entries) {
    if (IsOrLiesIn(entry.path, path)) chosen.entries.push_back(entry);
  }
  if (chosen.entries.empty()) return false;
  ATHANOR_CHECK_OK(MakeDirs(tree));
  ATHANOR_TRY(const auto folder, OpenDir(tree));
  ATHANOR_CHECK_OK(LayOut(chosen, folder.get(), [&](const std::string& sha) {
    return FetchBlob(*client_, sha, DirName(tree));
  }));
  return true;
}

Error KeptFiles::Missing(const std::string& path) const {
  auto error = Error{ErrorCode::kNotFound, name_ + " has no \"" + Printable(path) + "\"",
                     "ath cp " + ShellQuote(name_ + ":")}
                   .Id("ATH-C0022");
  std::vector<std::string> tops;
  for (const auto& archive : archives_) tops.push_back(archive + "/");
  for (const auto& entry : left_.entries) {
    const size_t slash = entry.path.find('/');
    const auto top =
        Printable(entry.path.substr(0, slash == std::string::npos ? slash : slash + 1));
    if (std::find(tops.begin(), tops.end(), top) == tops.end()) tops.push_back(top);
  }
  const bool more = tops.size() > 8;
  if (more) tops.resize(8);
  if (!tops.empty()) {
    error.why = "it kept " + Join(tops, ", ") + (more ? ", ..." : "");
  } else if (state_ == "Completed" || state_ == "Failed" || state_ == "Stopped") {
    error.why = "the script left no files";
    error.hint = "ath cp " + ShellQuote(name_ + ":code/") + " .";
    error.id = "ATH-C0021";
  } else {
    error.why = "files are kept when the script ends; it is " + state_;
    error.hint = "ath wait " + ShellQuote(name_);
    error.id = "ATH-C0021";
  }
  return error;
}

Result<std::string> KeptFiles::Fetch(const std::string& path, const std::string& dir) const {
  const auto tree = JoinPath(dir, "tree");
  const auto there = [&](const std::string& name) {
    return Exists(JoinPath(tree, name)) ? std::optional(JoinPath(tree, name)) : std::nullopt;
  };
  const auto slash = path.find('/');
  const auto top = path.substr(0, slash);
  const auto rest = slash == std::string::npos ? std::string() : path.substr(slash + 1);
  ATHANOR_CHECK_OK(MakeDirs(tree));
  if (top == Output::kFiles) {
    const auto inside = Resolved(rest);
    ATHANOR_TRY(const bool found, FetchLeft(inside, tree));
    if (found) return inside.empty() ? tree : JoinPath(tree, inside);
  }
  if (top == "code" && !source_.empty()) {
    const auto code = JoinPath(dir, "source");
    ATHANOR_CHECK_OK(FetchSource(*client_, source_, code));
    const auto place = rest.empty() ? code : JoinPath(code, rest);
    if (Exists(place)) return place;
  }
  const auto inside = Resolved(path);
  ATHANOR_TRY(const bool found, FetchLeft(inside, tree));
  // All of it, or what is in the folder: an archive is fetched as a whole.
  for (const auto& name : archives_) {
    if (IsOrLiesIn(path, name) || IsOrLiesIn(name, path)) {
      ATHANOR_CHECK_OK(FetchArchive(name, tree));
    }
  }
  if (path.empty() && (found || !archives_.empty())) return tree;
  if (!path.empty()) {
    if (const auto place = there(path)) return *place;
    if (const auto place = found ? there(inside) : std::nullopt) return *place;
  }
  return Fail(Missing(path));
}

Result<std::vector<KeptFiles::File>> KeptFiles::List(const std::string& path) const {
  std::vector<File> files;
  const auto take = [&](const std::string& name, uint64_t bytes) {
    if (IsOrLiesIn(name, path)) files.push_back({name, bytes});
  };
  const auto base = "/api/v1/jobs/" + id_;
  if (IsOrLiesIn(path, "code") && !path.empty()) {
    ATHANOR_TRY(const auto source, client_->Get(base + "/source"));
    for (const auto& file : source.value("files", Json::array())) {
      take("code/" + Text(file, "path"), static_cast<uint64_t>(Number(file, "size")));
    }
  }
  ATHANOR_TRY(const auto kept, client_->Get(base + "/outputs"));
  for (const auto& output : kept.value("outputs", Json::array())) {
    const auto name = Text(output, "name");
    if (IsListing(name)) continue;
    const auto top = name.substr(0, name.find('.')) + "/";
    for (const auto& member : output.value("members", Json::array())) {
      take(top + Text(member, "name"), static_cast<uint64_t>(Number(member, "bytes")));
    }
  }
  const bool by_name = IsOrLiesIn(path, Output::kFiles) && !path.empty();
  for (const auto& entry : left_.entries) {
    take(by_name ? std::string(Output::kFiles) + "/" + entry.path : entry.path, entry.size);
  }
  if (files.empty()) return Fail(Missing(path));
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.path < b.path; });
  return files;
}

}  // namespace athanor
