// ath cp JOB:path DEST: brings back what a job left. Without DEST: lists it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/io/archive.h"
#include "base/io/files.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/fetch.h"
#include "cli/kept_files.h"
#include "cli/screen/output.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"

namespace athanor {
namespace {

Status CopyFile(int in, const std::string& to, mode_t mode) {
  UniqueFd out(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!out) return FailErrno("write " + Printable(to), errno);
  char buffer[1 << 16];
  for (;;) {
    ssize_t n = ::read(in, buffer, sizeof buffer);
    if (n < 0) return FailErrno("read", errno);
    if (n == 0) return Ok();
    ATHANOR_CHECK_OK(WriteAll(out.get(), {buffer, static_cast<size_t>(n)}));
  }
}

// What was fetched, into the place that was asked for.
class Copy {
 public:
  // `name`: below the place, "" for what was asked for itself.
  Status Into(const std::string& from, const std::string& to, const std::string& name = "") {
    struct stat info {};
    // If a link is requested by name, its target is meant.
    const int looked = name.empty() ? ::stat(from.c_str(), &info) : ::lstat(from.c_str(), &info);
    if (looked != 0) return FailErrno(Printable(from), errno);
    if (S_ISDIR(info.st_mode)) {
      ATHANOR_CHECK_OK(MakeDirs(to, 0755));
      ATHANOR_TRY(auto names, ListDir(from));
      for (const auto& entry : names) {
        ATHANOR_CHECK_OK(Into(JoinPath(from, entry), JoinPath(to, entry),
                              name.empty() ? entry : name + "/" + entry));
      }
      return Ok();
    }
    if (S_ISLNK(info.st_mode)) return Link(from, to, name);
    if (!S_ISREG(info.st_mode)) return Ok();
    UniqueFd in(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
    if (!in) return FailErrno(Printable(from), errno);
    ++files_;
    return CopyFile(in.get(), to, info.st_mode & 0777);
  }
  uint64_t files() const { return files_; }

 private:
  // One that would lead out of the place is not made: what is copied next could follow it.
  Status Link(const std::string& from, const std::string& to, const std::string& name) {
    char target[PATH_MAX];
    const ssize_t length = ::readlink(from.c_str(), target, sizeof target - 1);
    if (length <= 0) return FailErrno("read the link " + Printable(from), errno);
    target[length] = '\0';
    if (!LinkStaysBeneath(name, target)) {
      std::fprintf(stderr, "  left out: %s, a link that leads out of the folder\n",
                   Printable(name).c_str());
      return Ok();
    }
    struct stat before {};
    if (::lstat(to.c_str(), &before) == 0 && !S_ISDIR(before.st_mode)) ::unlink(to.c_str());
    if (::symlink(target, to.c_str()) != 0)
      return FailErrno("make the link " + Printable(to), errno);
    ++files_;
    return Ok();
  }

  uint64_t files_ = 0;
};

int ListFiles(const Common& common, const KeptFiles& job, const std::string& path) {
  const auto files = job.List(path);
  if (!files) return Refuse(files.error(), common.json);
  if (common.json) {
    Json rows = Json::array();
    for (const auto& file : *files) rows.push_back({{"path", file.path}, {"bytes", file.bytes}});
    Json out = {{"files", std::move(rows)}};
    if (!job.left_out().empty()) out["left_out"] = job.left_out();
    std::printf("%s\n", DumpJson(out).c_str());
    return 0;
  }
  for (const auto& file : *files) {
    std::printf("%10s  %s\n", HumanBytes(file.bytes).c_str(), Printable(file.path).c_str());
  }
  for (const auto& line :
       path.empty() ? LeftOutLines(job.left_out()) : std::vector<std::string>()) {
    std::fprintf(stderr, "  left out  %s\n", line.c_str());
  }
  for (const auto& file : *files) {
    if (Printable(file.path) != file.path) continue;
    PrintHint("ath cp " + ShellQuote(job.name() + ":" + file.path) + " .", common.quiet);
    break;
  }
  return 0;
}

}  // namespace

int CpVerb(const Common& common, const std::string& from, const std::string& to) {
  auto colon = from.find(':');
  if (colon == std::string::npos || colon == 0) {
    return Refuse(Error{ErrorCode::kInvalid, "no job to copy from", "ath cp JOB:model/ ."}
                      .Why("\"" + Printable(from) + "\" has no JOB: before the path")
                      .Id("ATH-C0020"),
                  common.json);
  }
  auto path = from.substr(colon + 1);
  while (StartsWith(path, "./")) path.erase(0, 2);
  bool folder = path.empty() || EndsWith(path, "/");
  while (EndsWith(path, "/")) path.pop_back();
  if (!path.empty()) {
    if (auto status = CheckRelativeName(path); !status) return Refuse(status.error(), common.json);
  }
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto job = KeptFiles::Open(*client, from.substr(0, colon));
  if (!job) return Refuse(job.error(), common.json);
  if (to.empty()) return ListFiles(common, *job, path);
  Scratch scratch("cp");
  const auto fetched = job->Fetch(path, scratch.path());
  if (!fetched) return Refuse(fetched.error(), common.json);
  struct stat info {};
  bool into = ::stat(to.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  std::string target = to;
  struct stat what {};
  ::stat(fetched->c_str(), &what);
  // Like cp: a folder named with a slash gives its content, without one itself; those of the
  // contract always give their content.
  const bool whole =
      folder || path == "model" || path == "output" || path == "code" || path == "files";
  if (into && !(S_ISDIR(what.st_mode) && whole)) target = JoinPath(to, BaseName(path));
  Copy copy;
  if (auto status = copy.Into(*fetched, target); !status)
    return Refuse(status.error(), common.json);
  if (common.json) {
    std::printf("%s\n", DumpJson(Json{{"files", copy.files()}, {"to", target}}).c_str());
  } else {
    std::printf("copied %s to %s\n", Counted(copy.files(), "file").c_str(),
                Printable(target).c_str());
  }
  return 0;
}

}  // namespace athanor
