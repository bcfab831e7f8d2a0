// ath replay JOB: runs a captured step again, here, with the job's source, environment,
// parameters, weights, inputs and random state.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/fetch.h"
#include "cli/replay_command.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"
#include "door/sagemaker/contract.h"
#include "feed/channel.h"
#include "job/codec.h"
#include "link/plan.h"
#include "run/contract/contract.h"
#include "run/environment/environment.h"

namespace athanor {
namespace {

struct Picked {
  Json capture;
  std::optional<int64_t> step;  // when it is not the capture's last
};

std::string StepsOf(const Json& captures) {
  std::vector<std::string> all;
  for (const auto& one : captures) {
    for (const auto& step : one["steps"]) all.push_back(std::to_string(step.get<int64_t>()));
  }
  return Join(all, ", ");
}

std::string RanksOf(const Json& captures) {
  std::set<int64_t> ranks;
  for (const auto& one : captures) ranks.insert(Number(one, "rank"));
  std::vector<std::string> all;
  for (const auto rank : ranks) all.push_back(std::to_string(rank));
  return Join(all, ", ");
}

// The newest capture, or the newest with `step`; of one rank if `rank` is not negative.
Result<Picked> Pick(const Json& all, const std::string& job, const std::string& step,
                    int64_t rank) {
  Json captures = Json::array();
  for (const auto& one : all) {
    if (rank < 0 || Number(one, "rank") == rank) captures.push_back(one);
  }
  auto error = Error{ErrorCode::kNotFound, job + " kept no captured step"}.Id("ATH-R0015");
  if (captures.empty() && !all.empty()) {
    error.what = job + " kept no captured step of rank " + std::to_string(rank);
    error.why = "ranks that captured: " + RanksOf(all);
    error.hint =
        "ath replay " + ShellQuote(job) + " --rank " + std::to_string(Number(all.front(), "rank"));
    return Fail(std::move(error));
  }
  if (captures.empty()) {
    error.why =
        "its script did not call athanor.capture(), or neither an exception, a rule nor a "
        "hang ended it";
    error.hint =
        "batch = athanor.capture(step, batch=batch, model=model)    first thing in each "
        "step, then: ath retry " +
        ShellQuote(job);
    return Fail(std::move(error));
  }
  if (step.empty()) return Picked{captures.front(), std::nullopt};
  for (const auto& one : captures) {
    for (const auto& each : one["steps"]) {
      if (std::to_string(each.get<int64_t>()) == step) return Picked{one, each.get<int64_t>()};
    }
  }
  error.what = job + " did not capture step " + Printable(step) +
               (rank < 0 ? "" : " on rank " + std::to_string(rank));
  error.why = "captured: " + StepsOf(captures);
  error.hint = "ath replay " + ShellQuote(job) + " --step " +
               std::to_string(Number(captures.front(), "step"));
  if (rank >= 0) error.hint += " --rank " + std::to_string(rank);
  return Fail(std::move(error));
}

// What of the job is laid out here, and how its script is started.
class Stage {
 public:
  Stage(const Common& common, Client& client, JobRecord record, std::string dir)
      : common_(common), client_(client), record_(std::move(record)), dir_(std::move(dir)) {
    paths_.outside = paths_.inside = JoinPath(dir_, "ml");
    plan_.job = record_.id;
    plan_.spec = record_.spec;
    // A step is run again by itself, whichever rank it was of.
    plan_.spec.resources.nodes = plan_.spec.resources.processes = 1;
    paths_.job_dir = dir_;
    paths_.python_path = PythonPackageDir();
    plan_.instance_type = "local";
    FillContract(record_.spec, plan_);
    // The shell it was submitted in may have been on another machine.
    if (client_.remote()) InheritEnvironment(plan_.spec);
  }

  Status LayOut(const Json& capture) {
    ATHANOR_CHECK_OK(LayOutContract(plan_, paths_));
    if (!plan_.spec.source.bundle.empty()) {
      ATHANOR_CHECK_OK(FetchSource(client_, plan_.spec.source.bundle, code()));
    }
    capture_ = JoinPath(JoinPath(dir_, "capture"), Text(capture, "name"));
    rank_ = static_cast<uint32_t>(std::clamp<int64_t>(Number(capture, "rank"), 0, UINT32_MAX));
    ATHANOR_CHECK_OK(CheckRelativeName(Text(capture, "name")));
    ATHANOR_CHECK_OK(MakeDirs(capture_));
    for (const auto& file : capture["files"]) {
      const auto name = Text(file, "name");
      ATHANOR_CHECK_OK(CheckRelativeName(name));
      ATHANOR_CHECK_OK(FetchFile(client_,
                                 "/api/v1/jobs/" + record_.id.ToString() + "/capture/" +
                                     UrlEncode(Text(capture, "name")) + "/" + UrlEncode(name),
                                 JoinPath(capture_, name)));
    }
    return ProvideData();
  }

  Result<std::vector<std::string>> Command(const Picked& picked, bool debug) const {
    return ReplayCommand(plan_.spec, {capture_, picked.step, debug}, [this](std::string_view name) {
      return std::optional(paths_.inside + "/input/data/" + std::string(name));
    });
  }

  Result<std::map<std::string, std::string>> Environment() {
    EnvironmentOptions options;
    options.source_dir = code();
    options.cache_dir = common_.home.cache();
    options.base = plan_.spec.inherited;
    options.log = [](std::string_view bytes) {
      std::fwrite(bytes.data(), 1, bytes.size(), stderr);
    };
    ATHANOR_TRY(auto built, BuildEnvironment(plan_.spec, options));
    auto env = ContractEnvironment(plan_, paths_, rank_);
    for (const auto& [name, value] : built.variables) env[name] = value;
    // A replay reports nothing and captures nothing.
    for (const char* name : {"ATHANOR_SPOOL", "ATHANOR_NOTICE_FILE", "ATHANOR_STACKS",
                             "ATHANOR_CAPTURE_DIR", "ATHANOR_CHECKPOINT_EVERY_MS"}) {
      env.erase(name);
    }
    // It meets no other rank.
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
                             "GROUP_WORLD_SIZE", "NNODES", "MASTER_ADDR", "MASTER_PORT"}) {
      env.erase(name);
    }
    if (!plan_.spec.resources.no_gpus && plan_.spec.resources.type.empty()) {
      env.erase("CUDA_VISIBLE_DEVICES");
    }
    for (const char* name : {"TERM", "DISPLAY", "CUDA_VISIBLE_DEVICES", "PYTHONBREAKPOINT"}) {
      if (const char* value = std::getenv(name)) env[name] = value;
    }
    // Values of secrets never leave the server; the shell may have them.
    for (const auto& secret : plan_.spec.secrets) {
      if (const char* value = std::getenv(secret.name.c_str())) {
        env[secret.name] = value;
      } else {
        Note("secret " + secret.name + " is not given to a replay: export it to have it");
      }
    }
    return env;
  }

  std::string code() const { return paths_.outside + "/code"; }
  const std::string& capture() const { return capture_; }

 private:
  void Note(const std::string& text) const {
    if (!common_.quiet) std::fprintf(stderr, "  note    %s\n", text.c_str());
  }

  Status ProvideData() {
    for (const auto& channel : plan_.spec.data) {
      const auto to = paths_.outside + "/input/data/" + channel.name;
      if (!Exists(channel.from)) {
        Note("data channel " + channel.name + " is empty: " + Printable(channel.from) +
             " is not on this machine");
        ATHANOR_CHECK_OK(MakeDirs(to, 0755));
      } else if (channel.mode == "file") {
        ATHANOR_CHECK_OK(CopyChannel(channel.from, to));
      } else if (::symlink(channel.from.c_str(), to.c_str()) != 0) {
        return FailErrno("link " + to, errno);
      }
    }
    return Ok();
  }

  const Common& common_;
  Client& client_;
  JobRecord record_;
  std::string dir_;
  std::string capture_;
  uint32_t rank_ = 0;  // that captured it
  ContractPaths paths_;
  AttemptPlan plan_;
};

// In the foreground, on our terminal; its exit status, 128+n for a signal.
int RunHere(std::vector<std::string> argv, const std::map<std::string, std::string>& environment,
            const std::string& cwd, bool stdout_to_stderr) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return 126;
  if (child == 0) {
    if (stdout_to_stderr) ::dup2(STDERR_FILENO, STDOUT_FILENO);
    if (::chdir(cwd.c_str()) != 0) ::_exit(126);
    std::vector<std::string> pairs;
    for (const auto& [name, value] : environment) pairs.push_back(name + "=" + value);
    std::vector<char*> env;
    for (auto& pair : pairs) env.push_back(pair.data());
    env.push_back(nullptr);
    std::vector<char*> words;
    for (auto& word : argv) words.push_back(word.data());
    words.push_back(nullptr);
    if (auto path = environment.find("PATH"); path != environment.end()) {
      ::setenv("PATH", path->second.c_str(), 1);
    }
    ::execvpe(words[0], words.data(), env.data());
    // `python` is what people type; Debian only has python3.
    if (errno == ENOENT && argv[0] == "python") {
      argv[0] = "python3";
      words[0] = argv[0].data();
      ::execvpe(words[0], words.data(), env.data());
    }
    std::fprintf(stderr, "ath replay: %s: %s\n", words[0], std::strerror(errno));
    ::_exit(errno == ENOENT ? 127 : 126);
  }
  // Ctrl-C is the debugger's; we stay to clean up.
  ::signal(SIGINT, SIG_IGN);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// The newest whole checkpoint that is not beyond the captured step; null when there is none.
Json CheckpointBefore(Client& client, const std::string& job, int64_t step) {
  auto body = client.Get("/api/v1/jobs/" + UrlEncode(job) + "/checkpoints");
  if (!body) return nullptr;
  for (const auto& one : (*body)["checkpoints"]) {
    if (!one.contains("step") || Number(one, "step") <= step) return one;
  }
  return nullptr;
}

void PrintHead(const JobRecord& record, const Json& capture, const Json& checkpoint,
               const std::string& dir) {
  const auto why =
      Text(capture, "error").empty() ? Text(capture, "reason") : Text(capture, "error");
  std::fprintf(stderr, "  job         %s (%s)\n", record.spec.name.c_str(),
               record.id.ToString().substr(20).c_str());
  std::fprintf(stderr, "  captured    steps %s, rank %lld: %s\n",
               StepsOf(Json::array({capture})).c_str(),
               static_cast<long long>(Number(capture, "rank")), Printable(why).c_str());
  if (!checkpoint.is_null()) {
    const auto step = checkpoint.contains("step")
                          ? ", step " + std::to_string(Number(checkpoint, "step"))
                          : std::string();
    std::fprintf(stderr, "  checkpoint  %s%s: ath resume %s --from %s\n",
                 Text(checkpoint, "id").c_str(), step.c_str(), record.spec.name.c_str(),
                 Text(checkpoint, "id").c_str());
  }
  std::fprintf(stderr, "  folder      %s\n", dir.c_str());
}

// `asked`, made and empty.
Result<std::string> OwnFolder(std::string asked) {
  ATHANOR_CHECK_OK(MakeDirs(asked));
  ATHANOR_TRY(auto names, ListDir(asked));
  if (!names.empty()) {
    return Fail(
        Error{ErrorCode::kConflict, asked + " is not empty", "ath replay JOB --dir A-NEW-FOLDER"}
            .Why("it holds " + Printable(names.front()))
            .Id("ATH-C0041"));
  }
  char* real = ::realpath(asked.c_str(), nullptr);
  if (real) asked = real;
  std::free(real);
  return asked;
}

}  // namespace

int ReplayVerb(const Common& common, const ReplayOptions& options) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto body = client->Get("/api/v1/jobs/" + UrlEncode(options.job));
  if (!body) return Refuse(body.error(), common.json);
  auto record = RecordFromJson(*body);
  if (!record) return Refuse(record.error(), common.json);
  const auto id = record->id.ToString();
  auto kept = client->Get("/api/v1/jobs/" + id + "/capture");
  if (!kept) return Refuse(kept.error(), common.json);
  auto picked = Pick((*kept)["captures"], record->spec.name, options.step, options.rank);
  if (!picked) {
    if (!IsTerminal(record->state)) {
      picked.error().why = "it is " + std::string(NameOf(record->state)) +
                           "; what it captured is kept when its attempt ends";
    }
    return Refuse(picked.error(), common.json);
  }
  std::optional<Scratch> scratch;
  std::string dir;
  if (options.dir.empty()) {
    scratch.emplace("replay");
    dir = scratch->path();
    if (dir.empty())
      return Refuse(FailErrno("make a temporary folder", errno).value(), common.json);
  } else {
    auto made = OwnFolder(options.dir);
    if (!made) return Refuse(made.error(), common.json);
    dir = *made;
  }
  Stage stage(common, *client, *record, dir);
  if (auto laid = stage.LayOut(picked->capture); !laid) return Refuse(laid.error(), common.json);
  const int64_t step = picked->step.value_or(Number(picked->capture, "step"));
  const Json checkpoint = CheckpointBefore(*client, id, step);
  if (!common.quiet && !common.json) PrintHead(*record, picked->capture, checkpoint, dir);
  auto argv = stage.Command(*picked, options.debug);
  if (!argv) {
    // The folder must outlast us for the hint to be of use.
    if (options.dir.empty()) {
      argv.error().hint = "ath replay " + ShellQuote(options.job) +
                          " --dir FOLDER, then: cd FOLDER/ml/code && "
                          "python3 -m athanor.replay ../../capture SCRIPT ARGUMENTS";
    }
    return Refuse(argv.error(), common.json);
  }
  auto environment = stage.Environment();
  if (!environment) return Refuse(environment.error(), common.json);
  const int status = RunHere(*argv, *environment, stage.code(), common.json);
  if (common.json) {
    Json out = {{"job", id},
                {"step", step},
                {"capture", picked->capture},
                {"argv", *argv},
                {"status", status}};
    if (!options.dir.empty()) out["dir"] = dir;
    if (!checkpoint.is_null()) out["checkpoint"] = checkpoint;
    std::printf("%s\n", DumpJson(out).c_str());
  }
  return status;
}

}  // namespace athanor
