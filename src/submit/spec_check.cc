#include "submit/spec_check.h"

#include <re2/re2.h>

#include <algorithm>
#include <set>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "base/text/unicode.h"
#include "job/causes.h"
#include "job/command.h"
#include "job/object_uri.h"
#include "job/rules.h"
#include "submit/errors.h"

namespace athanor {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kNameLength = 256;
constexpr size_t kListLength = 256;      // metrics, secrets, channels
constexpr size_t kPatternLength = 4096;  // bytes of a regex
constexpr size_t kValueLength = 128 << 10;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool HasOnly(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return IsDigit(c) || IsLetter(c) || others.find(c) != std::string_view::npos;
  });
}

Status CheckValue(std::string_view what, std::string_view value) {
  if (value.size() > kValueLength) {
    return Refuse(
        "ATH-S0107", fmt::format("the value of {} is too long", what),
        fmt::format("{}; the limit is {}", HumanBytes(value.size()), HumanBytes(kValueLength)),
        "put it in a file of the source");
  }
  if (value.find('\0') != std::string_view::npos) {
    return Refuse("ATH-S0107", fmt::format("the value of {} holds a NUL byte", what),
                  "got " + Quoted(value), "remove it");
  }
  return Ok();
}

Status CheckPattern(const MetricSpec& metric, std::string_view which, const std::string& pattern) {
  const std::string what =
      fmt::format("the {} of metric {} cannot be used", which, Quoted(metric.name));
  if (pattern.size() > kPatternLength) {
    return Refuse("ATH-S0112", what, fmt::format("it has {} bytes", pattern.size()),
                  fmt::format("keep it below {}", kPatternLength));
  }
  RE2::Options options;
  options.set_log_errors(false);
  const RE2 compiled(pattern, options);
  if (!compiled.ok()) {
    return Refuse("ATH-S0112", what,
                  fmt::format("{} in {}", Printable(compiled.error()), Quoted(pattern)),
                  "patterns follow RE2: no look-around, no back-references");
  }
  if (compiled.NumberOfCapturingGroups() < 1) {
    return Refuse("ATH-S0112", what, fmt::format("{} has no group", Quoted(pattern)),
                  "put the number in parentheses, as in  loss=([0-9.eE+-]+)");
  }
  return Ok();
}

// exit:N or log:PATTERN of retry.on.
Status CheckRetryPattern(const std::string& word) {
  if (StartsWith(word, "exit:")) {
    const std::string_view digits = std::string_view(word).substr(5);
    if (!digits.empty() && digits.size() <= 3 &&
        std::all_of(digits.begin(), digits.end(), IsDigit) && std::atoi(digits.data()) <= 255) {
      return Ok();
    }
    return Refuse("ATH-S0107", "retry.on names no exit status", "got " + Quoted(word),
                  "write it like  exit:75");
  }
  RE2::Options options;
  options.set_log_errors(false);
  const RE2 compiled(word.substr(4), options);
  if (word.size() > 4 && word.size() < kPatternLength && compiled.ok()) return Ok();
  return Refuse("ATH-S0107", "a log: pattern of retry.on cannot be used",
                word.size() <= 4 ? "it is empty" : Printable(compiled.error()),
                "patterns follow RE2, as in  'log:NCCL (error|timeout)'");
}

template <class List, class Check>
Status CheckEach(std::string_view what, const List& list, Check check) {
  if (list.size() > kListLength) {
    return Refuse("ATH-S0107", fmt::format("too many {}", what),
                  fmt::format("got {}; the limit is {}", list.size(), kListLength), "remove some");
  }
  std::set<std::string_view> names;
  for (const auto& item : list) {
    ATHANOR_CHECK_OK(check(item));
    if (!names.insert(item.name).second) {
      return Refuse("ATH-S0107", fmt::format("two {} have the same name", what),
                    fmt::format("{} is there twice", Quoted(item.name)), "rename one of them");
    }
  }
  return Ok();
}

Status CheckCommand(const JobSpec& spec) {
  if (spec.command.empty() || Trim(spec.command.front()).empty() ||
      spec.command.front() == kFlagsPlace) {
    return Refuse("ATH-S0110", "the job has no command", "`run` is missing or empty",
                  "ath run -- python3 train.py\nor add  run: python3 train.py  to the job file");
  }
  size_t bytes = 0;
  for (const auto& word : spec.command) {
    bytes += word.size() + 1;
    if (word.find('\0') != std::string::npos) {
      return Refuse("ATH-S0107", "the command holds a NUL byte", "got " + Quoted(word),
                    "remove it");
    }
  }
  // execve takes at most 128 KiB in one word and 2 MiB in all.
  if (bytes > kValueLength) {
    return Refuse("ATH-S0107", "the command is too long",
                  fmt::format("{}; the limit is {}", HumanBytes(bytes), HumanBytes(kValueLength)),
                  "put it in a script of the source");
  }
  return Ok();
}

Status CheckFileInSource(std::string_view key, const std::string& name) {
  if (auto named = CheckRelativeName(name); !named.ok()) {
    return Refuse("ATH-S0113", fmt::format("environment.{} must name a file of the source", key),
                  fmt::format("got {}: {}", Quoted(name), named.error().what),
                  "give a path relative to the source folder, as in  requirements.txt");
  }
  return Ok();
}

Status CheckIndex(const EnvironmentSpec& environment) {
  const std::string& url = environment.index_url;
  if (url.empty()) {
    if (environment.index_secret.empty()) return Ok();
    return Refuse("ATH-S0113", "environment.index.auth needs an index", "index.url is missing",
                  "add  url: https://...  to environment.index");
  }
  const size_t scheme = url.find("://");
  const std::string kind = ToLower(url.substr(0, std::min(scheme, url.size())));
  if (scheme == std::string::npos || (kind != "https" && kind != "http")) {
    return Refuse("ATH-S0113", "environment.index.url is no web address", "got " + Quoted(url),
                  "write it like  https://packages.example.org/simple");
  }
  const size_t host = scheme + 3;
  const size_t end = std::min(url.find_first_of("/?#", host), url.size());
  if (url.substr(host, end - host).find('@') != std::string::npos) {
    // The value itself is not printed: it is a password.
    return Refuse("ATH-S0113", "environment.index.url must not hold a password",
                  "there is a '@' in its host part",
                  "ath secret set INDEX_TOKEN\nthen  index: {url: ..., auth: secret:INDEX_TOKEN}");
  }
  return CheckValue("environment.index.url", url);
}

}  // namespace

bool IsVariableName(std::string_view name) {
  return !name.empty() && name.size() <= kNameLength && !IsDigit(name.front()) &&
         HasOnly(name, "_");
}

Status CheckName(std::string_view what, std::string_view name) {
  const auto refuse = [&](std::string why, std::string hint) {
    return Refuse("ATH-S0109", fmt::format("the {} cannot be used", what), std::move(why),
                  std::move(hint));
  };
  if (name.empty()) return refuse("it is empty", "give it at least one character");
  size_t characters = 0;
  for (std::string_view rest = name; !rest.empty(); ++characters) {
    const size_t length = Utf8Length(rest);
    if (length == 0) return refuse("it is not UTF-8: " + Quoted(name), "use plain text");
    if (DrivesTerminal(Utf8Decode(rest, length))) {
      return refuse("it holds a control or direction mark: " + Quoted(name),
                    "use letters, digits, spaces and punctuation");
    }
    rest.remove_prefix(length);
  }
  if (characters > kNameLength) {
    return refuse(fmt::format("it has {} characters; the limit is {}", characters, kNameLength),
                  "shorten it; details go into tags");
  }
  if (name.front() == '@' || name.front() == '-') {
    return refuse(fmt::format("{} starts with '{}'", Quoted(name), name.front()),
                  "start it with a letter or a digit");
  }
  if (Trim(name).size() != name.size()) {
    return refuse(fmt::format("{} starts or ends with a space", Quoted(name)), "remove the space");
  }
  for (const auto& part : Split(name, '/')) {
    // Such a name could not be part of a URL: every path with these segments is refused.
    if (part == "." || part == "..") {
      return refuse(Quoted(name) + " has a '.' or '..' part", "name it without");
    }
  }
  return Ok();
}

Status CheckParam(const Param& param) {
  ATHANOR_CHECK_OK(CheckName("parameter name", param.name));
  if ((!IsLetter(param.name.front()) && param.name.front() != '_') ||
      !HasOnly(param.name, "_.-/") || StartsWith(param.name, "channel.")) {
    return Refuse(
        "ATH-S0109", "the parameter name cannot be used", "got " + Quoted(param.name),
        "use a letter, then letters, digits, '_', '-', '.' and '/' ('channel.' is taken)");
  }
  return CheckValue("parameter " + Quoted(param.name), param.value);
}

Status CheckEnvironmentVariable(std::string_view name, std::string_view value) {
  if (!IsVariableName(name)) {
    return Refuse("ATH-S0109", "the variable name cannot be used", "got " + Quoted(name),
                  "use letters, digits and '_', not starting with a digit");
  }
  if (name == "CA_REPOSITORY_ARN") {
    return Refuse("ATH-S0113", "CA_REPOSITORY_ARN is not supported",
                  "it asks for an AWS CodeArtifact login, which needs an AWS account",
                  "ath secret set INDEX_TOKEN\n"
                  "then  environment: {index: {url: ..., auth: secret:INDEX_TOKEN}}");
  }
  return CheckValue("variable " + Quoted(name), value);
}

Status CheckTag(std::string_view key, std::string_view value) {
  ATHANOR_CHECK_OK(CheckName("tag", key));
  return CheckValue("tag " + Quoted(key), value);
}

Status CheckChannel(const ChannelSpec& channel) {
  // The name becomes the name of a folder and part of SM_CHANNEL_<NAME>.
  if (channel.name.empty() || channel.name.size() > 64 || !HasOnly(channel.name, "_.-") ||
      (!IsLetter(channel.name.front()) && !IsDigit(channel.name.front()))) {
    return Refuse(
        "ATH-S0115", "the channel name cannot be used", "got " + Quoted(channel.name),
        "use up to 64 letters, digits, '_', '-' and '.', starting with a letter or digit");
  }
  const std::string what = fmt::format("data channel {} cannot be used", Quoted(channel.name));
  if (channel.from.empty()) {
    return Refuse("ATH-S0115", what, "`from` is missing",
                  fmt::format("data: {{{}: /path/to/folder}}", channel.name));
  }
  if (channel.from.find('\0') != std::string::npos) {
    return Refuse("ATH-S0115", what, "got " + Quoted(channel.from), "remove the NUL byte");
  }
  if (IsObjectUri(channel.from)) {
    if (auto uri = ObjectUri::Parse(channel.from); !uri) {
      return Refuse("ATH-S0115", what, uri.error().what, uri.error().hint);
    }
    if (channel.mode == "shared") {
      return Refuse("ATH-S0115", what, "objects are no folder that could be used in place",
                    "use  mode: file");
    }
  } else if (channel.from.find("://") != std::string::npos) {
    return Refuse("ATH-S0108", what,
                  fmt::format("{}: sources other than folders and s3:// are not available yet",
                              Quoted(channel.from)),
                  "copy the data to a folder and name that");
  }
  for (const std::string_view later : {"fastfile", "pipe", "mount"}) {
    if (channel.mode != later) continue;
    return Refuse("ATH-S0108", what, fmt::format("mode '{}' is not available yet", later),
                  "use  mode: file  (copied before the start) or  mode: shared  (used in place)");
  }
  if (channel.mode != "file" && channel.mode != "shared") {
    return Refuse("ATH-S0115", what, "got mode " + Quoted(channel.mode),
                  "use  mode: file  or  mode: shared");
  }
  return Ok();
}

Status CheckMetric(const MetricSpec& metric) {
  ATHANOR_CHECK_OK(CheckName("metric name", metric.name));
  if (metric.regex.empty()) {
    return Refuse("ATH-S0112", fmt::format("metric {} has no pattern", Quoted(metric.name)),
                  "`regex` is missing", "add  regex: 'loss=([0-9.eE+-]+)'");
  }
  ATHANOR_CHECK_OK(CheckPattern(metric, "regex", metric.regex));
  return metric.step_regex.empty() ? Ok() : CheckPattern(metric, "step", metric.step_regex);
}

Status CheckSecret(const SecretSpec& secret) {
  if (!IsVariableName(secret.name)) {
    return Refuse("ATH-S0114", "the secret's name cannot be used", "got " + Quoted(secret.name),
                  "use letters, digits and '_', as in  HF_TOKEN");
  }
  const std::string what = fmt::format("secret {} cannot be used", secret.name);
  if (secret.as != "env" && secret.as != "file") {
    return Refuse("ATH-S0114", what, "got as: " + Quoted(secret.as), "use  as: env  or  as: file");
  }
  constexpr std::string_view kSources = "use store, env:VARIABLE, file:PATH or command:COMMAND";
  const bool needs_locator =
      secret.source == "env" || secret.source == "file" || secret.source == "command";
  if (!needs_locator && secret.source != "store") {
    return Refuse("ATH-S0114", what, "got from: " + Quoted(secret.source), std::string(kSources));
  }
  if (needs_locator == secret.locator.empty()) {
    return Refuse("ATH-S0114", what,
                  needs_locator ? fmt::format("'{}:' names nothing", secret.source)
                                : "the store takes no more words",
                  std::string(kSources));
  }
  if (secret.source == "env" && !IsVariableName(secret.locator)) {
    return Refuse("ATH-S0114", what, fmt::format("{} is no variable", Quoted(secret.locator)),
                  "from: env:MY_TOKEN");
  }
  return CheckValue(what, secret.locator);
}

Status CheckEnvironment(const EnvironmentSpec& environment) {
  if (!environment.image.empty()) {
    return Refuse("ATH-S0108", "environment.image is not available yet",
                  fmt::format("got {}; jobs run as processes of this machine for now",
                              Quoted(environment.image)),
                  "use  requirements: requirements.txt  or  base: system");
  }
  if (!environment.apt.empty()) {
    return Refuse("ATH-S0113", "environment.apt needs a container",
                  "system packages would be installed on this machine itself, for every user",
                  fmt::format("sudo apt install {}   by hand, then remove `apt`",
                              Printable(Join(environment.apt, " ").substr(0, 200))));
  }
  const std::string& base = environment.base;
  if (!base.empty() && base != "host" && base != "system" && base != "isolated") {
    return Refuse("ATH-S0113", "environment.base is unknown", "got " + Quoted(base),
                  "use host (what is installed), system (a venv over the system's packages) or "
                  "isolated (a venv of its own)");
  }
  if (!environment.conda.empty() && !environment.requirements.empty()) {
    return Refuse("ATH-S0113", "environment has both conda and requirements",
                  fmt::format("conda: {}, requirements: {}", Quoted(environment.conda),
                              Quoted(environment.requirements)),
                  "keep one; a conda file may hold a pip: section");
  }
  if (!environment.conda.empty() && (!base.empty() || !environment.python.empty())) {
    return Refuse("ATH-S0113", "environment.conda brings its own interpreter",
                  base.empty() ? "python: " + Quoted(environment.python) : "base: " + Quoted(base),
                  "remove base and python, and name the version in the conda file");
  }
  if (base == "host" && !environment.requirements.empty()) {
    return Refuse("ATH-S0113", "environment.base: host installs nothing",
                  "requirements: " + Quoted(environment.requirements),
                  "use  base: system  or  base: isolated, or remove requirements");
  }
  if (!environment.requirements.empty()) {
    ATHANOR_CHECK_OK(CheckFileInSource("requirements", environment.requirements));
  }
  if (!environment.conda.empty()) {
    ATHANOR_CHECK_OK(CheckFileInSource("conda", environment.conda));
  }
  if (!environment.index_secret.empty() && !IsVariableName(environment.index_secret)) {
    return Refuse("ATH-S0114", "environment.index.auth names no secret",
                  "the name of a secret has letters, digits and '_'", "auth: secret:INDEX_TOKEN");
  }
  ATHANOR_CHECK_OK(CheckValue("environment.python", environment.python));
  return CheckIndex(environment);
}

namespace {

Status CheckRanks(const ResourceSpec& resources) {
  const auto refuse = [](std::string what, std::string why, std::string hint) {
    return Refuse("ATH-S0107", std::move(what), std::move(why), std::move(hint));
  };
  const uint32_t most = std::max(resources.nodes, resources.nodes_most);
  if (resources.nodes < 1 || most > kMostNodes) {
    return refuse("resources.nodes is out of range",
                  fmt::format("got {}", resources.nodes < 1 ? resources.nodes : most),
                  fmt::format("use 1 to {}", kMostNodes));
  }
  if (resources.nodes_most != 0 && resources.nodes_most < resources.nodes) {
    return refuse(
        "resources.nodes is a range that runs backwards",
        fmt::format("nodes is {} and nodes_most is {}", resources.nodes, resources.nodes_most),
        fmt::format("put the smaller number first: {}..{}", resources.nodes_most, resources.nodes));
  }
  if (resources.processes < 1 || resources.processes > kMostProcesses) {
    return refuse("resources.processes is out of range", fmt::format("got {}", resources.processes),
                  fmt::format("use 1 to {}", kMostProcesses));
  }
  if (most * resources.processes > kMostRanks) {
    return refuse("resources asks for too many processes in all",
                  fmt::format("{} nodes with {} processes each make {} ranks", most,
                              resources.processes, most * resources.processes),
                  fmt::format("use at most {} ranks: fewer nodes or fewer processes", kMostRanks));
  }
  return Ok();
}

}  // namespace

Status CheckResources(const ResourceSpec& resources) {
  if (!resources.type.empty()) ATHANOR_CHECK_OK(CheckName("instance type", resources.type));
  if (!resources.type.empty() &&
      (resources.cpu_millis != 0 || resources.memory_bytes != 0 || resources.gpus != 0)) {
    return Refuse("ATH-S0107", "resources has both a type and amounts",
                  "type: " + Quoted(resources.type),
                  "keep the type, or cpus, memory and gpus (ath types lists types)");
  }
  if (resources.memory_bytes != 0 && resources.memory_bytes < (16u << 20)) {
    return Refuse("ATH-S0107", "resources.memory is too small for any program",
                  fmt::format("got {} bytes", resources.memory_bytes),
                  "add a unit, as in  memory: 16GB");
  }
  if (resources.memory_bytes > (1ull << 50)) {
    return Refuse("ATH-S0107", "resources.memory is out of range",
                  "got " + HumanBytes(resources.memory_bytes), "write it like  16GB");
  }
  ATHANOR_CHECK_OK(CheckRanks(resources));
  const auto& spot = resources.spot;
  for (const auto& [name, value] : {std::pair{"max_wait", spot.max_wait},
                                    {"preempt_after", spot.preempt_after},
                                    {"preempt_every", spot.preempt_every},
                                    {"preempt_every's spread", spot.preempt_jitter}}) {
    if (value >= milliseconds{0} && value <= hours{24 * 366}) continue;
    return Refuse("ATH-S0107", fmt::format("resources.spot.{} is out of range", name),
                  "got " + HumanDuration(value), "write it like 30s, 10m or 24h");
  }
  if (spot.preempt_jitter > spot.preempt_every) {
    return Refuse(
        "ATH-S0107", "resources.spot.preempt_every spreads below nothing",
        fmt::format("{}±{}", HumanDuration(spot.preempt_every), HumanDuration(spot.preempt_jitter)),
        "keep the spread below the time, as in  20s±10s");
  }
  if (resources.cpu_millis > 4'096'000 || resources.gpus > 1024) {
    return Refuse("ATH-S0107", "resources asks for more than any machine has",
                  fmt::format("{} CPUs, {} GPUs", resources.cpu_millis / 1000, resources.gpus),
                  "ath types   shows what there is");
  }
  return Ok();
}

Status CheckLimits(const LimitSpec& limits) {
  const auto in_range = [](std::string_view key, milliseconds value, milliseconds low,
                           milliseconds high) -> Status {
    if (value >= low && value <= high) return Ok();
    return Refuse("ATH-S0107", fmt::format("limits.{} is out of range", key),
                  fmt::format("got {}; it must be {} to {}", HumanDuration(value),
                              HumanDuration(low), HumanDuration(high)),
                  "write it like 90s, 10m or 8h; a bare number means seconds");
  };
  if (limits.max_runtime != milliseconds{0}) {
    ATHANOR_CHECK_OK(in_range("max_runtime", limits.max_runtime, seconds{1}, hours{24 * 366}));
  }
  ATHANOR_CHECK_OK(in_range("stop_grace", limits.stop_grace, milliseconds{0}, hours{24}));
  if (limits.lost_after != milliseconds{0}) {
    ATHANOR_CHECK_OK(in_range("lost_after", limits.lost_after, seconds{10}, hours{24 * 366}));
  }
  static constexpr std::string_view kActions[] = {"note", "fail", "retry", "off"};
  if (std::find(std::begin(kActions), std::end(kActions), limits.hang_action) ==
      std::end(kActions)) {
    return Refuse("ATH-S0107", "limits.hang.action has no such value",
                  "got " + Quoted(limits.hang_action), "one of: note, fail, retry, off");
  }
  if (limits.hang_after != milliseconds{0}) {
    ATHANOR_CHECK_OK(in_range("hang.after", limits.hang_after, seconds{1}, hours{24 * 30}));
  }
  if (limits.log_bytes < (64u << 10) || limits.log_bytes > (1ull << 50)) {
    return Refuse("ATH-S0107", "limits.log_size is out of range",
                  "got " + HumanBytes(limits.log_bytes), "write it like 64MB or 1GiB");
  }
  return Ok();
}

Status CheckCheckpoints(const CheckpointSpec& checkpoints) {
  if (checkpoints.store != "objects" && checkpoints.store != "shared") {
    return Refuse("ATH-S0107", "checkpoints.store has no such value",
                  "got " + Quoted(checkpoints.store), "one of: objects, shared");
  }
  if (checkpoints.best_goal != "min" && checkpoints.best_goal != "max") {
    return Refuse("ATH-S0107", "checkpoints.keep.goal has no such value",
                  "got " + Quoted(checkpoints.best_goal), "one of: min, max");
  }
  if (checkpoints.keep_last < 1 || checkpoints.keep_last > 1000 || checkpoints.keep_best > 1000) {
    return Refuse("ATH-S0107", "checkpoints.keep is out of range",
                  fmt::format("last: {}, best: {}", checkpoints.keep_last, checkpoints.keep_best),
                  "use 1 to 1000 for last, 0 to 1000 for best");
  }
  if (checkpoints.every < milliseconds{0} || checkpoints.every > hours{24 * 30}) {
    return Refuse("ATH-S0107", "checkpoints.every is out of range",
                  "got " + HumanDuration(checkpoints.every), "write it like 90s, 10m or 2h");
  }
  return Ok();
}

Status CheckRuleOfJob(const RuleSpec& rule) {
  auto checked = CheckRule(rule);
  if (!checked) checked.error().id = "ATH-S0107";
  return checked;
}

Status CheckRetry(const RetrySpec& retry) {
  if (retry.max > 1000) {
    return Refuse("ATH-S0107", "retry.max is out of range", fmt::format("got {}", retry.max),
                  "use 0 to 1000");
  }
  for (const auto& type : retry.escalate) ATHANOR_CHECK_OK(CheckName("instance type", type));
  for (const auto& cause : retry.on) {
    if (StartsWith(cause, "exit:") || StartsWith(cause, "log:")) {
      ATHANOR_CHECK_OK(CheckRetryPattern(cause));
      continue;
    }
    const CauseRow* row = FindCause(cause);
    if (row != nullptr && row->kind != CauseKind::kCompleted && row->kind != CauseKind::kUserStop)
      continue;
    std::vector<std::string> kinds;
    for (const auto& known : Causes()) {
      if (known.kind == CauseKind::kCompleted || known.kind == CauseKind::kUserStop) continue;
      kinds.emplace_back(known.name());
    }
    const auto near = Nearest(cause, kinds);
    return Refuse("ATH-S0107", "retry.on names a cause that cannot be retried",
                  "got " + Quoted(cause),
                  near ? fmt::format("did you mean '{}'?", *near) : "one of: " + Join(kinds, ", "));
  }
  if (retry.backoff < milliseconds{0} || retry.backoff > hours{24}) {
    return Refuse("ATH-S0107", "retry.backoff is out of range",
                  "got " + HumanDuration(retry.backoff), "use at most 24h");
  }
  return Ok();
}

Status CheckPriority(int64_t priority) {
  if (priority >= -kPriorityLimit && priority <= kPriorityLimit) return Ok();
  return Refuse(
      "ATH-S0107", "the priority is out of range", fmt::format("got {}", priority),
      fmt::format("use {} to {}; higher runs first, 0 is usual", -kPriorityLimit, kPriorityLimit));
}

Status CheckSpec(const JobSpec& spec) {
  ATHANOR_CHECK_OK(CheckCommand(spec));
  if (!spec.name.empty()) ATHANOR_CHECK_OK(CheckName("job name", spec.name));
  if (!spec.experiment.empty()) ATHANOR_CHECK_OK(CheckName("experiment name", spec.experiment));
  if (!spec.run.empty()) ATHANOR_CHECK_OK(CheckName("run name", spec.run));
  std::set<std::string_view> params;
  for (const auto& param : spec.params) {
    ATHANOR_CHECK_OK(CheckParam(param));
    if (!params.insert(param.name).second) {
      return Refuse("ATH-S0107", "two parameters have the same name",
                    Quoted(param.name) + " is there twice", "keep one of them");
    }
  }
  for (const auto& [name, value] : spec.env) {
    ATHANOR_CHECK_OK(CheckEnvironmentVariable(name, value));
  }
  for (const auto& [key, value] : spec.tags) ATHANOR_CHECK_OK(CheckTag(key, value));
  ATHANOR_CHECK_OK(CheckEnvironment(spec.environment));
  ATHANOR_CHECK_OK(CheckResources(spec.resources));
  // Not while flags are applied one by one: the next may be --spot.
  const auto& spot = spec.resources.spot;
  if (!spot.use && (spot.max_wait.count() > 0 || spot.fallback)) {
    return Refuse("ATH-S0107", "resources.spot has a limit but is not used", "use is not true",
                  "resources: {spot: {use: true, ...}}   or  --spot");
  }
  ATHANOR_CHECK_OK(CheckLimits(spec.limits));
  ATHANOR_CHECK_OK(CheckEach("data channels", spec.data, CheckChannel));
  ATHANOR_CHECK_OK(CheckEach("metrics", spec.metrics, CheckMetric));
  ATHANOR_CHECK_OK(CheckEach("secrets", spec.secrets, CheckSecret));
  ATHANOR_CHECK_OK(CheckCheckpoints(spec.checkpoints));
  if (spec.checkpoints.keep_best > 0 && spec.checkpoints.best_metric.empty()) {
    return Refuse("ATH-S0107", "checkpoints.keep.best needs a metric", "none is named",
                  "keep: {best: 1, metric: val_loss, goal: min}");
  }
  if (spec.rules.size() > kListLength) {
    return Refuse("ATH-S0107", "too many rules",
                  fmt::format("got {}; the limit is {}", spec.rules.size(), kListLength),
                  "remove some");
  }
  for (const auto& rule : spec.rules) ATHANOR_CHECK_OK(CheckRuleOfJob(rule));
  ATHANOR_CHECK_OK(CheckRetry(spec.retry));
  return CheckPriority(spec.priority);
}

}  // namespace athanor
