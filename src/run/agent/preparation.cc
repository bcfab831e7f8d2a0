#include "run/agent/preparation.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/exec/process.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "feed/channel.h"
#include "feed/object_channel.h"
#include "job/command.h"
#include "job/host_folder.h"
#include "job/object_uri.h"
#include "link/attempt_dir.h"
#include "link/aws_environment.h"
#include "link/job_dir.h"
#include "link/server_line.h"
#include "link/tb_links.h"
#include "record/objects/blob_store.h"
#include "run/agent/source.h"
#include "run/checkpoint/restore.h"
#include "run/contract/contract.h"
#include "run/environment/environment.h"
#include "run/isolate/links.h"
#include "run/supervisor/supervisor_plan.h"

namespace athanor {
namespace {

// The error's id carries the kind of cause; see Prepare(). A full disk is one whatever
// it stopped.
template <class T>
T As(CauseKind kind, T result) {
  if (!result) {
    const bool full = result.error().code == ErrorCode::kExhausted;
    result.error().id = NameOf(full ? CauseKind::kDiskFull : kind);
  }
  return result;
}

// Whether the script is directed to our own S3: not if it names another one, or brings keys.
bool HasOwnServer(const AttemptPlan& plan, const HostPaths& paths) {
  if (paths.url.empty() || paths.aws_dir.empty()) return false;
  const auto theirs = [](const std::string& name) {
    return StartsWith(name, "AWS_ENDPOINT_URL") || name == "AWS_ACCESS_KEY_ID" ||
           name == "AWS_SECRET_ACCESS_KEY" || name == "AWS_PROFILE" ||
           name == "AWS_WEB_IDENTITY_TOKEN_FILE";
  };
  const auto& spec = plan.spec;
  return std::none_of(spec.env.begin(), spec.env.end(),
                      [&](const auto& pair) { return theirs(pair.first); }) &&
         std::none_of(spec.secrets.begin(), spec.secrets.end(),
                      [&](const auto& secret) { return theirs(secret.name); });
}

// The list of hosts without proxy, ours among them; empty: there is no proxy, or they are.
std::string WithoutProxy(const std::map<std::string, std::string>& env, const std::string& name) {
  const auto value = [&](const char* of) {
    const auto found = env.find(of);
    return found == env.end() ? std::string() : found->second;
  };
  if (value("http_proxy").empty() && value("HTTP_PROXY").empty()) return {};
  const std::string now = value(name.c_str());
  if (now.find("127.0.0.1") != std::string::npos) return {};
  return now + (now.empty() ? "" : ",") + "127.0.0.1,localhost";
}

// By what the names lead to; false for what is not there.
bool LiesIn(const std::string& path, const std::string& folder) {
  std::error_code failed;
  const auto real = std::filesystem::canonical(path, failed).string();
  if (failed) return false;
  const auto real_folder = std::filesystem::canonical(folder, failed).string();
  return !failed && StartsWith(real, real_folder + "/");
}

std::string LogOfRank(const std::string& dir, uint32_t local, LogStream stream) {
  return JoinPath(dir, "logs/rank-" + std::to_string(local) + "." + std::string(NameOf(stream)));
}

// Free now, and not taken again soon: the kernel hands such ports out by chance.
uint16_t FreePort() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return 0;
  }
  return ntohs(address.sin_port);
}

class Preparer {
 public:
  explicit Preparer(const Preparation& p) : p_(p) {
    paths_.outside = JoinPath(p.paths.dir, attempt_dir::kMl);
    paths_.python_path = p.paths.python_path;
    paths_.job_dir = p.paths.job_dir(p.plan.job);
  }

  Result<Prepared> Run() {
    ATHANOR_CHECK_OK(
        As(CauseKind::kSourceFailed, MakeDirs(JoinPath(p_.paths.dir, attempt_dir::kLogs))));
    setup_.reset(::open(JoinPath(p_.paths.dir, "logs/setup").c_str(),
                        O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    out_.isolation = OurIsolation();
    paths_.inside = out_.isolation.mount ? "/opt/ml" : paths_.outside;
    paths_.meeting = WhereRanksMeet();
    // A successor of an agent that died in the middle starts from nothing.
    ATHANOR_CHECK_OK(As(CauseKind::kSourceFailed, RemoveTree(paths_.outside)));
    ATHANOR_CHECK_OK(As(CauseKind::kSourceFailed, LayOutContract(p_.plan, paths_)));
    ATHANOR_CHECK_OK(As(CauseKind::kSourceFailed, LayOutSource()));
    ATHANOR_CHECK_OK(As(CauseKind::kDataFailed, ProvideData()));
    ATHANOR_CHECK_OK(As(CauseKind::kRestoreFailed, RestoreState()));
    ATHANOR_CHECK_OK(As(CauseKind::kRestoreFailed, HoldState()));
    ATHANOR_CHECK_OK(As(CauseKind::kInstallFailed, BuildEnv()));
    for (uint32_t local = 0; local < RanksHere(p_.plan); ++local) {
      const auto spool = p_.ml / kOwnFolder / SpoolName(local);
      ATHANOR_CHECK_OK(
          As(CauseKind::kSourceFailed, p_.shipper.FollowSpool(FirstRank(p_.plan) + local, spool)));
    }
    SayIfRanksShareCpus();
    LimitSetUp();
    ATHANOR_CHECK_OK(As(CauseKind::kLaunchFailed, WritePlan()));
    return std::move(out_);
  }

 private:
  void Say(const std::string& line) {
    if (setup_) (void)WriteAll(setup_.get(), line + "\n").ok();
  }

  bool ManyRanks() const { return HostCount(p_.plan) * RanksHere(p_.plan) > 1; }

  // By name where /etc/hosts can have it.
  Meeting WhereRanksMeet() const {
    Meeting meeting;
    if (HostCount(p_.plan) == 1) {
      meeting.port = FreePort();
      return meeting;
    }
    meeting.port = p_.plan.master_port;
    if (out_.isolation.mount) {
      meeting.address = HostNames(p_.plan).front();
    } else if (!p_.plan.peers.front().address.empty()) {
      meeting.address = p_.plan.peers.front().address;
    }
    if (p_.own_network) meeting.interface = kHostInterface;
    return meeting;
  }

  void SayIfRanksShareCpus() {
    const auto ranks = RanksHere(p_.plan);
    const uint32_t cpu_millis = p_.plan.placement.cpu_millis;
    if (ranks > 1 && uint64_t{ranks} * 1000 > cpu_millis) {
      Say(fmt::format("{} ranks share {} CPU{}: they take turns", ranks, cpu_millis / 1000.0,
                      cpu_millis == 1000 ? "" : "s"));
    }
  }

  // The machine's own names, after those of the hosts.
  Status NameHosts(SupervisorPlan& plan) {
    std::string text;
    const auto names = HostNames(p_.plan);
    for (size_t i = 0; i < names.size(); ++i) {
      const bool known = i < p_.plan.peers.size() && !p_.plan.peers[i].address.empty();
      text += (known ? p_.plan.peers[i].address : "127.0.0.1") + "\t" + names[i] + "\n";
    }
    text += ReadFile("/etc/hosts", 1 << 20).value_or("127.0.0.1\tlocalhost\n");
    const auto file = JoinPath(p_.paths.dir, attempt_dir::kHostNames);
    ATHANOR_CHECK_OK(ReplaceFile(file, text, 0644));
    plan.mounts.push_back({file, "/etc/hosts", true, false, ""});
    return Ok();
  }

  Status LayOutSource() {
    const auto& source = p_.plan.spec.source;
    code_dir_ = paths_.outside + "/code";
    if (source.bundle.empty()) return Ok();
    const SourceFrom from{p_.files, p_.paths.cache_dir, p_.paths.is_server_here()};
    // As root, the source is unpacked once and overlaid: a job with a thousand files starts as fast
    // as one with three.
    if (out_.isolation.mount && !out_.isolation.user && OverlayWorks(p_.paths.cache_dir)) {
      ATHANOR_TRY(code_dir_, CachedSource(from, source.bundle));
      auto upper = paths_.outside + "/code";
      ATHANOR_CHECK_OK(MakeDirs(upper + ".work", 0755));
      mounts_.push_back({upper, paths_.inside + "/code", false, true, code_dir_});
      return Ok();
    }
    return LayOutBundle(from, source.bundle, code_dir_);
  }

  Status ProvideData() {
    for (const auto& channel : p_.plan.spec.data) {
      auto to = paths_.outside + "/input/data/" + channel.name;
      if (channel.mode == "file") {
        ATHANOR_TRY(auto use, FillChannel(channel, to));
        Say("channel " + channel.name + ": copied " + std::to_string(use.files) + " files, " +
            HumanBytes(use.bytes));
      } else if (out_.isolation.mount) {
        ATHANOR_CHECK_OK(MakeDirs(to, 0755));
        mounts_.push_back(
            {channel.from, paths_.inside + "/input/data/" + channel.name, false, true});
      } else if (::symlink(channel.from.c_str(), to.c_str()) != 0) {
        return FailErrno("link " + to, errno);
      }
    }
    return Ok();
  }

  Result<ChannelUse> FillChannel(const ChannelSpec& channel, const std::string& to) {
    if (!IsObjectUri(channel.from)) return CopyChannel(channel.from, to);
    ObjectsClient objects(p_.plan);
    return FetchChannel(objects, channel, to);
  }

  // The newest complete checkpoint of this job; while it has none, that of the job it continues
  // from.
  Status RestoreState() {
    ATHANOR_CHECK_OK(CheckSharedPlace(p_.plan.spec, p_.paths.is_server_here()));
    place_ = PlaceOfCheckpoints(p_.plan, paths_);
    ATHANOR_CHECK_OK(MakeDirs(place_.outside, 0755));
    ATHANOR_CHECK_OK(CheckPlace());
    const bool first = p_.plan.number == 1 && p_.plan.resume_job.empty();
    if (first) return RestoreFromObjects();
    const std::string shared = place_.shared ? place_.outside : "";
    // An earlier agent of this attempt may have been killed while it restored.
    if (!place_.shared) ATHANOR_CHECK_OK(EmptyFolder(place_.outside));
    const auto began = p_.clock.Monotonic();
    // All hosts restore the same one, even if the first has stored another meanwhile: the newest of
    // earlier attempts.
    std::string before;
    if (HostCount(p_.plan) > 1) before = CheckpointId{p_.plan.number, 1}.ToString();
    ATHANOR_TRY(auto restored, RestoreCheckpoint({p_.files, job_dir::kManifests, shared}, "",
                                                 place_.outside, before));
    if (!restored.checkpoint && !p_.plan.resume_job.empty()) {
      ATHANOR_TRY(restored, RestoreCheckpoint({p_.files, job_dir::kEarlierManifests, shared},
                                              p_.plan.resume_from, place_.outside));
    }
    for (const auto& damage : restored.passed_over) {
      Say("checkpoint " + damage.id + " is not whole and was passed over: " + damage.error.what);
    }
    if (!restored.checkpoint) {
      Say("no whole checkpoint: starting from the beginning");
      return RestoreFromObjects();
    }
    const auto& checkpoint = *restored.checkpoint;
    Say("restored checkpoint " + checkpoint.id +
        (checkpoint.step ? ", step " + std::to_string(*checkpoint.step) : std::string()) + ", " +
        HumanBytes(checkpoint.bytes) + " in " + HumanDuration(p_.clock.Monotonic() - began));
    out_.resumed_step = checkpoint.step;
    if (p_.plan.host == 0) p_.shipper.Send(ResumedFrame{checkpoint.id, checkpoint.step});
    return Ok();
  }

  Status HoldState() {
    ATHANOR_TRY(out_.checkpoint_dir, HoldCheckpoints(p_.paths.dir, p_.ml, place_.outside, true));
    return Ok();
  }

  // A script may have put a link there that would lead an agent of a later attempt into the home.
  Status CheckPlace() const {
    if (p_.paths.hide_dir.empty() || !LiesIn(place_.outside, p_.paths.hide_dir)) return Ok();
    if (LiesIn(place_.outside, p_.paths.dir) || LiesIn(place_.outside, paths_.job_dir)) return Ok();
    return Fail(Error{ErrorCode::kDenied,
                      "the checkpoint folder " + place_.outside + " leads into the server's home",
                      "name a folder elsewhere in checkpoints.dir"});
  }

  // What other jobs left where this one puts its checkpoints.
  Status RestoreFromObjects() {
    const auto& uri = p_.plan.spec.checkpoints.uri;
    if (uri.empty()) return Ok();
    ATHANOR_TRY(const auto from, ObjectUri::Parse(uri));
    ObjectsClient objects(p_.plan);
    if (!place_.shared) ATHANOR_CHECK_OK(EmptyFolder(place_.outside));
    ATHANOR_TRY(const auto use, FetchPrefix(objects, from, place_.outside));
    if (use.files > 0) {
      Say("checkpoints of " + uri + ": " + std::to_string(use.files) + " files, " +
          HumanBytes(use.bytes));
    }
    return Ok();
  }

  static Status EmptyFolder(const std::string& dir) {
    ATHANOR_CHECK_OK(RemoveTree(dir));
    return MakeDirs(dir, 0755);
  }

  Status BuildEnv() {
    EnvironmentOptions options;
    options.source_dir = code_dir_;
    options.cache_dir = p_.paths.cache_dir;
    options.base = p_.plan.spec.inherited;
    if (const auto path = p_.plan.spec.env.find("PATH"); path != p_.plan.spec.env.end()) {
      options.base["PATH"] = path->second;
    }
    options.cancelled = p_.cancelled;
    options.log = [this](std::string_view bytes) {
      if (setup_) (void)WriteAll(setup_.get(), bytes).ok();
    };
    for (const auto& secret : p_.secrets) {
      if (secret.name == p_.plan.spec.environment.index_secret) options.index_token = secret.value;
    }
    ATHANOR_TRY(auto built, BuildEnvironment(p_.plan.spec, options));
    variables_ = std::move(built.variables);
    environment_dir_ = std::move(built.dir);
    if (built.packages.empty()) return Ok();
    // A package may be named by an address with a password in it.
    (void)ExitGate(p_.patterns).ScrubText(built.packages);
    ATHANOR_TRY(const auto kept, PutText(p_.files, Shelf::kBlobs, built.packages));
    out_.packages = kept.sha256;
    // For the agent that reports the end, if it is not this one.
    return ReplaceFile(JoinPath(p_.paths.dir, attempt_dir::kPackages), kept.sha256);
  }

  void LimitSetUp() {
    CgroupLimits limits;
    // What was reserved for this attempt: after an escalation that is more than was asked for.
    limits.memory_bytes = p_.plan.placement.memory_bytes;
    // CPUs are limited only when they were asked for: a lone job may use what is idle.
    if (p_.plan.spec.resources.cpu_millis != 0 || !p_.plan.spec.resources.type.empty()) {
      limits.cpus = p_.plan.placement.cpu_millis / 1000.0;
    }
    out_.cgroup = PrepareAttemptCgroup(CgroupDriver::Detect(),
                                       HostFolderName(p_.plan.attempt, p_.plan.host), limits);
    if (out_.cgroup.Lacks("memory")) memory_watch_ = limits.memory_bytes;
    for (const auto& why : out_.cgroup.off) p_.log.Log(LogLevel::kInfo, "cgroup", {{"off", why}});
    SummarizeOff(out_.cgroup, limits);
  }

  // `python` is what people type; Debian only has python3.
  void OfferPython(std::map<std::string, std::string>& env) {
    std::string python3;
    for (const auto& dir : Split(env["PATH"], ':')) {
      if (::access((dir + "/python").c_str(), X_OK) == 0) return;
      if (python3.empty() && ::access((dir + "/python3").c_str(), X_OK) == 0) {
        python3 = dir + "/python3";
      }
    }
    if (python3.empty()) return;
    auto link = paths_.outside + "/.athanor/bin/python";
    if (::symlink(python3.c_str(), link.c_str()) == 0)
      env["PATH"] += ":" + paths_.inside + "/.athanor/bin";
  }

  Status GiveSecrets(std::map<std::string, std::string>& env) {
    auto dir = paths_.outside + "/.athanor/secrets";
    ATHANOR_CHECK_OK(MakeDirs(dir));
    env["ATHANOR_SECRETS_DIR"] = paths_.inside + "/.athanor/secrets";
    for (const auto& secret : p_.secrets) {
      for (const auto& spec : p_.plan.spec.secrets) {
        if (spec.name != secret.name) continue;
        if (spec.as == "file") {
          ATHANOR_CHECK_OK(ReplaceFile(dir + "/" + secret.name, secret.value, 0600));
          env[secret.name] = env["ATHANOR_SECRETS_DIR"] + "/" + secret.name;
        } else {
          env[secret.name] = secret.value;
        }
      }
    }
    return Ok();
  }

  // Directs AWS clients in the script to this server, unless the job brings its own account.
  Status GiveAws(std::map<std::string, std::string>& env,
                 std::map<std::string, std::string>& plain) {
    if (!HasOwnServer(p_.plan, p_.paths)) return Ok();
    // On its own machine the server has written them.
    if (!p_.paths.is_server_here()) {
      ATHANOR_CHECK_OK(WriteAwsOverlay(p_.paths.aws_dir, p_.paths.url));
    }
    for (const char* name : kAwsInTheWay) env.erase(name);
    const AwsKey key = KeyOfAttempt(p_.plan.attempt, p_.plan.token, p_.plan.host);
    for (const auto& [name, value] : AwsVariables(p_.paths.url, p_.paths.aws_dir, key)) {
      env[name] = value;
      if (value != key.secret) plain[name] = value;
    }
    // A proxy cannot reach this machine's own address.
    for (const char* name : {"no_proxy", "NO_PROXY"}) {
      const auto with = WithoutProxy(env, name);
      if (!with.empty()) env[name] = plain[name] = with;
    }
    return Ok();
  }

  // The home is covered completely. From its content the script gets, below /opt/ml, its own tree
  // and what the plan mounts there; and these at their own paths, read-only, because other jobs use
  // them, too.
  void ShowOfTheHome(SupervisorPlan& plan) {
    if (p_.paths.hide_dir.empty()) return;
    plan.hide.push_back(p_.paths.hide_dir);
    std::vector<std::pair<std::string, bool>> needed;  // path, and whether it cannot do without
    if (!environment_dir_.empty()) needed.emplace_back(environment_dir_, true);
    if (!p_.paths.python_path.empty()) needed.emplace_back(p_.paths.python_path, true);
    if (HasOwnServer(p_.plan, p_.paths)) {
      // Not the folder itself: it also contains the key of the server's owner.
      needed.emplace_back(p_.paths.aws_dir + "/models", false);
      needed.emplace_back(p_.paths.aws_dir + "/sagemaker.yaml", false);
    }
    for (const auto& [path, required] : needed) {
      if (LiesIn(path, p_.paths.hide_dir)) plan.mounts.push_back({path, path, true, required, ""});
    }
  }

  // The plan carries the secrets, so it stays in memory: the supervisor reads it through
  // a link to our descriptor. From inside a user namespace the kernel forbids that; there
  // it is a 0600 file which is removed as soon as the supervisor has read it.
  Status HandOver(const std::string& text) {
    out_.plan_path = JoinPath(p_.paths.dir, attempt_dir::kLivePlan);
    ::unlink(out_.plan_path.c_str());
    if (out_.isolation.user) return ReplaceFile(out_.plan_path, text, 0600);
    out_.plan.reset(::memfd_create("supervisor-plan", MFD_CLOEXEC));
    if (!out_.plan) return FailErrno("memfd_create", errno);
    ATHANOR_CHECK_OK(WriteAll(out_.plan.get(), text));
    auto target = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(out_.plan.get());
    if (::symlink(target.c_str(), out_.plan_path.c_str()) == 0) return Ok();
    return FailErrno("link " + out_.plan_path, errno);
  }

  // `first`: that of the host's first rank.
  std::vector<std::string> EnvironmentOf(uint32_t local, std::map<std::string, std::string> first) {
    if (local > 0) {
      for (auto& [name, value] : RankVariables(p_.plan, paths_, local))
        first[name] = std::move(value);
    }
    std::vector<std::string> env;
    for (const auto& [name, value] : first) env.push_back(name + "=" + value);
    return env;
  }

  Status WritePlan() {
    SupervisorPlan plan;
    auto env = ContractEnvironment(p_.plan, paths_, 0);
    for (const auto& [name, value] : variables_) env[name] = value;
    OfferPython(env);
    auto plain = env;
    ATHANOR_CHECK_OK(GiveAws(env, plain));
    ATHANOR_CHECK_OK(GiveSecrets(env));
    plain["ATHANOR_SECRETS_DIR"] = env["ATHANOR_SECRETS_DIR"];
    ATHANOR_TRY(auto command, SubstituteCommand(p_.plan.spec, [this](std::string_view name) {
                  return std::optional(paths_.inside + "/input/data/" + std::string(name));
                }));
    if (p_.plan.spec.shell) command = {"/bin/sh", "-c", command.front()};
    for (uint32_t local = 0; local < RanksHere(p_.plan); ++local) {
      RankPlan rank;
      rank.argv = command;
      rank.env = EnvironmentOf(local, env);
      rank.cwd = paths_.inside + "/code";
      rank.stdout_path = LogOfRank(p_.paths.dir, local, LogStream::kStdout);
      rank.stderr_path = LogOfRank(p_.paths.dir, local, LogStream::kStderr);
      plan.ranks.push_back(std::move(rank));
    }
    if (out_.isolation.uts) plan.hostname = HostName(p_.plan);
    if (out_.isolation.mount) {
      plan.mounts.push_back({paths_.outside, "/opt/ml", false, true});
      if (place_.bound) {
        ATHANOR_CHECK_OK(MakeDirs(place_.inside.rfind("/opt/ml/", 0) == 0
                                      ? paths_.outside + place_.inside.substr(7)
                                      : place_.inside,
                                  0755));
        plan.mounts.push_back({place_.outside, place_.inside, false, true});
      }
      plan.mounts.insert(plan.mounts.end(), mounts_.begin(), mounts_.end());
      if (ManyRanks()) ATHANOR_CHECK_OK(NameHosts(plan));
      ShowOfTheHome(plan);
    }
    plan.cgroups = out_.cgroup.joins;
    plan.memory_watch_bytes = static_cast<int64_t>(memory_watch_);
    plan.log_cap_bytes = static_cast<int64_t>(p_.plan.spec.limits.log_bytes);
    plan.stop_grace_ms = std::max<int64_t>(p_.plan.spec.limits.stop_grace.count(), 1);
    plan.peer_grace_ms = std::min(plan.peer_grace_ms, plan.stop_grace_ms);
    plan.status_path = JoinPath(p_.paths.dir, attempt_dir::kSupervisorStatus);
    plan.started_path = JoinPath(p_.paths.dir, attempt_dir::kStarted);
    plan.exit_path = JoinPath(p_.paths.dir, attempt_dir::kExit);
    ATHANOR_TRY(auto text, SerializePlan(plan));
    ATHANOR_CHECK_OK(HandOver(text));
    for (uint32_t local = 0; local < plan.ranks.size(); ++local) {
      plan.ranks[local].env = EnvironmentOf(local, plain);
    }
    ATHANOR_TRY(auto kept, SerializePlan(plan));
    return ReplaceFile(JoinPath(p_.paths.dir, attempt_dir::kSupervisorPlan), kept);
  }

  const Preparation& p_;
  ContractPaths paths_;
  CheckpointPlace place_;
  uint64_t memory_watch_ = 0;  // a memory limit that no cgroup holds
  std::string code_dir_;       // the path of the source outside
  Prepared out_;
  UniqueFd setup_;
  std::vector<MountPlan> mounts_;
  std::map<std::string, std::string> variables_;
  std::string environment_dir_;
};

Result<std::string> FetchOne(const SecretSpec& spec) {
  if (spec.source == "env") {
    const char* value = ::getenv(spec.locator.c_str());
    if (!value) return Fail(ErrorCode::kNotFound, "variable " + spec.locator + " is not set");
    return std::string(value);
  }
  if (spec.source == "file") {
    ATHANOR_TRY(auto text, ReadFile(spec.locator, 64 << 10));
    return std::string(Trim(text));
  }
  CommandOptions options;
  options.timeout = std::chrono::seconds(30);
  options.separate_stderr = true;
  ATHANOR_TRY(auto result, RunCommand({"/bin/sh", "-c", spec.locator}, options));
  if (!result.ok()) {
    return Fail(ErrorCode::kNotFound, "its command ended with status " +
                                          std::to_string(result.exit_code) + ": " +
                                          Printable(Trim(result.error_output)));
  }
  return std::string(Trim(result.output));
}

Result<Json> StoreSecrets(const AttemptPlan& plan, Logger& log) {
  ATHANOR_TRY(const auto line, ServerLine::Of(plan));
  auto client = line.Client();
  HttpCall call;
  call.target = "/agent/v1/secrets";
  line.Sign(call);
  call.idempotent = true;
  ATHANOR_TRY(auto reply, AskPatiently(line, client, call, &log));
  if (!reply.ok()) {
    return Fail(ErrorCode::kUnavailable, "the server refused: " + std::to_string(reply.status));
  }
  return ParseJson(reply.body);
}

}  // namespace

bool MayTakeLong(const AttemptPlan& plan) {
  const auto& asked = plan.spec.environment;
  const bool host = asked.base.empty() || asked.base == "host";
  const bool installs = !host || !asked.requirements.empty() || !asked.conda.empty();
  const bool restores =
      plan.number > 1 || !plan.resume_job.empty() || !plan.spec.checkpoints.uri.empty();
  const auto& data = plan.spec.data;
  return installs || restores || std::any_of(data.begin(), data.end(), [](const ChannelSpec& one) {
           return one.mode == "file";
         });
}

Result<Prepared> Prepare(const Preparation& preparation) { return Preparer(preparation).Run(); }

Result<std::vector<SecretValue>> FetchSecrets(const AttemptPlan& plan, Logger& log) {
  std::vector<SecretValue> values;
  auto specs = plan.spec.secrets;
  const auto& index = plan.spec.environment.index_secret;
  if (!index.empty() &&
      std::none_of(specs.begin(), specs.end(), [&](const auto& s) { return s.name == index; })) {
    specs.push_back({index, "store", "", "none", false});
  }
  std::optional<Json> store;
  for (const auto& spec : specs) {
    Result<std::string> value = Fail(ErrorCode::kNotFound, "not in the built-in store");
    if (spec.source == "store") {
      if (!store) {
        ATHANOR_TRY(store, StoreSecrets(plan, log));
      }
      if (store->contains(spec.name)) value = (*store)[spec.name].get<std::string>();
    } else {
      value = FetchOne(spec);
    }
    if (value) {
      values.push_back({spec.name, *value});
    } else if (!spec.optional) {
      Error error = value.error();
      error.why = error.what;
      error.what = "secret \"" + spec.name + "\" could not be had";
      error.hint = spec.source == "store" ? "ath secret set " + ShellQuote(spec.name)
                                          : "check `secrets` in the job file";
      return Fail(std::move(error));
    }
  }
  return values;
}

std::vector<SecretValue> OwnTokens(const AttemptPlan& plan, const HostPaths& paths) {
  std::vector<SecretValue> tokens;
  const auto add = [&tokens](const char* name, const std::string& value) {
    if (value.size() >= SecretPatterns::kMinValue) tokens.push_back({name, value});
  };
  const auto run = plan.spec.env.find("MLFLOW_TRACKING_TOKEN");
  if (run != plan.spec.env.end()) add("MLFLOW_TRACKING_TOKEN", run->second);
  if (HasOwnServer(plan, paths)) {
    add("AWS_SECRET_ACCESS_KEY", KeyOfAttempt(plan.attempt, plan.token, plan.host).secret);
  }
  add("ATHANOR_AGENT_TOKEN", plan.token);
  return tokens;
}

Cause CauseOf(const std::string& kind, const Error& error) {
  std::string text = error.what;
  if (!error.why.empty()) text += ": " + error.why;
  return {kind.empty() ? std::string(NameOf(CauseKind::kLaunchFailed)) : kind, text, error.hint,
          error.where};
}

Result<HeldFolder> HoldCheckpoints(const std::string& dir, const HeldFolder& ml,
                                   const std::string& place, bool first) {
  const auto path = std::filesystem::path(place).lexically_normal();
  const auto tree = std::filesystem::path(ml.path()).lexically_normal();
  const auto below = path.lexically_relative(tree).string();
  if (!below.empty() && !StartsWith(below, "..")) {
    return ml / (EndsWith(below, "/") ? below.substr(0, below.size() - 1) : below);
  }
  const auto note = JoinPath(dir, attempt_dir::kCheckpointPath);
  if (!first) {
    const auto noted = ReadFile(note, 1 << 16);
    return HeldFolder::At(noted ? *noted : path.string());
  }
  std::error_code failed;
  const auto real = std::filesystem::canonical(path, failed).string();
  if (failed) return Fail(ErrorCode::kUnavailable, place + ": " + failed.message());
  if (real != place) ATHANOR_CHECK_OK(ReplaceFile(note, real));
  return HeldFolder::At(real);
}

void FollowScript(Shipper& shipper, const HostPaths& paths, const HeldFolder& ml,
                  const AttemptPlan& plan, JobFiles& files) {
  const auto& dir = paths.dir;
  for (uint32_t local = 0; local < RanksHere(plan); ++local) {
    for (const auto stream : {LogStream::kStdout, LogStream::kStderr}) {
      shipper.Follow(FirstRank(plan) + local, stream, LogOfRank(dir, local, stream));
    }
  }
  EventFiles::Options events;
  events.root = ml;
  events.index = JoinPath(dir, attempt_dir::kEventIndex);
  events.marker = JoinPath(dir, attempt_dir::kLaunching);
  events.files = &files;
  events.folder = job_dir::kEvents;
  // Each host numbers and names its files by itself.
  if (plan.host > 0) events.folder = JoinPath(events.folder, HostName(plan));
  if (paths.is_server_here()) {
    events.local_dir = JoinPath(paths.job_dir(plan.job), events.folder);
    events.first_kept = [&shipper, &plan, home = paths.home] {
      if (auto link = LinkEvents(home, plan.job, plan.spec); !link) {
        shipper.Send(
            NoteFrame{{"event_files", "not shown below tb/: " + link.error().what, "", ""}});
      }
    };
  }
  events.scratch_dir = dir;
  events.attempt = plan.number;
  events.problem = [&shipper](const std::string& text) {
    shipper.Send(NoteFrame{{"event_files", text, "", ""}});
  };
  shipper.FollowEvents(std::move(events));
}

}  // namespace athanor
