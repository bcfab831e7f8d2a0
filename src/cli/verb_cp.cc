// ath cp JOB:path DEST: brings back what a job left.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/archive.h"
#include "base/files.h"
#include "base/text.h"
#include "base/unnamed_file.h"
#include "cli/client.h"
#include "cli/fetch.h"
#include "cli/refuse.h"
#include "cli/verbs.h"

namespace athanor {
namespace {

Status CopyFile(int in, const std::string& to, mode_t mode) {
  UniqueFd out(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!out) return FailErrno("write " + to, errno);
  char buffer[1 << 16];
  for (;;) {
    ssize_t n = ::read(in, buffer, sizeof buffer);
    if (n < 0) return FailErrno("read", errno);
    if (n == 0) return Ok();
    ATHANOR_CHECK_OK(WriteAll(out.get(), {buffer, static_cast<size_t>(n)}));
  }
}

Status CopyInto(const std::string& from, const std::string& to, uint64_t& files) {
  struct stat info {};
  if (::lstat(from.c_str(), &info) != 0) return FailErrno(from, errno);
  if (S_ISDIR(info.st_mode)) {
    ATHANOR_CHECK_OK(MakeDirs(to, 0755));
    ATHANOR_TRY(auto names, ListDir(from));
    for (const auto& name : names) {
      ATHANOR_CHECK_OK(CopyInto(JoinPath(from, name), JoinPath(to, name), files));
    }
    return Ok();
  }
  if (!S_ISREG(info.st_mode)) return Ok();
  UniqueFd in(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!in) return FailErrno(from, errno);
  ++files;
  return CopyFile(in.get(), to, info.st_mode & 0777);
}

// Lays an output's archive out in `dir`, through the one extraction path.
Status FetchArchive(Client& client, const std::string& job, const std::string& output,
                    const std::string& dir) {
  ATHANOR_TRY(auto file, UnnamedFile(dir));
  HttpCall call;
  call.target = "/api/v1/jobs/" + UrlEncode(job) + "/outputs/" + output;
  call.body_to_fd = file.get();
  ATHANOR_TRY([[maybe_unused]] auto reply, client.Do(std::move(call)));
  ::lseek(file.get(), 0, SEEK_SET);
  auto tree = JoinPath(dir, "tree");
  ATHANOR_CHECK_OK(MakeDirs(tree));
  ATHANOR_TRY(auto tree_fd, OpenDir(tree));
  return ExtractTar(file.get(), tree_fd.get());
}

// The source as it was packaged.
Status FetchCode(Client& client, const std::string& job, const std::string& dir) {
  ATHANOR_TRY(auto record, client.Get("/api/v1/jobs/" + UrlEncode(job)));
  return FetchSource(client, record["spec"]["source"].value("bundle", ""), JoinPath(dir, "tree"));
}

}  // namespace

int CpVerb(const Common& common, const std::string& from, const std::string& to) {
  auto colon = from.find(':');
  if (colon == std::string::npos || colon == 0) {
    Error error{ErrorCode::kInvalid, "no job to copy from", "ath cp JOB:model/ .", "\"" + Printable(from) + "\" has no JOB: before the path", "ATH-C0020", ""};
    return Refuse(error, common.json);
  }
  auto job = from.substr(0, colon);
  auto path = from.substr(colon + 1);
  bool folder = EndsWith(path, "/");
  while (EndsWith(path, "/")) path.pop_back();
  auto slash = path.find('/');
  auto top = path.substr(0, slash);
  auto rest = slash == std::string::npos ? std::string() : path.substr(slash + 1);
  std::string output = top == "model" ? "model.tar.gz" : top == "output" ? "output.tar.gz" : "";
  if (output.empty() && top != "code") {
    Error error{ErrorCode::kInvalid, "there is no \"" + Printable(top) + "\" to copy",
                "ath cp " + ShellQuote(job + ":model/") + " .\nath cp " + ShellQuote(job + ":output/") +
                    " .\nath cp " + ShellQuote(job + ":code/") + " .",
                "a job has model/, output/ and code/ (its source)", "ATH-C0021", ""};
    return Refuse(error, common.json);
  }
  if (!rest.empty()) {
    if (auto status = CheckRelativeName(rest); !status) return Refuse(status.error(), common.json);
  }
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  Scratch scratch("cp");
  auto fetched = output.empty() ? FetchCode(*client, job, scratch.path())
                                : FetchArchive(*client, job, output, scratch.path());
  if (!fetched) return Refuse(fetched.error(), common.json);
  auto source = JoinPath(scratch.path(), "tree") + (rest.empty() ? "" : "/" + rest);
  if (!Exists(source)) {
    Error error{ErrorCode::kNotFound, job + " has no " + Printable(path), "ath cp " + ShellQuote(job + ":" + top + "/") + " .", "", "ATH-C0022", ""};
    return Refuse(error, common.json);
  }
  struct stat info {};
  bool into = ::stat(to.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  std::string target = to;
  struct stat what {};
  ::stat(source.c_str(), &what);
  // Like cp: a folder named with a slash gives its content, without one itself.
  if (into && !(S_ISDIR(what.st_mode) && (folder || rest.empty()))) target = JoinPath(to, BaseName(path));
  uint64_t files = 0;
  if (auto status = CopyInto(source, target, files); !status) return Refuse(status.error(), common.json);
  if (common.json) {
    std::printf("%s\n", DumpJson(Json{{"files", files}, {"to", target}}).c_str());
  } else {
    std::printf("copied %llu file%s to %s\n", static_cast<unsigned long long>(files),
                files == 1 ? "" : "s", target.c_str());
  }
  return 0;
}

}  // namespace athanor
