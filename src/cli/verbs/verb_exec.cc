// ath exec JOB -- CMD: runs a command next to the script, in its namespaces; of several ranks, next
// to one of them.
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"
#include "link/attempt_dir.h"
#include "run/isolate/job_peers.h"
#include "run/supervisor/launch_supervisor.h"
#include "run/supervisor/supervisor_plan.h"
#include "run/supervisor/supervisor_status.h"

namespace athanor {
namespace {

struct Target {
  int64_t pid = 0;         // of the supervisor, outside
  RankPlan rank;           // its environment with the secrets, if they could be had
  std::string no_secrets;  // why not
};

// Secrets are in no file and are not requested again: they are read where the script has them, in
// the environment of its main process. The kernel allows this only for its own user (and root), who
// could read them there anyway.
Status AddSecrets(const std::string& dir, size_t local, const Json& names, RankPlan& rank) {
  ATHANOR_TRY(auto text, ReadFile(JoinPath(dir, attempt_dir::kStarted)));
  ATHANOR_TRY(auto started, ParseStarted(text));
  if (started.ranks.size() <= local || started.ranks[local].outer_pid == 0) {
    return Fail(ErrorCode::kUnavailable, "the script's process is not known");
  }
  ATHANOR_TRY(auto environ,
              ReadFile(fmt::format("/proc/{}/environ", started.ranks[local].outer_pid)));
  const auto variables = Split(environ, '\0');
  for (const auto& name : names) {
    const auto wanted = name.get<std::string>() + "=";
    const auto found = std::find_if(variables.begin(), variables.end(), [&](const auto& variable) {
      return StartsWith(variable, wanted);
    });
    if (found != variables.end()) rank.env.push_back(*found);
  }
  return Ok();
}

Result<Target> FindTarget(Client& client, const std::string& job, const ExecPlace& place) {
  std::string path = "/api/v1/jobs/" + UrlEncode(job) + "/exec?host=" + UrlEncode(place.host);
  if (!place.rank.empty()) path += "&rank=" + UrlEncode(place.rank);
  ATHANOR_TRY(auto info, client.Get(path));
  const auto first = info.value("dir", "");
  if (!Exists(first)) {
    return Fail(Error{ErrorCode::kConflict, job + " runs on another machine, or is just ending",
                      "ath exec works where the job runs"}
                    .Id("ATH-R0004"));
  }
  const auto host = info.value("host", 0u);
  const auto local = info.value("local_rank", size_t{0});
  const auto dir = host == 0 ? first : first + "." + std::to_string(host);
  auto found = FindSupervisor(JoinPath(dir, attempt_dir::kSupervisorStatus));
  if (!found) {
    return Fail(Error{ErrorCode::kConflict, job + " runs on another machine, or is just ending",
                      "ath exec works where the job runs"}
                    .Id("ATH-R0004"));
  }
  ATHANOR_TRY(auto text, ReadFile(JoinPath(dir, attempt_dir::kSupervisorPlan)));
  ATHANOR_TRY(auto plan, ParsePlan(text));
  Target target{found->status.pid, plan.ranks[std::min(local, plan.ranks.size() - 1)], ""};
  const auto names = info.value("secrets", Json::array());
  if (names.empty()) return target;
  if (auto added = AddSecrets(dir, local, names, target.rank); !added) {
    target.no_secrets = added.error().what;
  }
  return target;
}

Status EnterNamespaces(int64_t pid) {
  // All are opened before any is entered: with the job's mounts comes its own /proc, where
  // `pid` means another process. User first: it gives the right to enter the others.
  std::vector<std::pair<const char*, UniqueFd>> spaces;
  for (const char* name : {"user", "mnt", "uts", "net", "pid"}) {
    auto path = "/proc/" + std::to_string(pid) + "/ns/" + name;
    auto own = std::string("/proc/self/ns/") + name;
    char theirs[64] = {};
    char ours[64] = {};
    if (::readlink(path.c_str(), theirs, sizeof theirs - 1) > 0 &&
        ::readlink(own.c_str(), ours, sizeof ours - 1) > 0 && std::strcmp(theirs, ours) == 0) {
      continue;
    }
    spaces.emplace_back(name, ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!spaces.back().second) return FailErrno("open " + path, errno);
  }
  for (const auto& [name, fd] : spaces) {
    if (::setns(fd.get(), 0) != 0) {
      return FailErrno(std::string("enter the job's ") + name + " namespace", errno);
    }
  }
  return Ok();
}

}  // namespace

int ExecVerb(const Common& common, const std::string& job, const ExecPlace& place,
             const std::vector<std::string>& command) {
  if (command.empty()) {
    return Refuse(
        Error{ErrorCode::kInvalid, "no command to run", "ath exec " + ShellQuote(job) + " -- bash"}
            .Why("there is nothing after --")
            .Id("ATH-C0023"),
        common.json);
  }
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto target = FindTarget(*client, job, place);
  if (!target) return Refuse(target.error(), common.json);
  if (common.json) {
    return Refuse(
        Error{ErrorCode::kInvalid, "ath exec prints what the command prints and cannot print JSON",
              "ath exec " + ShellQuote(job) + " -- " + ShellQuote(command.front())}
            .Id("ATH-C0010"),
        true);
  }
  if (!target->no_secrets.empty()) {
    std::fprintf(stderr, "ath exec: without the job's secrets: %s\n", target->no_secrets.c_str());
  }
  if (auto status = EnterNamespaces(target->pid); !status)
    return Refuse(status.error(), common.json);
  // What runs below has the job's rights, not this user's.
  NameThisProcess(kExecName);
  // A PID namespace is entered by children only.
  pid_t child = ::fork();
  if (child < 0) return Refuse(FailErrno("fork", errno).value(), common.json);
  if (child == 0) {
    if (::chdir(target->rank.cwd.c_str()) != 0) ::_exit(126);
    std::vector<char*> env;
    for (auto& pair : target->rank.env) env.push_back(pair.data());
    std::string term = "TERM=" + std::string(::getenv("TERM") ? ::getenv("TERM") : "dumb");
    env.push_back(term.data());
    env.push_back(nullptr);
    std::vector<char*> argv;
    for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    for (const auto& pair : target->rank.env) {
      if (StartsWith(pair, "PATH=")) ::setenv("PATH", pair.c_str() + 5, 1);
    }
    ::execvpe(argv[0], argv.data(), env.data());
    std::fprintf(stderr, "ath exec: %s: %s\n", argv[0], std::strerror(errno));
    ::_exit(errno == ENOENT ? 127 : 126);
  }
  ::signal(SIGINT, SIG_IGN);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace athanor
