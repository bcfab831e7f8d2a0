#include "submit/job_file.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text/text.h"
#include "submit/errors.h"
#include "submit/job_keys.h"
#include "submit/spec_check.h"

namespace athanor {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

JobSpec Parsed(const std::string& text) {
  auto parsed = ParseJobFile(text, "job.yaml");
  EXPECT_TRUE(parsed.has_value()) << text << "\n"
                                  << (parsed ? ""
                                             : parsed.error().what + ": " + parsed.error().why);
  return parsed ? *parsed : JobSpec{};
}

constexpr const char* kFull = R"(
name: resnet-cifar
experiment: cifar10
run: python3 train.py --lr ${lr} --data ${channel.train}
run_name: baseline
params: {lr: 1e-4, batch: 256, flag: true, note: "1e-4", none: ~, sizes: [1, 2.5, x], inf: .inf}
env: {OMP_NUM_THREADS: 1, MODE: on}
source: {dir: ./src, ignore: ["*.ipynb", data/], max_size: 50MB}
environment:
  base: isolated
  python: 3.10
  requirements: requirements.txt
  index: {url: https://packages.example.org/simple, auth: secret:INDEX_TOKEN}
resources: {cpus: 0.5, memory: 1.5GiB, gpus: 1}
limits: {max_runtime: 8h, stop_grace: 90s, log_size: 64MiB, lost_after: 1h30m}
data:
  train: /data/train
  meta: {from: ./labels.json, mode: shared}
checkpoints: {dir: /opt/ml/checkpoints}
metrics:
  - {name: loss, regex: 'loss=([0-9.eE+-]+|nan)', step: 'step=(\d+)'}
secrets: [HF_TOKEN, {name: DB, from: "command:vault read -field=x db", as: file, optional: true}]
tags: {team: vision, year: 2026}
retry: {max: 3, on: [agent_lost], backoff: 30s}
priority: -5
)";

TEST(JobFile, ReadsEveryKey) {
  const JobSpec spec = Parsed(kFull);
  EXPECT_EQ(spec.name, "resnet-cifar");
  EXPECT_EQ(spec.experiment, "cifar10");
  EXPECT_EQ(spec.run, "baseline");
  EXPECT_TRUE(spec.shell);
  EXPECT_EQ(spec.command,
            std::vector<std::string>{"python3 train.py --lr ${lr} --data ${channel.train}"});
  const std::vector<Param> params = {
      {"lr", "1e-4", Param::Kind::kNumber}, {"batch", "256", Param::Kind::kNumber},
      {"flag", "true", Param::Kind::kBool}, {"note", "1e-4", Param::Kind::kString},
      {"none", "", Param::Kind::kNull},     {"sizes", "[1,2.5,\"x\"]", Param::Kind::kJson},
      {"inf", "inf", Param::Kind::kNumber}};
  EXPECT_EQ(spec.params, params);
  EXPECT_EQ(spec.env,
            (std::map<std::string, std::string>{{"OMP_NUM_THREADS", "1"}, {"MODE", "on"}}));
  EXPECT_EQ(spec.source.dir, "./src");
  EXPECT_EQ(spec.source.ignore, (std::vector<std::string>{"*.ipynb", "data/"}));
  EXPECT_EQ(spec.source.max_size, 50'000'000u);
  EXPECT_EQ(spec.environment.python, "3.10");
  EXPECT_EQ(spec.environment.index_secret, "INDEX_TOKEN");
  EXPECT_EQ(spec.resources.cpu_millis, 500u);
  EXPECT_EQ(spec.resources.memory_bytes, 1'610'612'736u);
  EXPECT_EQ(spec.resources.gpus, 1u);
  EXPECT_EQ(spec.limits.max_runtime, hours{8});
  EXPECT_EQ(spec.limits.stop_grace, seconds{90});
  EXPECT_EQ(spec.limits.lost_after, seconds{5400});
  EXPECT_EQ(spec.limits.log_bytes, 64u << 20);
  const std::vector<ChannelSpec> data = {{"train", "/data/train", "file"},
                                         {"meta", "./labels.json", "shared"}};
  EXPECT_EQ(spec.data, data);
  EXPECT_EQ(spec.checkpoint_dir, "/opt/ml/checkpoints");
  EXPECT_EQ(spec.metrics[0].step_regex, "step=(\\d+)");
  const std::vector<SecretSpec> secrets = {
      {"HF_TOKEN", "store", "", "env", false},
      {"DB", "command", "vault read -field=x db", "file", true}};
  EXPECT_EQ(spec.secrets, secrets);
  EXPECT_EQ(spec.tags.at("year"), "2026");
  EXPECT_EQ(spec.retry.max, 3u);
  EXPECT_EQ(spec.retry.backoff, seconds{30});
  EXPECT_EQ(spec.priority, -5);
  EXPECT_TRUE(CheckSpec(spec).ok());
}

TEST(JobFile, ArgsPutsTheParametersAtTheEndOfTheCommand) {
  for (const char* text :
       {"args: flags\nrun: python train.py\n", "run: python train.py\nargs: flags\n",
        "run: python train.py ${args}\nargs: flags\n"}) {
    const auto spec = ParseJobFile(text, "job.yaml");
    ASSERT_TRUE(spec.has_value()) << text;
    EXPECT_EQ(spec->command, std::vector<std::string>{"python train.py ${args}"}) << text;
  }
  const auto unclear = ParseJobFile("run: a && b\nargs: flags\n", "job.yaml");
  ASSERT_FALSE(unclear.has_value());
  EXPECT_EQ(unclear.error().where, "job.yaml:2:7");
  const auto nothing = ParseJobFile("args: flags\n", "job.yaml");  // the command may come after --
  ASSERT_TRUE(nothing.has_value());
  EXPECT_EQ(CheckSpec(*nothing).error().id, "ATH-S0110");
  EXPECT_EQ(ParseJobFile("run: a\nargs: words\n", "job.yaml").error().id, "ATH-S0107");
}

TEST(JobFile, NeedsNoMoreThanACommand) {
  const JobSpec spec = Parsed("run: [python3, train.py, 'a b']\n");
  EXPECT_FALSE(spec.shell);
  EXPECT_EQ(spec.command, (std::vector<std::string>{"python3", "train.py", "a b"}));
  EXPECT_TRUE(CheckSpec(spec).ok());
}

TEST(JobFile, TakesAGroupWithEverythingCommentedOut) {
  EXPECT_EQ(Parsed("run: a\nlimits:\n  # max_runtime: 8h\n").limits, LimitSpec{});
}

TEST(JobFile, OutputsArePatternsAMapAllOrNone) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(Parsed("run: a\noutputs:\n").outputs, OutputSpec{});
  EXPECT_EQ(Parsed("run: a\noutputs: all\n").outputs, OutputSpec{});
  EXPECT_FALSE(Parsed("run: a\noutputs: none\n").outputs.keep);
  EXPECT_FALSE(Parsed("run: a\noutputs: []\n").outputs.keep);
  EXPECT_FALSE(Parsed("run: a\noutputs: {files: []}\n").outputs.keep);
  EXPECT_EQ(Parsed("run: a\noutputs: ['*.pt', runs/**]\n").outputs,
            (OutputSpec{true, Texts{"*.pt", "runs/**"}, 1ull << 30}));
  EXPECT_EQ(Parsed("run: a\noutputs: {limit: 5GB, files: [a]}\n").outputs,
            (OutputSpec{true, Texts{"a"}, 5'000'000'000}));
  EXPECT_EQ(Parsed("run: a\noutputs: {limit: 10MB}\n").outputs, (OutputSpec{true, {}, 10'000'000}));
}

struct Bad {
  const char* text;
  const char* where;
  const char* id;
  const char* part;
};

constexpr Bad kBad[] = {
    {"", "job.yaml", "ATH-S0110", "ath init"},
    {"- a\n", "job.yaml:1:1", "ATH-S0106", "a map of keys"},
    {"run: x\nnmae: y\n", "job.yaml:2:1", "ATH-S0105", "did you mean 'name'?"},
    {"run: x\nlimits:\n  max_runtme: 8h\n", "job.yaml:3:3", "ATH-S0105",
     "did you mean 'max_runtime'?"},
    {"run: x\nmemory: 8GB\n", "job.yaml:2:1", "ATH-S0105", "belongs elsewhere: resources.memory"},
    {"run: x\nzzzzzzzz: 1\n", "job.yaml:2:1", "ATH-S0105", "known here: name, experiment, run"},
    {"run: x\n'data.*.from': 1\n", "job.yaml:2:1", "ATH-S0105", "unknown key"},
    {"run: x\nenvironment: {lock: a}\n", "job.yaml:2:15", "ATH-S0108", "not available yet"},
    {"run: x\nnodes: 2\n", "job.yaml:2:1", "ATH-S0105", "belongs elsewhere: resources.nodes"},
    {"resources: {nodes: 0}\n", "job.yaml:1:20", "ATH-S0107", "use 1 to 1024"},
    {"resources: {nodes: -1}\n", "job.yaml:1:20", "ATH-S0107", "use 1 to 1024"},
    {"resources: {nodes: 1000000}\n", "job.yaml:1:20", "ATH-S0107", "use 1 to 1024"},
    {"resources: {nodes: two}\n", "job.yaml:1:20", "ATH-S0106", "write it like  nodes: 2"},
    {"resources: {nodes: 1.5}\n", "job.yaml:1:20", "ATH-S0106", "a range such as 1..4"},
    {"resources: {nodes: '2'}\n", "job.yaml:1:20", "ATH-S0106", "a whole number"},
    {"resources: {nodes: [1, 2]}\n", "job.yaml:1:20", "ATH-S0106", "got a list"},
    {"resources: {nodes: 4..1}\n", "job.yaml:1:20", "ATH-S0107", "nodes: 1..4"},
    {"resources: {nodes: 0..4}\n", "job.yaml:1:20", "ATH-S0107", "use 1 to 1024"},
    {"resources: {nodes: 1..1000000}\n", "job.yaml:1:20", "ATH-S0107", "use 1 to 1024"},
    {"resources: {nodes: 1..}\n", "job.yaml:1:20", "ATH-S0106", "a range such as 1..4"},
    {"resources: {nodes: 1..2..3}\n", "job.yaml:1:20", "ATH-S0106", "a range such as 1..4"},
    {"resources: {nodes: 1...4}\n", "job.yaml:1:20", "ATH-S0106", "a range such as 1..4"},
    {"resources: {processes: 0}\n", "job.yaml:1:24", "ATH-S0107", "use 1 to 1024"},
    {"resources: {processes: 1..4}\n", "job.yaml:1:24", "ATH-S0106", "a whole number"},
    {"resources: {nodes: 1024, processes: 9}\n", "job.yaml:1:12", "ATH-S0107",
     "at most 8192 ranks"},
    {"resources: {nodes: 1..1024, processes: 9}\n", "job.yaml:1:12", "ATH-S0107", "9216 ranks"},
    {"run: x\nprofile: {}\n", "job.yaml:2:1", "ATH-S0108", "'profile' is not available yet"},
    {"run: x\noutputs: some\n", "job.yaml:2:10", "ATH-S0106", "all or none"},
    {"run: x\noutputs: {max: 1GB}\n", "job.yaml:2:11", "ATH-S0105", "'outputs' has no such key"},
    {"run: x\noutputs: {limit: lots}\n", "job.yaml:2:18", "ATH-S0107", "outputs.limit"},
    {"run: x\nrules: [nam]\n", "job.yaml:2:9", "ATH-S0107", "nan"},
    {"run: x\nresources: {spot: {preempt_every: 5s±10s}}\n", "job.yaml:2:12", "ATH-S0107",
     "20s±10s"},
    {"run: x\nretry: {on: ['exit:x']}\n", "job.yaml:2:8", "ATH-S0107", "exit:75"},
    {"run: x\nretry: {on: ['log:(']}\n", "job.yaml:2:8", "ATH-S0107", "RE2"},
    {"run: x\nlimits: {hang: {action: explode}}\n", "job.yaml:2:25", "ATH-S0107", "note"},
    {"run: x\ncheckpoints: {store: s3}\n", "job.yaml:2:22", "ATH-S0107", "objects"},
    {"run: x\ntune: 3\n", "job.yaml:2:7", "ATH-S0106", "tune must be a map"},
    {"resources: {type: [a, b]}\n", "job.yaml:1:19", "ATH-S0108", "list of types"},
    {"run: ''\n", "job.yaml:1:6", "ATH-S0110", "run is empty"},
    {"run: {a: b}\n", "job.yaml:1:6", "ATH-S0106", "a text or a list of words"},
    {"run: [a, [b]]\n", "job.yaml:1:10", "ATH-S0106", "a single value"},
    {"run: []\n", "job.yaml:1:6", "ATH-S0110", "run is empty"},
    {"name: @last\n", "job.yaml:1:7", "ATH-S0102", "needs quotes"},
    {"name: '@last'\n", "job.yaml:1:7", "ATH-S0109", "starts with '@'"},
    {"name: -x\n", "job.yaml:1:7", "ATH-S0109", "starts with '-'"},
    {"name: \"a\\nb\"\n", "job.yaml:1:7", "ATH-S0109", "\\x0a"},
    {"name: \"a\\u202Eb\"\n", "job.yaml:1:7", "ATH-S0109", "direction mark"},
    {"name: ''\n", "job.yaml:1:7", "ATH-S0109", "empty"},
    {"limits: {max_runtime: soon}\n", "job.yaml:1:23", "ATH-S0107", "'soon'"},
    {"limits: {max_runtime: 10ms}\n", "job.yaml:1:9", "ATH-S0107", "limits.max_runtime"},
    {"limits: {log_size: 5}\n", "job.yaml:1:9", "ATH-S0107", "limits.log_size"},
    {"resources: {memory: 16}\n", "job.yaml:1:12", "ATH-S0107", "add a unit"},
    {"resources: {memory: lots}\n", "job.yaml:1:21", "ATH-S0107", "'lots'"},
    {"resources: {cpus: -1}\n", "job.yaml:1:19", "ATH-S0107", "out of range"},
    {"resources: {cpus: nan}\n", "job.yaml:1:19", "ATH-S0107", "out of range"},
    {"resources: {gpus: 1.5}\n", "job.yaml:1:19", "ATH-S0106", "a whole number"},
    {"resources: {gpus: '1'}\n", "job.yaml:1:19", "ATH-S0106", "a whole number"},
    {"resources: {gpus: 99999999999999999999}\n", "job.yaml:1:19", "ATH-S0107", "out of range"},
    {"resources: {type: ml.m5.large, cpus: 2}\n", "job.yaml:1:12", "ATH-S0107",
     "both a type and amounts"},
    {"priority: 5000\n", "job.yaml:1:11", "ATH-S0107", "-1000 to 1000"},
    {"params: [1]\n", "job.yaml:1:9", "ATH-S0106", "params must be a map"},
    {"params: {'a b': 1}\n", "job.yaml:1:10", "ATH-S0109", "parameter name"},
    {"params: {channel.x: 1}\n", "job.yaml:1:10", "ATH-S0109", "'channel.' is taken"},
    {"env: {1A: x}\n", "job.yaml:1:7", "ATH-S0109", "variable name"},
    {"env: {CA_REPOSITORY_ARN: x}\n", "job.yaml:1:7", "ATH-S0113", "CodeArtifact"},
    {"env: {A: [x]}\n", "job.yaml:1:10", "ATH-S0106", "env.A must be a single value"},
    {"env: {A: }\n", "job.yaml:1:10", "ATH-S0106", "got nothing"},
    {"environment: {image: x}\n", "job.yaml:1:14", "ATH-S0108", "not available yet"},
    {"environment: {apt: [libgl1]}\n", "job.yaml:1:14", "ATH-S0113", "sudo apt install libgl1"},
    {"environment: {conda: e.yml, requirements: r.txt}\n", "job.yaml:1:14", "ATH-S0113",
     "keep one"},
    {"environment: {base: hots}\n", "job.yaml:1:21", "ATH-S0107", "did you mean 'host'?"},
    {"environment: {base: host, requirements: r.txt}\n", "job.yaml:1:14", "ATH-S0113",
     "installs nothing"},
    {"environment: {requirements: ../r.txt}\n", "job.yaml:1:14", "ATH-S0113",
     "relative to the source"},
    {"environment: {index: {url: 'https://u:p@x/y'}}\n", "job.yaml:1:14", "ATH-S0113", "password"},
    {"environment: {index: {url: ftp://x}}\n", "job.yaml:1:14", "ATH-S0113", "web address"},
    {"environment: {index: {auth: hunter2}}\n", "job.yaml:1:29", "ATH-S0114", "secret:NAME"},
    {"data: {train: gs://b/k}\n", "job.yaml:1:8", "ATH-S0108", "not available yet"},
    {"data: {train: {from: /d, mode: fastfile}}\n", "job.yaml:1:8", "ATH-S0108",
     "'fastfile' is not available yet"},
    {"data: {train: {from: /d, mode: fle}}\n", "job.yaml:1:8", "ATH-S0115", "'fle'"},
    {"data: {train: {mode: file}}\n", "job.yaml:1:8", "ATH-S0115", "`from` is missing"},
    {"data: {../x: /d}\n", "job.yaml:1:8", "ATH-S0115", "channel name"},
    {"data: {train: {from: /d, cache: 5GB}}\n", "job.yaml:1:26", "ATH-S0108", "not available yet"},
    {"metrics: [{name: a, regex: 'a=(\\d+'}]\n", "job.yaml:1:11", "ATH-S0112", "missing )"},
    {"metrics: [{name: a, regex: 'a=\\d+'}]\n", "job.yaml:1:11", "ATH-S0112", "has no group"},
    {"metrics: [{name: a, regex: '(?=a)(b)'}]\n", "job.yaml:1:11", "ATH-S0112", "RE2"},
    {"metrics: [{name: a, regex: '(a)', step: 'b'}]\n", "job.yaml:1:11", "ATH-S0112",
     "the step of metric 'a'"},
    {"metrics:\n- {name: a, regex: (a)}\n- {name: a, regex: (b)}\n", "job.yaml:3:3", "ATH-S0112",
     "first on line 2, again on line 3"},
    {"metrics: [{regex: (a)}]\n", "job.yaml:1:11", "ATH-S0109", "metric name"},
    {"metrics: [loss]\n", "job.yaml:1:11", "ATH-S0106", "a map of keys"},
    {"secrets: [a-b]\n", "job.yaml:1:11", "ATH-S0114", "'a-b'"},
    {"secrets: {A: b}\n", "job.yaml:1:10", "ATH-S0106", "a list of names"},
    {"secrets: [{name: A, from: env}]\n", "job.yaml:1:11", "ATH-S0114", "names nothing"},
    {"secrets: [{name: A, from: vault:x}]\n", "job.yaml:1:11", "ATH-S0114", "'vault'"},
    {"secrets: [{name: A, as: fil}]\n", "job.yaml:1:25", "ATH-S0107", "did you mean 'file'?"},
    {"secrets: [{name: A, optional: yes}]\n", "job.yaml:1:31", "ATH-S0106", "true or false"},
    {"retry: {on: [agent_lots]}\n", "job.yaml:1:8", "ATH-S0107", "did you mean 'agent_lost'?"},
    {"tags: {'': x}\n", "job.yaml:1:8", "ATH-S0102", "a key is missing"},
};

TEST(JobFile, SaysWhereWhyAndWhatToDoAboutEachMistake) {
  for (const auto& row : kBad) {
    const auto parsed = ParseJobFile(row.text, "job.yaml");
    ASSERT_FALSE(parsed.has_value()) << row.text;
    const Error& error = parsed.error();
    EXPECT_EQ(error.where, row.where) << row.text;
    EXPECT_EQ(error.id, row.id) << row.text << error.what;
    const std::string all = error.what + "\n" + error.why + "\n" + error.hint;
    EXPECT_NE(all.find(row.part), std::string::npos) << row.text << " gave\n" << all;
    EXPECT_FALSE(error.why.empty()) << row.text;
    EXPECT_FALSE(error.hint.empty()) << row.text;
    EXPECT_NE(FindSubmitError(error.id), nullptr) << error.id;
  }
}

TEST(JobFile, NeverRepeatsWhatMayBeAPassword) {
  for (const char* text : {"environment: {index: {auth: hunter2}}\n",
                           "environment: {index: {url: 'https://me:hunter2@x/y'}}\n"}) {
    const auto parsed = ParseJobFile(text, "job.yaml");
    ASSERT_FALSE(parsed.has_value());
    const Error& error = parsed.error();
    EXPECT_EQ((error.what + error.why + error.hint).find("hunter2"), std::string::npos);
  }
}

TEST(JobFile, ShortensAndCleansLongNamesInMessages) {
  const auto parsed = ParseJobFile("name: " + std::string(64 << 10, 'x') + "\n", "job.yaml");
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().why, "it has 65536 characters; the limit is 256");
  JobSpec spec = Parsed("run: x\n");
  spec.name = std::string("a\0b", 3);
  EXPECT_FALSE(CheckSpec(spec).ok());
  spec.name = std::string(256, 'x');
  EXPECT_TRUE(CheckSpec(spec).ok());
}

TEST(JobFile, FlagsGiveTheSameAsTheFile) {
  const JobSpec file = Parsed(
      "name: n\nexperiment: e\nparams: {lr: 0.1, note: a=b, big: 1e-4}\nenv: {A: x y}\n"
      "resources: {cpus: 2, memory: 1GiB, gpus: 1}\nlimits: {max_runtime: 90s, stop_grace: 5s}\n"
      "tags: {k: v}\ndata: {train: {from: '/d:e', mode: shared}, val: 'C:/x'}\n"
      "metrics: [{name: loss, regex: 'loss=(.*)'}]\nsecrets: [S, {name: T, from: 'env:U'}]\n"
      "priority: -3\n");
  JobSpec flags;
  const std::pair<const char*, const char*> given[] = {{"--name", "n"},
                                                       {"--experiment", "e"},
                                                       {"-p", "lr=0.1"},
                                                       {"-p", "note=a=b"},
                                                       {"--param", "big=1e-4"},
                                                       {"-e", "A=x y"},
                                                       {"--cpus", "2"},
                                                       {"--memory", "1GiB"},
                                                       {"--gpus", "1"},
                                                       {"--max-time", "90s"},
                                                       {"limits.stop_grace", "5s"},
                                                       {"--tag", "k=v"},
                                                       {"-i", "train=/d:e:shared"},
                                                       {"-i", "val=C:/x"},
                                                       {"--metric", "loss=loss=(.*)"},
                                                       {"-s", "S"},
                                                       {"-s", "T=env:U"},
                                                       {"--priority", "-3"}};
  for (const auto& [flag, value] : given) {
    const Status status = ApplyFlag(flags, flag, value);
    EXPECT_TRUE(status.ok()) << flag << " " << value << ": " << status.error().why;
  }
  EXPECT_EQ(flags, file);
}

TEST(JobFile, NoGpusIsNotTheSameAsNothingAsked) {
  EXPECT_FALSE(Parsed("run: x\n").resources.no_gpus);
  EXPECT_TRUE(Parsed("run: x\nresources: {gpus: 0}\n").resources.no_gpus);
  JobSpec spec = Parsed("run: x\nresources: {gpus: 2}\n");
  EXPECT_FALSE(spec.resources.no_gpus);
  ASSERT_TRUE(ApplyFlag(spec, "--gpus", "auto").ok());
  EXPECT_EQ(spec, Parsed("run: x\nresources: {gpus: auto}\n"));
  EXPECT_EQ(spec, Parsed("run: x\n"));
  ASSERT_TRUE(ApplyFlag(spec, "--gpus", "0").ok());
  EXPECT_TRUE(spec.resources.no_gpus);
  ASSERT_TRUE(ApplyFlag(spec, "--gpus", "1").ok());
  EXPECT_FALSE(spec.resources.no_gpus);
}

TEST(JobFile, NodesAreACountOrARange) {
  const auto nodes = [](const std::string& value) {
    return Parsed("run: x\nresources: {nodes: " + value + "}\n").resources;
  };
  EXPECT_EQ(nodes("3").nodes, 3u);
  EXPECT_EQ(nodes("3").nodes_most, 0u);
  for (const char* range : {"1..4", "'1..4'", "1 .. 4"}) {
    EXPECT_EQ(nodes(range).nodes, 1u) << range;
    EXPECT_EQ(nodes(range).nodes_most, 4u) << range;
  }
  EXPECT_EQ(nodes("2..2"), nodes("2"));
  EXPECT_EQ(nodes("1024").nodes, kMostNodes);
  JobSpec spec = Parsed("run: x\nresources: {nodes: 1..4, processes: 8}\n");
  EXPECT_EQ(spec.resources.processes, 8u);
  ASSERT_TRUE(ApplyFlag(spec, "--nodes", "2").ok());
  ASSERT_TRUE(ApplyFlag(spec, "--processes", "4").ok());
  EXPECT_EQ(spec, Parsed("run: x\nresources: {nodes: 2, processes: 4}\n"));
  ASSERT_TRUE(ApplyFlag(spec, "--nodes", "2..3").ok());
  EXPECT_EQ(spec.resources.nodes_most, 3u);
}

TEST(JobFile, AFlagReplacesWhatTheFileSaid) {
  JobSpec spec = Parsed("run: x\nparams: {lr: 0.1, b: 2}\ndata: {train: /a}\n");
  ASSERT_TRUE(ApplyFlag(spec, "-p", "lr=1e-3").ok());
  ASSERT_TRUE(ApplyFlag(spec, "-i", "train=/b").ok());
  EXPECT_EQ(spec.params[0].value, "1e-3");
  EXPECT_EQ(spec.params.size(), 2u);
  EXPECT_EQ(spec.data.size(), 1u);
  EXPECT_EQ(spec.data[0].from, "/b");
}

TEST(JobFile, ARefusedFlagChangesNothingAndNamesItself) {
  JobSpec spec = Parsed("run: x\n");
  const JobSpec before = spec;
  const std::pair<const char*, const char*> bad[] = {
      {"-p", "lr"},         {"-p", "=1"},
      {"--memory", "16"},   {"--cpus", "many"},
      {"--gpus", "-1"},     {"--nodes", "4..1"},
      {"--processes", "0"}, {"--max-time", "x"},
      {"-i", "train"},      {"-i", "train=/d:pipe"},
      {"--metric", "a=b"},  {"-s", "a-b"},
      {"--name", "-x"},     {"-e", "CA_REPOSITORY_ARN=x"},
      {"--nmae", "x"},      {"rules", "x"},
      {"data.*.from", "x"}, {"params", "x"}};
  for (const auto& [flag, value] : bad) {
    const Status status = ApplyFlag(spec, flag, value);
    ASSERT_FALSE(status.ok()) << flag << " " << value;
    EXPECT_FALSE(status.error().hint.empty()) << flag;
    EXPECT_EQ(spec, before) << flag;
  }
  EXPECT_EQ(ApplyFlag(spec, "--memory", "16").error().where, "--memory");
  EXPECT_EQ(ApplyFlag(spec, "--nmae", "x").error().hint, "did you mean --name?");
}

TEST(CheckSpec, RefusesWhatNoMachineCouldRun) {
  const JobSpec good = Parsed(kFull);
  const std::pair<const char*, void (*)(JobSpec&)> bad[] = {
      {"ATH-S0110", [](JobSpec& s) { s.command.clear(); }},
      {"ATH-S0107", [](JobSpec& s) { s.command = {std::string("a\0b", 3)}; }},
      {"ATH-S0107", [](JobSpec& s) { s.command = {std::string(200 << 10, 'x')}; }},
      {"ATH-S0107", [](JobSpec& s) { s.params.push_back(s.params[0]); }},
      {"ATH-S0107", [](JobSpec& s) { s.metrics.push_back(s.metrics[0]); }},
      {"ATH-S0112", [](JobSpec& s) { s.metrics[0].regex = "("; }},
      {"ATH-S0107", [](JobSpec& s) { s.secrets.push_back(s.secrets[0]); }},
      {"ATH-S0115", [](JobSpec& s) { s.data[0].mode = ""; }},
      {"ATH-S0108", [](JobSpec& s) { s.data[0].mode = "pipe"; }},
      {"ATH-S0113", [](JobSpec& s) { s.env["CA_REPOSITORY_ARN"] = "x"; }},
      {"ATH-S0107", [](JobSpec& s) { s.priority = 1001; }},
      {"ATH-S0107", [](JobSpec& s) { s.resources.nodes = 0; }},
      {"ATH-S0107", [](JobSpec& s) { s.resources.nodes = 1'000'000; }},
      {"ATH-S0107", [](JobSpec& s) { s.resources.nodes = 4, s.resources.nodes_most = 1; }},
      {"ATH-S0107", [](JobSpec& s) { s.resources.processes = 0; }},
      {"ATH-S0107", [](JobSpec& s) { s.resources.nodes = s.resources.processes = 1024; }},
      {"ATH-S0107", [](JobSpec& s) { s.limits.stop_grace = hours{100}; }},
      {"ATH-S0107", [](JobSpec& s) { s.retry.on = {"user_stop"}; }},
      {"ATH-S0109", [](JobSpec& s) { s.experiment = "a\x1b[31mb"; }},
  };
  for (const auto& [id, spoil] : bad) {
    JobSpec spec = good;
    spoil(spec);
    const Status status = CheckSpec(spec);
    ASSERT_FALSE(status.ok()) << id;
    EXPECT_EQ(status.error().id, id) << status.error().what;
    EXPECT_FALSE(status.error().hint.empty());
  }
}

TEST(JobSchema, HasEveryAvailableKeyAndNoOther) {
  const Json schema = JobFileSchema();
  EXPECT_EQ(schema["additionalProperties"], false);
  for (const auto& row : KeyRows()) {
    const Json* at = &schema;
    bool there = true;
    std::string path = ReplaceAll(std::string(row.path), "[]", ".[]");
    for (const auto& part : Split(path, '.')) {
      if (part == "*") {
        at = &(*at)["additionalProperties"]["anyOf"][1];
      } else if (part == "[]") {
        at = &(*at)["items"]["anyOf"][1];
      } else if (at->contains("properties") && (*at)["properties"].contains(part)) {
        at = &(*at)["properties"][part];
        if (at->contains("anyOf") && (*at)["anyOf"].back().contains("properties")) {
          at = &(*at)["anyOf"].back();  // a short form and a map
        }
      } else {
        there = false;
        break;
      }
    }
    EXPECT_EQ(there, row.set != nullptr) << row.path;
    EXPECT_FALSE(row.doc.empty()) << row.path;
    EXPECT_EQ(row.example.empty(), row.set == nullptr) << row.path;
  }
}

TEST(JobSchema, EveryExampleOfTheTableIsAccepted) {
  for (const auto& row : KeyRows()) {
    // These are known but refused on this machine, whatever their value.
    const std::set<std::string_view> refused = {"environment.apt", "environment.image"};
    if (row.set == nullptr || refused.contains(row.path)) continue;
    std::string text(row.example);
    std::string path(row.path);
    if (StartsWith(path, "metrics[]"))
      text = "[{name: m, regex: (a), " + path.substr(10) + ": " + text + "}]";
    if (StartsWith(path, "secrets[]")) text = "[{name: S, " + path.substr(10) + ": " + text + "}]";
    if (path == "rules[].action") text = "[{rule: nan, action: " + text + "}]";
    if (path == "rules[].url") text = "[{rule: nan, action: webhook, url: '" + text + "'}]";
    if (path == "rules[].rule") text = "[{rule: " + text + "}]";
    if (StartsWith(path, "rules[]") && text[0] != '[') {
      static const std::map<std::string_view, std::string_view> kKinds = {{"value", "above"},
                                                                          {"window", "plateau"},
                                                                          {"min_delta", "plateau"},
                                                                          {"goal", "plateau"},
                                                                          {"after", "no_progress"}};
      const auto kind = kKinds.find(path.substr(8));
      text = "[{rule: " + std::string(kind == kKinds.end() ? "nan" : kind->second) + ", " +
             path.substr(8) + ": " + text + "}]";
    }
    if (StartsWith(path, "data.*")) text = "{c: {from: /d, " + path.substr(7) + ": " + text + "}}";
    // The rows that complete each other would be given twice.
    text = ReplaceAll(text, "name: m, regex: (a), name:", "regex: (a), name:");
    text = ReplaceAll(text, "regex: (a), regex:", "regex:");
    text = ReplaceAll(text, "name: S, name:", "name:");
    text = ReplaceAll(text, "from: /d, from:", "from:");
    if (path.find_first_of("*[") != std::string::npos)
      path = path.substr(0, path.find_first_of(".["));
    if (path == "environment.index.auth") {
      path = "environment.index";
      text = "{url: https://x, auth: " + text + "}";
    }
    for (size_t dot; (dot = path.rfind('.')) != std::string::npos; path = path.substr(0, dot)) {
      text = "{" + path.substr(dot + 1) + ": " + text + "}";
    }
    const auto parsed = ParseJobFile(path + ": " + text + "\n", "job.yaml");
    EXPECT_TRUE(parsed.has_value()) << path << ": " << text << "\n"
                                    << (parsed ? "" : parsed.error().what + parsed.error().why);
  }
}

// Planted bug: a key's dots are always steps of the path.
TEST(TuneSection, SaysWhereAKeyStands) {
  constexpr char kText[] =
      "run: x\n"
      "tune:\n"
      "  metric: loss\n"
      "  budget: {time: 2h, money: 5}\n"
      "  space:\n"
      "    opt.lr: {type: float,\n"
      "             low: 1, high: 0}\n";
  const auto place = [&](std::string_view key) { return PlaceInTuneSection(kText, "j.yaml", key); };
  EXPECT_EQ(place("metric"), "j.yaml:3:3");
  EXPECT_EQ(place("budget.money"), "j.yaml:4:22");
  EXPECT_EQ(place("space.opt.lr"), "j.yaml:6:5");
  EXPECT_EQ(place("space.opt.lr.low"), "j.yaml:7:14");
  EXPECT_EQ(place("space.missing"), "j.yaml:5:3");
  EXPECT_EQ(place("missing"), "j.yaml:2:1");
  EXPECT_EQ(place(""), "j.yaml:2:1");
  EXPECT_EQ(PlaceInTuneSection("run: x\n", "j.yaml", "metric"), "j.yaml");
  EXPECT_EQ(
      PlaceInTuneSection("tune: {space: [{name: a}, {name: b, low: 1}]}", "j.yaml", "space.b.low"),
      "j.yaml:1:37");
}

TEST(JobReference, NamesEveryKey) {
  const std::string page = JobFileReference();
  for (const auto& row : KeyRows()) {
    EXPECT_NE(page.find("`" + std::string(row.path) + "`"), std::string::npos) << row.path;
  }
}

TEST(SubmitErrors, HaveDistinctIdsAndTexts) {
  std::set<std::string_view> ids;
  for (const auto& row : SubmitErrors()) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
    EXPECT_FALSE(row.title.empty());
    EXPECT_FALSE(row.explain.empty());
  }
}

}  // namespace
}  // namespace athanor
