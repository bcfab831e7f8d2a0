#include "run/supervisor/supervisor_plan.h"

#include <sys/resource.h>

#include <set>

#include "run/supervisor/kv_record.h"

namespace athanor {
namespace {

constexpr std::string_view kKind = "athanor-plan";
constexpr int kPlanVersion = 1;
constexpr size_t kMaxRanks = 1024;

constexpr struct {
  std::string_view name;
  int number;
} kRlimits[] = {
    {"as", RLIMIT_AS},         {"core", RLIMIT_CORE},   {"cpu", RLIMIT_CPU},
    {"data", RLIMIT_DATA},     {"fsize", RLIMIT_FSIZE}, {"memlock", RLIMIT_MEMLOCK},
    {"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC}, {"stack", RLIMIT_STACK},
};

tl::unexpected<Error> Bad(std::string what) { return Fail(ErrorCode::kInvalid, std::move(what)); }

Status CheckPath(std::string_view path, std::string_view field) {
  if (path.empty() || path[0] != '/') return Bad(std::string(field) + " is not an absolute path");
  if (path.size() >= 4096) return Bad(std::string(field) + " is longer than 4,095 bytes");
  std::string_view rest = path;
  while (!rest.empty()) {
    const size_t slash = rest.find('/');
    if (rest.substr(0, slash) == "..") return Bad(std::string(field) + " contains '..'");
    if (slash == rest.npos) break;
    rest.remove_prefix(slash + 1);
  }
  return Ok();
}

Status CheckRank(const RankPlan& rank) {
  if (rank.argv.empty() || rank.argv[0].empty()) return Bad("a rank has no command");
  for (const auto& variable : rank.env) {
    const size_t equals = variable.find('=');
    if (equals == 0 || equals == variable.npos) return Bad("an env entry is not NAME=value");
  }
  ATHANOR_CHECK_OK(CheckPath(rank.cwd, "cwd"));
  ATHANOR_CHECK_OK(CheckPath(rank.stdout_path, "stdout"));
  return CheckPath(rank.stderr_path, "stderr");
}

Status CheckHostname(std::string_view name) {
  if (name.size() > 64) return Bad("hostname is longer than 64 bytes");
  for (char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '-' && c != '.')
      return Bad("hostname has a character outside [A-Za-z0-9.-]");
  }
  return Ok();
}

void WriteRank(KvWriter& writer, const RankPlan& rank, size_t index) {
  writer.Number("rank", static_cast<int64_t>(index));
  for (const auto& word : rank.argv) writer.Text("argv", word);
  for (const auto& variable : rank.env) writer.Text("env", variable);
  writer.Text("cwd", rank.cwd);
  writer.Text("stdout", rank.stdout_path);
  writer.Text("stderr", rank.stderr_path);
}

// Applies pairs to a plan. Lists are groups of keys opened by their first one
// ("mount", "cgroup", "rlimit", "rank"), so an inner key finds its last group.
class PlanReader {
 public:
  Status Apply(const KvEntry& e) {
    if (e.key == "rank") return OpenRank(e);
    if (!plan_.ranks.empty()) return ApplyToRank(e);
    if (e.key == "hide") return plan_.hide.emplace_back(e.value), Ok();
    if (e.key == "mount")
      return plan_.mounts.push_back({std::string(e.value), "", false, true, ""}), Ok();
    if (e.key.substr(0, 6) == "mount.") return ApplyToMount(e);
    if (e.key == "cgroup") return plan_.cgroups.push_back({std::string(e.value), 2, {}}), Ok();
    if (e.key.substr(0, 7) == "cgroup.") return ApplyToCgroup(e);
    if (e.key == "rlimit") return plan_.rlimits.push_back({std::string(e.value), 0, 0}), Ok();
    if (e.key.substr(0, 7) == "rlimit.") return ApplyToRlimit(e);
    if (!seen_.insert(e.key).second) return KvFail(e, "given twice");
    return ApplyScalar(e);
  }

  SupervisorPlan plan_ = [] {
    SupervisorPlan empty;
    empty.rlimits.clear();
    return empty;
  }();

 private:
  Status OpenRank(const KvEntry& e) {
    ATHANOR_TRY(const int64_t index, KvNumber(e));
    if (index != static_cast<int64_t>(plan_.ranks.size())) return KvFail(e, "ranks out of order");
    if (plan_.ranks.size() >= kMaxRanks) return KvFail(e, "more than 1,024 ranks");
    plan_.ranks.emplace_back();
    return Ok();
  }

  Status ApplyToRank(const KvEntry& e) {
    RankPlan& rank = plan_.ranks.back();
    if (e.key == "argv") return rank.argv.emplace_back(e.value), Ok();
    if (e.key == "env") return rank.env.emplace_back(e.value), Ok();
    std::string* field = e.key == "cwd"      ? &rank.cwd
                         : e.key == "stdout" ? &rank.stdout_path
                         : e.key == "stderr" ? &rank.stderr_path
                                             : nullptr;
    if (field == nullptr) return KvFail(e, "unknown key");
    if (!field->empty()) return KvFail(e, "given twice");
    *field = e.value;
    return Ok();
  }

  Status ApplyToMount(const KvEntry& e) {
    if (plan_.mounts.empty()) return KvFail(e, "before any 'mount'");
    MountPlan& mount = plan_.mounts.back();
    if (e.key == "mount.target") return mount.target = e.value, Ok();
    if (e.key == "mount.lower") return mount.lower = e.value, Ok();
    if (e.key != "mount.read_only" && e.key != "mount.required") return KvFail(e, "unknown key");
    ATHANOR_TRY(const bool flag, KvFlag(e));
    (e.key == "mount.required" ? mount.required : mount.read_only) = flag;
    return Ok();
  }

  Status ApplyToCgroup(const KvEntry& e) {
    if (plan_.cgroups.empty()) return KvFail(e, "before any 'cgroup'");
    CgroupJoin& join = plan_.cgroups.back();
    if (e.key == "cgroup.controller") return join.controllers.emplace_back(e.value), Ok();
    if (e.key != "cgroup.version") return KvFail(e, "unknown key");
    ATHANOR_TRY(const int64_t version, KvNumberIn(e, 1, 2));
    join.version = static_cast<int>(version);
    return Ok();
  }

  Status ApplyToRlimit(const KvEntry& e) {
    if (plan_.rlimits.empty()) return KvFail(e, "before any 'rlimit'");
    if (e.key != "rlimit.soft" && e.key != "rlimit.hard") return KvFail(e, "unknown key");
    ATHANOR_TRY(const int64_t number, KvNumberIn(e, -1, INT64_MAX));
    // -1 is RLIM_INFINITY, as the kernel has it.
    auto& limit = plan_.rlimits.back();
    (e.key == "rlimit.soft" ? limit.soft : limit.hard) = static_cast<uint64_t>(number);
    return Ok();
  }

  Status ApplyScalar(const KvEntry& e) {
    std::string* text = e.key == "hostname"  ? &plan_.hostname
                        : e.key == "status"  ? &plan_.status_path
                        : e.key == "started" ? &plan_.started_path
                        : e.key == "exit"    ? &plan_.exit_path
                                             : nullptr;
    if (text != nullptr) return *text = e.value, Ok();
    if (e.key == "uid" || e.key == "gid") {
      ATHANOR_TRY(const int64_t id, KvNumberIn(e, -1, UINT32_MAX - 1));
      (e.key == "uid" ? plan_.uid : plan_.gid) = id;
      return Ok();
    }
    if (e.key == "no_new_privs" || e.key == "drop_capabilities") {
      ATHANOR_TRY(const bool flag, KvFlag(e));
      (e.key == "no_new_privs" ? plan_.no_new_privs : plan_.drop_capabilities) = flag;
      return Ok();
    }
    int64_t* number = e.key == "log_cap_bytes"   ? &plan_.log_cap_bytes
                      : e.key == "stop_grace_ms" ? &plan_.stop_grace_ms
                      : e.key == "peer_grace_ms" ? &plan_.peer_grace_ms
                      : e.key == "linger_ms"     ? &plan_.linger_ms
                      : e.key == "memory_watch"  ? &plan_.memory_watch_bytes
                                                 : nullptr;
    if (number == nullptr) return KvFail(e, "unknown key");
    // Far below overflow when added to a clock or to a file's size.
    ATHANOR_TRY(*number, KvNumberIn(e, 0, INT64_MAX / 4));
    return Ok();
  }

  std::set<std::string_view> seen_;
};

}  // namespace

int RlimitNumber(std::string_view name) {
  for (const auto& row : kRlimits) {
    if (row.name == name) return row.number;
  }
  return -1;
}

Status CheckPlan(const SupervisorPlan& plan) {
  if (plan.ranks.empty()) return Bad("the plan has no rank");
  if (plan.ranks.size() > kMaxRanks) return Bad("the plan has more than 1,024 ranks");
  for (const auto& rank : plan.ranks) ATHANOR_CHECK_OK(CheckRank(rank));
  ATHANOR_CHECK_OK(CheckHostname(plan.hostname));
  for (const auto& mount : plan.mounts) {
    ATHANOR_CHECK_OK(CheckPath(mount.source, "mount source"));
    ATHANOR_CHECK_OK(CheckPath(mount.target, "mount target"));
    if (!mount.lower.empty()) ATHANOR_CHECK_OK(CheckPath(mount.lower, "mount lower folder"));
  }
  for (const auto& path : plan.hide) ATHANOR_CHECK_OK(CheckPath(path, "hide"));
  for (const auto& join : plan.cgroups) {
    ATHANOR_CHECK_OK(CheckPath(join.dir, "cgroup"));
    if (join.version != 1 && join.version != 2) return Bad("cgroup version is not 1 or 2");
  }
  for (const auto& limit : plan.rlimits) {
    if (RlimitNumber(limit.name) < 0) return Bad("no rlimit is called '" + limit.name + "'");
    if (limit.soft > limit.hard) return Bad("rlimit '" + limit.name + "': soft above hard");
  }
  if (plan.log_cap_bytes < 0 || plan.stop_grace_ms < 0 || plan.peer_grace_ms < 0 ||
      plan.linger_ms < 0 || plan.memory_watch_bytes < 0) {
    return Bad("a limit is negative");
  }
  ATHANOR_CHECK_OK(CheckPath(plan.status_path, "status"));
  ATHANOR_CHECK_OK(CheckPath(plan.started_path, "started"));
  return CheckPath(plan.exit_path, "exit");
}

Result<std::string> SerializePlan(const SupervisorPlan& plan) {
  ATHANOR_CHECK_OK(CheckPlan(plan));
  KvWriter writer(kKind, kPlanVersion);
  writer.Text("hostname", plan.hostname);
  for (const auto& path : plan.hide) writer.Text("hide", path);
  for (const auto& mount : plan.mounts) {
    writer.Text("mount", mount.source);
    writer.Text("mount.target", mount.target);
    writer.Flag("mount.read_only", mount.read_only);
    writer.Flag("mount.required", mount.required);
    if (!mount.lower.empty()) writer.Text("mount.lower", mount.lower);
  }
  for (const auto& join : plan.cgroups) {
    writer.Text("cgroup", join.dir);
    writer.Number("cgroup.version", join.version);
    for (const auto& controller : join.controllers) writer.Text("cgroup.controller", controller);
  }
  for (const auto& limit : plan.rlimits) {
    writer.Text("rlimit", limit.name);
    writer.Number("rlimit.soft", static_cast<int64_t>(limit.soft));
    writer.Number("rlimit.hard", static_cast<int64_t>(limit.hard));
  }
  if (plan.memory_watch_bytes > 0) writer.Number("memory_watch", plan.memory_watch_bytes);
  writer.Number("uid", plan.uid);
  writer.Number("gid", plan.gid);
  writer.Flag("no_new_privs", plan.no_new_privs);
  writer.Flag("drop_capabilities", plan.drop_capabilities);
  writer.Number("log_cap_bytes", plan.log_cap_bytes);
  writer.Number("stop_grace_ms", plan.stop_grace_ms);
  writer.Number("peer_grace_ms", plan.peer_grace_ms);
  writer.Number("linger_ms", plan.linger_ms);
  writer.Text("status", plan.status_path);
  writer.Text("started", plan.started_path);
  writer.Text("exit", plan.exit_path);
  for (size_t i = 0; i < plan.ranks.size(); ++i) WriteRank(writer, plan.ranks[i], i);
  return std::move(writer).Finish();
}

Result<SupervisorPlan> ParsePlan(std::string_view bytes) {
  ATHANOR_TRY(const auto entries, ParseKv(kKind, kPlanVersion, bytes));
  PlanReader reader;
  for (const auto& entry : entries) ATHANOR_CHECK_OK(reader.Apply(entry));
  ATHANOR_CHECK_OK(CheckPlan(reader.plan_));
  return std::move(reader.plan_);
}

}  // namespace athanor
