#include "submit/job_keys.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "job/command.h"
#include "job/rules.h"
#include "submit/errors.h"
#include "submit/key_errors.h"
#include "submit/spec_check.h"

namespace athanor {
namespace {

using Kind = YamlNode::Kind;
using std::chrono::milliseconds;

// A value with its key, as the setters below see it.
struct Value {
  const KeySource& source;
  const YamlNode& node;
  std::string_view key;

  Status Text(std::string& to) const {
    if (node.kind != Kind::kScalar) return WrongKind(source, node, key, "a single value");
    to = node.text;
    return Ok();
  }
  Status Filled(std::string& to) const {
    ATHANOR_CHECK_OK(Text(to));
    return to.empty() ? WrongKind(source, node, key, "a text that is not empty") : Ok();
  }
  Status Name(std::string_view what, std::string& to) const {
    ATHANOR_CHECK_OK(Text(to));
    return AtMark(source, node.mark, CheckName(what, to));
  }
  Status Integer(int64_t low, int64_t high, int64_t& to) const {
    if (node.kind != Kind::kScalar || ScalarKindOf(node) != ScalarKind::kInt) {
      return WrongKind(source, node, key, "a whole number");
    }
    std::string_view digits = node.text;
    if (digits.front() == '+') digits.remove_prefix(1);
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), to);
    if (failure == std::errc() && end == digits.data() + digits.size() && to >= low && to <= high) {
      return Ok();
    }
    return AtMark(source, node.mark,
                  Refuse("ATH-S0107", fmt::format("{} is out of range", key),
                         "got " + Quoted(node.text), fmt::format("use {} to {}", low, high)));
  }
  Status Count(uint32_t& to) const {
    int64_t value = 0;
    ATHANOR_CHECK_OK(Integer(0, UINT32_MAX, value));
    to = static_cast<uint32_t>(value);
    return Ok();
  }
  // Thousandths of a number.
  Status Millis(uint32_t& to) const {
    const ScalarKind kind = node.kind == Kind::kScalar ? ScalarKindOf(node) : ScalarKind::kNull;
    if (kind != ScalarKind::kInt && kind != ScalarKind::kFloat) {
      return WrongKind(source, node, key, "a number");
    }
    const double value = std::strtod(node.text.c_str(), nullptr);
    if (!(value >= 0.001) || value > 4096) {
      return AtMark(source, node.mark,
                    Refuse("ATH-S0107", fmt::format("{} is out of range", key),
                           "got " + Quoted(node.text), "use 0.001 to 4096"));
    }
    to = static_cast<uint32_t>(std::lround(value * 1000));
    return Ok();
  }
  Status Number(double& to) const {
    const ScalarKind kind = node.kind == Kind::kScalar ? ScalarKindOf(node) : ScalarKind::kNull;
    if (kind != ScalarKind::kInt && kind != ScalarKind::kFloat) {
      return WrongKind(source, node, key, "a number");
    }
    to = std::strtod(node.text.c_str(), nullptr);
    return std::isfinite(to) ? Ok() : WrongKind(source, node, key, "a finite number");
  }
  Status Number(std::optional<double>& to) const { return Number(to.emplace()); }
  Status Bool(bool& to) const {
    if (node.kind != Kind::kScalar || ScalarKindOf(node) != ScalarKind::kBool) {
      return WrongKind(source, node, key, "true or false");
    }
    to = ToLower(node.text) == "true";
    return Ok();
  }
  Status Duration(milliseconds& to) const {
    if (node.kind != Kind::kScalar) return WrongKind(source, node, key, "a duration");
    const auto parsed = ParseDuration(node.text);
    if (!parsed) return BadValue(source, node, key, parsed.error());
    to = *parsed;
    return Ok();
  }
  Status Size(uint64_t& to) const {
    if (node.kind != Kind::kScalar) return WrongKind(source, node, key, "a size");
    const auto parsed = ParseBytes(node.text);
    if (!parsed) return BadValue(source, node, key, parsed.error());
    to = *parsed;
    return Ok();
  }
  Status Choice(std::string& to) const {
    ATHANOR_CHECK_OK(Text(to));
    const auto choices = Split(FindKey(key)->choices, '|');
    if (std::find(choices.begin(), choices.end(), to) != choices.end()) return Ok();
    const auto near = Nearest(to, choices);
    return AtMark(
        source, node.mark,
        Refuse("ATH-S0107", fmt::format("{} has no such value", key), "got " + Quoted(to),
               near ? fmt::format("did you mean '{}'?", *near) : "one of: " + Join(choices, ", ")));
  }
  Status List(std::vector<std::string>& to) const {
    if (node.kind != Kind::kSequence) return WrongKind(source, node, key, "a list");
    for (const auto& item : node.items) {
      ATHANOR_CHECK_OK((Value{source, item, key}.Text(to.emplace_back())));
    }
    return Ok();
  }
  Status Map(std::map<std::string, std::string>& to,
             Status (*check)(std::string_view, std::string_view)) const {
    if (node.kind != Kind::kMap) return WrongKind(source, node, key, "a map");
    for (const auto& entry : node.entries) {
      const std::string path = fmt::format("{}.{}", key, Printable(entry.key.substr(0, 64)));
      std::string text;
      ATHANOR_CHECK_OK((Value{source, entry.value, path}.Text(text)));
      ATHANOR_CHECK_OK(AtMark(source, entry.mark, check(entry.key, text)));
      to[entry.key] = std::move(text);
    }
    return Ok();
  }
};

Param ParamOf(const std::string& name, const YamlNode& node) {
  if (node.kind == Kind::kSequence || node.kind == Kind::kMap) {
    return {name, DumpJson(JsonOf(node)), Param::Kind::kJson};
  }
  switch (ScalarKindOf(node)) {
    case ScalarKind::kNull:
      return {name, "", Param::Kind::kNull};
    case ScalarKind::kBool:
      return {name, node.text, Param::Kind::kBool};
    case ScalarKind::kInt:
    case ScalarKind::kFloat:
      return {name, NumberText(node.text), Param::Kind::kNumber};
    case ScalarKind::kString:
      break;
  }
  return {name, node.text, Param::Kind::kString};
}

template <class Item>
void Upsert(std::vector<Item>& list, Item item) {
  const auto same = std::find_if(list.begin(), list.end(),
                                 [&](const Item& other) { return other.name == item.name; });
  if (same == list.end()) {
    list.push_back(std::move(item));
  } else {
    *same = std::move(item);
  }
}

Status SetParams(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  if (node.kind != Kind::kMap) return WrongKind(source, node, "params", "a map");
  for (const auto& entry : node.entries) {
    Param param = ParamOf(entry.key, entry.value);
    ATHANOR_CHECK_OK(AtMark(source, entry.mark, CheckParam(param)));
    Upsert(spec.params, std::move(param));
  }
  return Ok();
}

// Its content is read by `study`; only `ath tune` needs it.
Status SetTune(const KeySource& source, JobSpec&, const YamlNode& node) {
  return node.kind == Kind::kMap ? Ok() : WrongKind(source, node, "tune", "a map");
}

// `run` may come later: until then ${args} is all of the command.
Status SetArgs(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  std::string how;
  ATHANOR_CHECK_OK((Value{source, node, "args"}.Choice(how)));
  return AtMark(source, node.mark, PassFlags(spec));
}

Status SetCommand(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  const bool pass = PassesFlags(spec);
  spec.command.clear();
  spec.shell = node.kind == Kind::kScalar;
  if (spec.shell) {
    spec.command.push_back(node.text);
  } else if (node.kind == Kind::kSequence) {
    ATHANOR_CHECK_OK((Value{source, node, "run"}.List(spec.command)));
  } else {
    return WrongKind(source, node, "run", "a text or a list of words");
  }
  if (!spec.command.empty() && !Trim(spec.command.front()).empty()) {
    return pass ? AtMark(source, node.mark, PassFlags(spec)) : Ok();
  }
  return AtMark(
      source, node.mark,
      Refuse("ATH-S0110", "run is empty", "there is no program to start", "run: python3 train.py"));
}

Status SetChannels(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  if (node.kind != Kind::kMap) return WrongKind(source, node, "data", "a map of channels");
  for (const auto& entry : node.entries) {
    // The rows of an item write to the last element.
    JobSpec scratch;
    scratch.data.push_back({entry.key, "", "file"});
    if (entry.value.kind == Kind::kScalar) {
      scratch.data.back().from = entry.value.text;
    } else {
      ATHANOR_CHECK_OK(ReadGroup(source, scratch, "data.*", entry.value));
    }
    ATHANOR_CHECK_OK(AtMark(source, entry.mark, CheckChannel(scratch.data.back())));
    Upsert(spec.data, std::move(scratch.data.back()));
  }
  return Ok();
}

Status SetMetrics(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  if (node.kind != Kind::kSequence) return WrongKind(source, node, "metrics", "a list");
  std::map<std::string, YamlMark> seen;
  for (const auto& item : node.items) {
    JobSpec scratch;
    scratch.metrics.emplace_back();
    ATHANOR_CHECK_OK(ReadGroup(source, scratch, "metrics[]", item));
    ATHANOR_CHECK_OK(AtMark(source, item.mark, CheckMetric(scratch.metrics.back())));
    const auto [first, fresh] = seen.emplace(scratch.metrics.back().name, item.mark);
    if (!fresh) {
      return AtMark(
          source, item.mark,
          Refuse(
              "ATH-S0112", fmt::format("metric {} is given twice", Quoted(first->first)),
              fmt::format("first on line {}, again on line {}", first->second.line, item.mark.line),
              "give each metric a name of its own"));
    }
    Upsert(spec.metrics, std::move(scratch.metrics.back()));
  }
  return Ok();
}

// `- nan` is the rule on every metric.
Status SetRules(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  if (node.kind != Kind::kSequence) return WrongKind(source, node, "rules", "a list");
  for (const auto& item : node.items) {
    JobSpec scratch;
    auto& rule = scratch.rules.emplace_back();
    if (item.kind == Kind::kScalar) {
      rule.rule = item.text;
    } else {
      ATHANOR_CHECK_OK(ReadGroup(source, scratch, "rules[]", item));
    }
    if (rule.metric.empty()) rule.metric = "*";
    ATHANOR_CHECK_OK(AtMark(source, item.mark, CheckRuleOfJob(rule)));
    rule = WithRuleDefaults(std::move(rule));
    spec.rules.push_back(std::move(rule));
  }
  return Ok();
}

Status SetSecretSource(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  std::string text;
  ATHANOR_CHECK_OK((Value{source, node, "secrets[].from"}.Filled(text)));
  SecretSpec& secret = spec.secrets.back();
  const size_t colon = text.find(':');
  secret.source = text.substr(0, colon);
  secret.locator = colon == std::string::npos ? "" : text.substr(colon + 1);
  return Ok();
}

Status SetSecrets(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  if (node.kind != Kind::kSequence) return WrongKind(source, node, "secrets", "a list of names");
  for (const auto& item : node.items) {
    JobSpec scratch;
    scratch.secrets.emplace_back();
    if (item.kind == Kind::kScalar) {
      scratch.secrets.back().name = item.text;
    } else {
      ATHANOR_CHECK_OK(ReadGroup(source, scratch, "secrets[]", item));
    }
    ATHANOR_CHECK_OK(AtMark(source, item.mark, CheckSecret(scratch.secrets.back())));
    Upsert(spec.secrets, std::move(scratch.secrets.back()));
  }
  return Ok();
}

Status SetIndexAuth(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  constexpr std::string_view kPrefix = "secret:";
  std::string text;
  ATHANOR_CHECK_OK((Value{source, node, "environment.index.auth"}.Filled(text)));
  if (!StartsWith(text, kPrefix) || !IsVariableName(text.substr(kPrefix.size()))) {
    // The text may be the token itself, so it is not printed.
    return AtMark(source, node.mark,
                  Refuse("ATH-S0114", "environment.index.auth must name a secret",
                         "its value does not have the form secret:NAME",
                         "ath secret set INDEX_TOKEN\nthen  auth: secret:INDEX_TOKEN"));
  }
  spec.environment.index_secret = text.substr(kPrefix.size());
  return Ok();
}

Status SetType(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  if (node.kind == Kind::kSequence) {
    return AtMark(source, node.mark,
                  Refuse("ATH-S0108", "a list of types is not available yet", "got a list",
                         "name one type; ath types lists them"));
  }
  return Value{source, node, "resources.type"}.Name("instance type", spec.resources.type);
}

Status SetGpus(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  auto& resources = spec.resources;
  if (node.kind == Kind::kScalar && node.text == "auto") {
    resources.gpus = 0;
    resources.no_gpus = false;
    return Ok();
  }
  constexpr std::string_view kKey = "resources.gpus";
  if (node.kind != Kind::kScalar || ScalarKindOf(node) != ScalarKind::kInt) {
    return WrongKind(source, node, kKey, "a whole number, or auto");
  }
  ATHANOR_CHECK_OK((Value{source, node, kKey}.Count(resources.gpus)));
  resources.no_gpus = resources.gpus == 0;
  return Ok();
}

// "4", or "1..4". The bounds are CheckResources'.
Status SetNodes(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  constexpr std::string_view kKey = "resources.nodes";
  auto& resources = spec.resources;
  const size_t dots = node.kind == Kind::kScalar ? node.text.find("..") : std::string::npos;
  if (dots == std::string::npos) {
    if (node.kind != Kind::kScalar || ScalarKindOf(node) != ScalarKind::kInt) {
      return WrongKind(source, node, kKey, "a whole number, or a range such as 1..4");
    }
    int64_t nodes = 0;
    ATHANOR_CHECK_OK((Value{source, node, kKey}.Integer(1, kMostNodes, nodes)));
    resources.nodes = static_cast<uint32_t>(nodes);
    resources.nodes_most = 0;
    return Ok();
  }
  int64_t ends[2] = {};
  for (const bool most : {false, true}) {
    YamlNode end = node;
    end.quoted = false;  // '1..4' as JSON writes it
    end.text = std::string(Trim(most ? node.text.substr(dots + 2) : node.text.substr(0, dots)));
    if (ScalarKindOf(end) != ScalarKind::kInt) {
      return WrongKind(source, node, kKey, "a whole number, or a range such as 1..4");
    }
    ATHANOR_CHECK_OK((Value{source, end, kKey}.Integer(1, kMostNodes, ends[most])));
  }
  if (ends[0] > ends[1]) {
    return AtMark(
        source, node.mark,
        Refuse("ATH-S0107", fmt::format("{} is a range that runs backwards", kKey),
               "got " + Quoted(node.text),
               fmt::format("put the smaller number first: nodes: {}..{}", ends[1], ends[0])));
  }
  resources.nodes = static_cast<uint32_t>(ends[0]);
  resources.nodes_most = ends[0] == ends[1] ? 0 : static_cast<uint32_t>(ends[1]);
  return Ok();
}

Status SetProcesses(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  int64_t processes = 0;
  ATHANOR_CHECK_OK(
      (Value{source, node, "resources.processes"}.Integer(1, kMostProcesses, processes)));
  spec.resources.processes = static_cast<uint32_t>(processes);
  return Ok();
}

// `spot: true` is short for `spot: {use: true}`.
Status SetSpot(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  if (node.kind != Kind::kScalar) return ReadGroup(source, spec, "resources.spot", node);
  return Value{source, node, "resources.spot.use"}.Bool(spec.resources.spot.use);
}

// "20s", or "20s±10s" (also written 20s+-10s).
Status SetPreemptEvery(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  constexpr std::string_view kKey = "resources.spot.preempt_every";
  std::string text;
  ATHANOR_CHECK_OK((Value{source, node, kKey}.Filled(text)));
  auto& spot = spec.resources.spot;
  for (const std::string_view sign : {"±", "+-"}) {
    const size_t at = text.find(sign);
    if (at == std::string::npos) continue;
    YamlNode part = node;
    part.text = text.substr(at + sign.size());
    ATHANOR_CHECK_OK((Value{source, part, kKey}.Duration(spot.preempt_jitter)));
    text.resize(at);
    break;
  }
  YamlNode part = node;
  part.text = text;
  return Value{source, part, kKey}.Duration(spot.preempt_every);
}

Status SetSeed(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  int64_t value = 0;
  ATHANOR_CHECK_OK(
      (Value{source, node, "resources.spot.preempt_seed"}.Integer(0, INT64_MAX, value)));
  spec.resources.spot.preempt_seed = static_cast<uint64_t>(value);
  return Ok();
}

// `outputs: ["*.pt"]` is short for `outputs: {files: ["*.pt"]}`. Only the last one counts: a flag
// does not add to the patterns of a file.
Status SetOutputs(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  spec.outputs = {};
  if (node.kind == Kind::kMap || node.kind == Kind::kNull) {
    return ReadGroup(source, spec, "outputs", node);
  }
  if (node.kind == Kind::kScalar && (node.text == "none" || node.text == "all")) {
    spec.outputs.keep = node.text == "all";
    return Ok();
  }
  if (node.kind != Kind::kSequence) {
    return WrongKind(source, node, "outputs", "a list of patterns, a map, all or none");
  }
  spec.outputs.keep = !node.items.empty();
  return Value{source, node, "outputs"}.List(spec.outputs.files);
}

Status SetOutputFiles(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  ATHANOR_CHECK_OK((Value{source, node, "outputs.files"}.List(spec.outputs.files)));
  spec.outputs.keep = !spec.outputs.files.empty();
  return Ok();
}

Status SetPriority(const KeySource& source, JobSpec& spec, const YamlNode& node) {
  int64_t value = 0;
  ATHANOR_CHECK_OK((Value{source, node, "priority"}.Integer(INT32_MIN, INT32_MAX, value)));
  ATHANOR_CHECK_OK(AtMark(source, node.mark, CheckPriority(value)));
  spec.priority = static_cast<int32_t>(value);
  return Ok();
}

// A group whose parts are only valid together; the position is the group's.
template <class Part, Status (*Check)(const Part&), Part JobSpec::*Member>
Status SetGroup(const KeySource& source, JobSpec& spec, const YamlNode& node,
                std::string_view path) {
  ATHANOR_CHECK_OK(ReadGroup(source, spec, path, node));
  return AtMark(source, node.mark, Check(spec.*Member));
}

#define ATHANOR_SET(path, call) \
  [](const KeySource& f, JobSpec& s, const YamlNode& n) -> Status { return Value{f, n, path}.call; }
#define ATHANOR_GROUP(path, check, Part, member)                    \
  [](const KeySource& f, JobSpec& s, const YamlNode& n) -> Status { \
    return SetGroup<Part, check, &JobSpec::member>(f, s, n, path);  \
  }
#define ATHANOR_PLAIN_GROUP(path)                                   \
  [](const KeySource& f, JobSpec& s, const YamlNode& n) -> Status { \
    return ReadGroup(f, s, path, n);                                \
  }

constexpr KeyRow kRows[] = {
    {"name", KeyType::kText, "Name of the job. Default: made from the script's name.",
     "resnet-cifar", "", ATHANOR_SET("name", Name("job name", s.name))},
    {"experiment", KeyType::kText, "Experiment that the run belongs to.", "cifar10", "",
     ATHANOR_SET("experiment", Name("experiment name", s.experiment))},
    {"run", KeyType::kCommand,
     "Command to run: a string for `sh -c`, or a list of words used as they are. ${name} is "
     "replaced by a parameter, ${args} by all of them as flags (see `args`), ${channel.NAME} by "
     "the "
     "folder of a data channel.",
     "python3 train.py --lr ${lr}", "", SetCommand},
    {"run_name", KeyType::kText, "Name of the run in the experiment.", "baseline", "",
     ATHANOR_SET("run_name", Name("run name", s.run))},
    {"params", KeyType::kParams,
     "Hyperparameters. The script reads them from the command line, the SDK or "
     "hyperparameters.json.",
     "{lr: 1e-4, epochs: 5}", "", SetParams},
    {"args", KeyType::kText,
     "flags: pass the parameters to the command as `--name value`, at its end or where it says "
     "${args}. A list gives several words, true gives `--name`, false and null give nothing. "
     "Parameters that the command names as ${name} are not repeated.",
     "flags", "flags", SetArgs},
    {"env", KeyType::kTextMap, "Environment variables for the script.", "{OMP_NUM_THREADS: 1}", "",
     ATHANOR_SET("env", Map(s.env, CheckEnvironmentVariable))},

    {"source", KeyType::kGroup, "Folder that is packaged with the job.", "{dir: .}", "",
     ATHANOR_PLAIN_GROUP("source")},
    {"source.dir", KeyType::kText, "Path of the folder. Default: the folder of the job file.", ".",
     "", ATHANOR_SET("source.dir", Filled(s.source.dir))},
    {"source.ignore", KeyType::kTextList,
     "Patterns of files to leave out, in addition to .gitignore and .athanorignore.",
     "['*.ipynb', data/]", "", ATHANOR_SET("source.ignore", List(s.source.ignore))},
    {"source.max_size", KeyType::kBytes, "Largest package that is accepted. Default: 200 MiB.",
     "500MB", "", ATHANOR_SET("source.max_size", Size(s.source.max_size))},

    {"environment", KeyType::kGroup, "Python environment that the script runs in.",
     "{requirements: requirements.txt}", "",
     ATHANOR_GROUP("environment", CheckEnvironment, EnvironmentSpec, environment)},
    {"environment.base", KeyType::kText,
     "host: the packages installed on this machine. system: a virtual environment that also "
     "sees the system's packages. isolated: a virtual environment of its own.",
     "system", "host|system|isolated", ATHANOR_SET("environment.base", Choice(s.environment.base))},
    {"environment.python", KeyType::kText, "Python version or path of the interpreter.", "\"3.11\"",
     "", ATHANOR_SET("environment.python", Filled(s.environment.python))},
    {"environment.requirements", KeyType::kText, "Requirements file in the source folder.",
     "requirements.txt", "",
     ATHANOR_SET("environment.requirements", Filled(s.environment.requirements))},
    {"environment.conda", KeyType::kText, "Conda environment file in the source folder.",
     "environment.yml", "", ATHANOR_SET("environment.conda", Filled(s.environment.conda))},
    {"environment.apt", KeyType::kTextList, "System packages to install. Only in a container.",
     "[libgl1]", "", ATHANOR_SET("environment.apt", List(s.environment.apt))},
    {"environment.image", KeyType::kText, "Container image. Needs a container back end.",
     "registry.example.org/train:1", "",
     ATHANOR_SET("environment.image", Filled(s.environment.image))},
    {"environment.index", KeyType::kGroup, "Private package index.",
     "{url: https://packages.example.org/simple, auth: secret:INDEX_TOKEN}", "",
     ATHANOR_PLAIN_GROUP("environment.index")},
    {"environment.index.url", KeyType::kText, "URL of the index, without a password.",
     "https://packages.example.org/simple", "",
     ATHANOR_SET("environment.index.url", Filled(s.environment.index_url))},
    {"environment.index.auth", KeyType::kText, "Secret that holds the token for the index.",
     "secret:INDEX_TOKEN", "", SetIndexAuth},

    {"resources", KeyType::kGroup, "CPUs, memory, GPUs, nodes and processes that the job needs.",
     "{cpus: 2, memory: 8GB}", "",
     ATHANOR_GROUP("resources", CheckResources, ResourceSpec, resources)},
    {"resources.type", KeyType::kText, "Instance type. `ath types` lists them.", "ml.m5.large", "",
     SetType},
    {"resources.cpus", KeyType::kNumber, "Number of CPUs. Fractions are allowed.", "0.5", "",
     ATHANOR_SET("resources.cpus", Millis(s.resources.cpu_millis))},
    {"resources.memory", KeyType::kBytes, "Memory to reserve. The job is ended if it uses more.",
     "8GB", "", ATHANOR_SET("resources.memory", Size(s.resources.memory_bytes))},
    {"resources.gpus", KeyType::kCount,
     "GPUs to reserve. auto (the default): reserve none, and use those that no other job "
     "reserved. 0: use none.",
     "1", "auto", SetGpus},
    {"resources.nodes", KeyType::kCountOrRange,
     "Nodes (hosts) to run on, each with the resources above. All of them start together. A range "
     "such as 1..4 is for jobs that can run with fewer; for now they start with the smaller "
     "number. "
     "Default: 1.",
     "2", "", SetNodes},
    {"resources.processes", KeyType::kCount,
     "Processes (ranks) to start on each node. Each one gets RANK, WORLD_SIZE and the like; see "
     "docs/distributed.md. Default: 1.",
     "4", "", SetProcesses},

    {"resources.spot", KeyType::kGroup,
     "Run on spot capacity: cheaper, but the machine can be taken away. The job then resumes "
     "from its last complete checkpoint.",
     "{use: true, max_wait: 24h}", "", SetSpot},
    {"resources.spot.use", KeyType::kBool, "Whether the job may run on spot capacity.", "true", "",
     ATHANOR_SET("resources.spot.use", Bool(s.resources.spot.use))},
    {"resources.spot.max_wait", KeyType::kDuration,
     "Longest time to wait and run, together. After that the job ends, or falls back.", "24h", "",
     ATHANOR_SET("resources.spot.max_wait", Duration(s.resources.spot.max_wait))},
    {"resources.spot.fallback", KeyType::kBool,
     "After max_wait, continue as an ordinary job at the full price instead of ending.", "true", "",
     ATHANOR_SET("resources.spot.fallback", Bool(s.resources.spot.fallback))},
    {"resources.spot.preempt_after", KeyType::kDuration,
     "For tests: take the machine away once, this long after the script started.", "30s", "",
     ATHANOR_SET("resources.spot.preempt_after", Duration(s.resources.spot.preempt_after))},
    {"resources.spot.preempt_every", KeyType::kText,
     "For tests: take the machine away again and again. ± makes the times random.", "20s±10s", "",
     SetPreemptEvery},
    {"resources.spot.preempt_seed", KeyType::kCount, "Seed for the random times of preempt_every.",
     "7", "", SetSeed},

    {"limits", KeyType::kGroup, "Limits that end the job.", "{max_runtime: 8h}", "",
     ATHANOR_GROUP("limits", CheckLimits, LimitSpec, limits)},
    {"limits.max_runtime", KeyType::kDuration,
     "Longest time that the script may run. Each attempt has the full time.", "8h", "",
     ATHANOR_SET("limits.max_runtime", Duration(s.limits.max_runtime))},
    {"limits.stop_grace", KeyType::kDuration, "Time between SIGTERM and SIGKILL. Default: 120s.",
     "120s", "", ATHANOR_SET("limits.stop_grace", Duration(s.limits.stop_grace))},
    {"limits.log_size", KeyType::kBytes,
     "Largest size of each output stream. More output is dropped.", "1GiB", "",
     ATHANOR_SET("limits.log_size", Size(s.limits.log_bytes))},
    {"limits.lost_after", KeyType::kDuration,
     "End the job if it cannot reach the server for this long. Default: never.", "1h", "",
     ATHANOR_SET("limits.lost_after", Duration(s.limits.lost_after))},

    {"limits.hang", KeyType::kGroup,
     "What to do if the script makes no progress: no output, no metrics and no CPU use.",
     "{after: 10m, action: retry}", "", ATHANOR_PLAIN_GROUP("limits.hang")},
    {"limits.hang.after", KeyType::kDuration,
     "How long without progress counts as hanging. Default: estimated from the time of a step.",
     "10m", "", ATHANOR_SET("limits.hang.after", Duration(s.limits.hang_after))},
    {"limits.hang.steps", KeyType::kCount,
     "How many median step times without progress count as hanging. Default: 50.", "50", "",
     ATHANOR_SET("limits.hang.steps", Count(s.limits.hang_steps))},
    {"limits.hang.action", KeyType::kText,
     "note: save the stacks and continue. fail: end the job. retry: start a new attempt. off: "
     "do nothing.",
     "retry", "note|fail|retry|off",
     ATHANOR_SET("limits.hang.action", Choice(s.limits.hang_action))},

    {"data", KeyType::kGroupMap, "Data channels: folders or files for the script.",
     "{train: /data/cifar}", "", SetChannels},
    {"data.*.from", KeyType::kText,
     "Folder or file, or s3://bucket/prefix in the built-in S3 server.", "/data/cifar", "",
     ATHANOR_SET("data.*.from", Filled(s.data.back().from))},
    // CheckChannel distinguishes modes that are not available yet from misspelt ones.
    {"data.*.mode", KeyType::kText,
     "file: copy the data before the start. shared: use it in place.", "shared", "file|shared",
     ATHANOR_SET("data.*.mode", Text(s.data.back().mode))},

    {"checkpoints", KeyType::kGroup, "Where the script saves checkpoints, and which ones are kept.",
     "{dir: /opt/ml/checkpoints}", "",
     ATHANOR_GROUP("checkpoints", CheckCheckpoints, CheckpointSpec, checkpoints)},
    {"checkpoints.dir", KeyType::kText, "Folder for checkpoints. Default: /opt/ml/checkpoints.",
     "/opt/ml/checkpoints", "", ATHANOR_SET("checkpoints.dir", Filled(s.checkpoint_dir))},
    {"checkpoints.store", KeyType::kText,
     "objects: copy checkpoints to the object store while the job runs. shared: the folder is "
     "on a disk that outlives the machine; use it in place.",
     "objects", "objects|shared", ATHANOR_SET("checkpoints.store", Choice(s.checkpoints.store))},
    {"checkpoints.every", KeyType::kDuration,
     "How often athanor.should_checkpoint() says yes. Default: chosen from measurements.", "10m",
     "", ATHANOR_SET("checkpoints.every", Duration(s.checkpoints.every))},
    {"checkpoints.keep", KeyType::kGroup, "Which checkpoints to keep.", "{last: 2}", "",
     ATHANOR_PLAIN_GROUP("checkpoints.keep")},
    {"checkpoints.keep.last", KeyType::kCount,
     "Keep this many of the newest checkpoints. Default: 2.", "2", "",
     ATHANOR_SET("checkpoints.keep.last", Count(s.checkpoints.keep_last))},
    {"checkpoints.keep.best", KeyType::kCount,
     "Also keep this many of the best checkpoints, by a metric.", "1", "",
     ATHANOR_SET("checkpoints.keep.best", Count(s.checkpoints.keep_best))},
    {"checkpoints.keep.metric", KeyType::kText, "Metric for `best`.", "val_loss", "",
     ATHANOR_SET("checkpoints.keep.metric", Name("metric name", s.checkpoints.best_metric))},
    {"checkpoints.keep.goal", KeyType::kText, "Whether a lower or a higher value is better.", "min",
     "min|max", ATHANOR_SET("checkpoints.keep.goal", Choice(s.checkpoints.best_goal))},

    {"outputs", KeyType::kPatterns,
     "Which files of the working folder to keep when the script ends: patterns as in .gitignore, "
     "a map, `all` or `none`. Default: all files that are new or changed, up to 1 GiB.",
     "['*.pt', runs/**]", "", SetOutputs},
    {"outputs.files", KeyType::kTextList,
     "Patterns of files to keep. A pattern with ! in front leaves files out.",
     "['*.pt', runs/**, '!runs/cache/']", "", SetOutputFiles},
    {"outputs.limit", KeyType::kBytes,
     "Largest size of all kept files together. Files that do not fit are left out, and listed. "
     "Default: 1GiB.",
     "5GB", "", ATHANOR_SET("outputs.limit", Size(s.outputs.limit))},

    {"metrics", KeyType::kGroupList, "Metrics to read from the script's output.",
     "[{name: loss, regex: 'loss=([0-9.]+)'}]", "", SetMetrics},
    {"metrics[].name", KeyType::kText, "Name of the metric.", "loss", "",
     ATHANOR_SET("metrics[].name", Name("metric name", s.metrics.back().name))},
    {"metrics[].regex", KeyType::kText, "RE2 pattern. Group 1 is the value.",
     "'loss=([0-9.eE+-]+|nan)'", "",
     ATHANOR_SET("metrics[].regex", Filled(s.metrics.back().regex))},
    {"metrics[].step", KeyType::kText, "RE2 pattern. Group 1 is the step.", "'step=(\\d+)'", "",
     ATHANOR_SET("metrics[].step", Filled(s.metrics.back().step_regex))},

    {"rules", KeyType::kGroupList, "Rules that watch metrics while the job runs.",
     "[{rule: nan, metric: loss, action: stop}]", "", SetRules},
    {"rules[].rule", KeyType::kText, "What the rule detects.", "nan",
     "nan|inf|above|below|plateau|divergence|no_progress",
     ATHANOR_SET("rules[].rule", Text(s.rules.back().rule))},
    {"rules[].name", KeyType::kText, "Name of the rule in events. Default: the kind of rule.",
     "exploding", "", ATHANOR_SET("rules[].name", Name("rule name", s.rules.back().name))},
    {"rules[].metric", KeyType::kText, "Metric, or a pattern with *. Default: all metrics.", "loss",
     "", ATHANOR_SET("rules[].metric", Filled(s.rules.back().metric))},
    {"rules[].value", KeyType::kSigned, "Threshold for above, below and divergence.", "10", "",
     ATHANOR_SET("rules[].value", Number(s.rules.back().value))},
    {"rules[].window", KeyType::kCount, "Number of points to look at.", "20", "",
     ATHANOR_SET("rules[].window", Count(s.rules.back().window))},
    {"rules[].min_delta", KeyType::kNumber, "Smallest change that counts.", "0.001", "",
     ATHANOR_SET("rules[].min_delta", Number(s.rules.back().min_delta))},
    {"rules[].goal", KeyType::kText, "Whether a lower or a higher value is better.", "min",
     "min|max", ATHANOR_SET("rules[].goal", Choice(s.rules.back().goal))},
    {"rules[].after", KeyType::kDuration, "How long without a new step (no_progress).", "10m", "",
     ATHANOR_SET("rules[].after", Duration(s.rules.back().after))},
    {"rules[].action", KeyType::kText,
     "mark: record it. stop: save and end the job. retry: restart from the last complete "
     "checkpoint. webhook: send a request to `url`.",
     "stop", "mark|stop|retry|webhook",
     ATHANOR_SET("rules[].action", Choice(s.rules.back().action))},
    {"rules[].url", KeyType::kText,
     "URL of the webhook. It gets a POST request with JSON, and is stored with the job.",
     "https://chat.example.org/hook", "", ATHANOR_SET("rules[].url", Filled(s.rules.back().url))},

    {"secrets", KeyType::kGroupList, "Secrets for the script.", "[HF_TOKEN]", "", SetSecrets},
    {"secrets[].name", KeyType::kText, "Name of the secret and of its environment variable.",
     "HF_TOKEN", "", ATHANOR_SET("secrets[].name", Filled(s.secrets.back().name))},
    {"secrets[].from", KeyType::kText,
     "store, env:VARIABLE, file:PATH or command:COMMAND. Default: store.", "env:MY_TOKEN", "",
     SetSecretSource},
    {"secrets[].as", KeyType::kText,
     "env: an environment variable with the value. file: a variable with the path of a file.",
     "file", "env|file", ATHANOR_SET("secrets[].as", Choice(s.secrets.back().as))},
    {"secrets[].optional", KeyType::kBool, "Run the job even if the secret does not exist.", "true",
     "", ATHANOR_SET("secrets[].optional", Bool(s.secrets.back().optional))},

    {"tags", KeyType::kTextMap, "Tags to find the job by.", "{team: vision}", "",
     ATHANOR_SET("tags", Map(s.tags, CheckTag))},
    {"retry", KeyType::kGroup, "When to run the job again after a failure.", "{max: 3}", "",
     ATHANOR_GROUP("retry", CheckRetry, RetrySpec, retry)},
    {"retry.max", KeyType::kCount, "Largest number of retries.", "3", "",
     ATHANOR_SET("retry.max", Count(s.retry.max))},
    {"retry.on", KeyType::kTextList,
     "Causes to retry, as `ath why` names them, exit:N, or log:PATTERN for the last lines of "
     "the log. Failures of the machine are always retried and never counted.",
     "[out_of_memory, exit:75, 'log:NCCL error']", "", ATHANOR_SET("retry.on", List(s.retry.on))},
    {"retry.escalate", KeyType::kTextList,
     "Instance types to move up to, one after each out_of_memory.", "[ml.m5.xlarge, ml.m5.2xlarge]",
     "", ATHANOR_SET("retry.escalate", List(s.retry.escalate))},
    {"retry.backoff", KeyType::kDuration, "Time to wait before a retry.", "30s", "",
     ATHANOR_SET("retry.backoff", Duration(s.retry.backoff))},
    {"priority", KeyType::kInteger, "-1000 to 1000. Jobs with a higher number start first.", "0",
     "", SetPriority},
    {"tune", KeyType::kParams,
     "Parameter search for `ath tune`. See docs/tuning.md. `ath run` ignores it.",
     "{metric: val_loss, space: {lr: {type: float, low: 1e-5, high: 1, scale: log}}}", "", SetTune},

    {"alerts", KeyType::kGroup, "Messages to people.", "", "", nullptr},
    {"extends", KeyType::kText, "Another job file to start from.", "", "", nullptr},
    {"profile", KeyType::kGroup, "The profiler.", "", "", nullptr},
    {"team", KeyType::kText, "Who pays.", "", "", nullptr},
    {"environment.lock", KeyType::kText, "A lock file.", "", "", nullptr},
    {"limits.max_cost", KeyType::kNumber, "The most it may cost.", "", "", nullptr},
    {"data.*.cache", KeyType::kBytes, "How much is kept on disk.", "", "", nullptr},
    {"data.*.shard", KeyType::kText, "Parts for each machine.", "", "", nullptr},
    {"metrics[].source", KeyType::kText, "Metrics from elsewhere.", "", "", nullptr},
};

#undef ATHANOR_SET
#undef ATHANOR_GROUP
#undef ATHANOR_PLAIN_GROUP

}  // namespace

std::span<const KeyRow> KeyRows() { return kRows; }

}  // namespace athanor
