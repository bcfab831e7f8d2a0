#include "cli/args.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/verb_ui.h"
#include "cli/verbs.h"
#include "run/agent.h"

namespace athanor {
namespace {

// Every verb's values live here until it is called.
struct Values {
  Common common;
  RunOptions run;
  ListOptions list;
  LogOptions logs;
  ServeOptions serve;
  ReplayOptions replay;
  ExportOptions exported;
  ImportOptions imported;
  TuneOptions tune;
  RunsOptions runs;
  StopOptions stop;
  std::string job;
  std::string name;
  std::string text;
  std::string scope = "submit";
  std::vector<std::string> jobs;
  bool flag = false;
  bool other_flag = false;
  bool deep = false;
  std::function<int()> verb;
};

void AddCommon(CLI::App* app, Values& v) {
  app->add_flag("--json", v.common.json, "Machine-readable output");
  app->add_flag("-q,--quiet", v.common.quiet, "No hints");
}

CLI::App* Verb(CLI::App& app, Values& v, const char* name, const char* text,
               std::function<int()> call) {
  auto* verb = app.add_subcommand(name, text);
  AddCommon(verb, v);
  verb->callback([&v, call = std::move(call)] { v.verb = call; });
  return verb;
}

// A flag of the job file's key table: kept in order, applied by ApplyFlag.
void SpecFlag(CLI::App* app, Values& v, const char* flag, const char* key, const char* text,
              bool many = false) {
  auto* option = app->add_option_function<std::vector<std::string>>(
      flag,
      [&v, key](const std::vector<std::string>& values) {
        for (const auto& value : values) v.run.flags.emplace_back(key, value);
      },
      text);
  option->expected(1);
  option->allow_extra_args(false);
  option->multi_option_policy(many ? CLI::MultiOptionPolicy::TakeAll
                                   : CLI::MultiOptionPolicy::TakeLast);
}

void AddSpecFlags(CLI::App* run, Values& v) {
  SpecFlag(run, v, "--name", "--name", "Name of the job");
  SpecFlag(run, v, "--experiment", "--experiment", "Experiment it belongs to");
  SpecFlag(run, v, "--type", "--type", "Instance type, such as ml.m5.large (see ath types)");
  SpecFlag(run, v, "--cpus", "--cpus", "CPUs to reserve: 2, 0.5");
  SpecFlag(run, v, "--memory", "--memory", "Memory to reserve and limit to: 4GB");
  SpecFlag(run, v, "--gpus", "--gpus", "GPUs to reserve");
  SpecFlag(run, v, "--max-time,--max-runtime", "--max-time", "Stop it after this long: 2h");
  run->add_flag_callback("--spot", [&v] { v.run.flags.emplace_back("--spot", "true"); },
                         "On a machine that may be taken away, for a lower price");
  SpecFlag(run, v, "--max-wait", "--max-wait", "Spot: the longest it may wait and run together");
  SpecFlag(run, v, "--preempt-after", "--preempt-after", "Take its machine away once, on purpose");
  SpecFlag(run, v, "--preempt-every", "--preempt-every",
           "... again and again: 20s, or 20s±10s");
  SpecFlag(run, v, "--seed", "--seed", "Of --preempt-every: the same seed, the same times");
  SpecFlag(run, v, "--retries", "--retries", "Try again so many times (see retry in the job file)");
  SpecFlag(run, v, "--priority", "--priority", "Higher goes first");
  SpecFlag(run, v, "--requirements", "--requirements", "requirements.txt to install from");
  SpecFlag(run, v, "-p,--param", "-p", "Parameter, name=value", true);
  SpecFlag(run, v, "-e,--env", "-e", "Environment variable, NAME=value", true);
  SpecFlag(run, v, "-i,--input", "-i", "Data channel, name=path[:mode]", true);
  SpecFlag(run, v, "-s,--secret", "-s", "Secret to give to the job, by name", true);
  SpecFlag(run, v, "--tag", "--tag", "Tag, key=value", true);
  SpecFlag(run, v, "--metric", "--metric", "Metric from the log, name=regex", true);
}

void AddRun(CLI::App& app, Values& v) {
  auto* run = Verb(app, v, "run", "Run a command or a job file as a managed job",
                   [&v] { return RunVerb(v.common, v.run); });
  run->add_option("file", v.run.file, "Job file (YAML)");
  run->add_flag("-d,--detach", v.run.detach, "Submit and leave; do not follow");
  run->add_flag("--debug", v.run.debug, "Verbose environment, faulthandler, anomaly flags");
  run->add_flag("--dry-run", v.run.dry_run, "Check everything, submit nothing");
  run->add_option("--sagemaker", v.run.sagemaker,
                  "A CreateTrainingJob request (JSON) instead of a job file; - reads it");
  run->add_option("--key", v.run.key, "Idempotency key: the same key never makes two jobs");
  run->add_flag("--preflight", v.run.preflight,
                "A few steps here, on a sample of the data; then what to expect");
  run->add_flag("--no-preflight", v.run.no_preflight,
                "No preflight, also where the settings ask for one");
  run->add_option("--preflight-time", v.run.preflight_time, "... for so long at most (30s)");
  run->add_option("--preflight-sample", v.run.preflight_sample,
                  "... on so much of each channel (64 files, 64MB)");
  AddSpecFlags(run, v);
  run->footer("Examples:\n  ath run -- python train.py --epochs 5\n  ath run job.yaml -p lr=0.1\n"
              "  ath run -d --memory 4GB -- python train.py");
}

void AddLooking(CLI::App& app, Values& v) {
  auto* ps = Verb(app, v, "ps", "List jobs, newest first", [&v] { return PsVerb(v.common, v.list); });
  ps->add_flag("-a,--all", v.list.all, "All jobs, not only the newest");
  ps->add_option("-n,--limit", v.list.limit, "How many");
  ps->add_option("--state", v.list.state, "Only these states: Running,Failed");
  ps->add_option("--experiment", v.list.experiment, "Only this experiment");

  auto* queue = Verb(app, v, "queue", "Who waits, in which order, and for what",
                     [&v] { return QueueVerb(v.common, v.list); });
  queue->add_flag("-a,--all", v.list.all, "All of them, not only the first");
  queue->add_option("-n,--limit", v.list.limit, "How many");

  auto* show = Verb(app, v, "show", "Everything about a job", [&v] { return ShowVerb(v.common, v.job, v.flag); });
  show->add_option("job", v.job, "Id, prefix, name, @last or @last-failed")->required();
  show->add_flag("--sagemaker", v.flag, "As DescribeTrainingJob shows it (JSON)");

  auto* logs = Verb(app, v, "logs", "What a job printed", [&v] { return LogsVerb(v.common, v.logs); });
  logs->add_option("job", v.logs.job, "Id, prefix, name, @last or @last-failed")->required();
  logs->add_flag("-f,--follow", v.logs.follow, "Go on until the job is over");
  logs->add_option("--tail", v.logs.tail, "Only the last lines");
  logs->add_option("--since", v.logs.since, "Only what is newer: 10m");
  logs->add_option("--grep", v.logs.grep, "Only lines that match this regular expression");
  logs->add_option("--phase", v.logs.phase, "setup, run or all")
      ->check(CLI::IsMember({"setup", "run", "all"}));
  logs->add_option("--rank", v.logs.rank, "Only this rank");

  auto* why = Verb(app, v, "why", "Why a job waits, failed or was stopped",
                   [&v] { return WhyVerb(v.common, v.job); });
  why->add_option("job", v.job, "Id, prefix, name, @last or @last-failed")->required();

  auto* metrics = Verb(app, v, "metrics", "Metrics of a job",
                       [&v] { return MetricsVerb(v.common, v.job, v.name, v.flag); });
  metrics->add_option("job", v.job, "Id, prefix, name, @last or @last-failed")->required();
  metrics->add_option("name", v.name, "One metric: its points");
  metrics->add_flag("--plot", v.flag, "Draw it");

  auto* runs = Verb(app, v, "runs", "List runs with their params and metrics",
                    [&v] { return RunsVerb(v.common, v.runs); });
  runs->add_option("--filter", v.runs.filter, "\"metrics.loss < 0.5 AND params.opt = 'adam'\"");
  runs->add_option("--sort", v.runs.sort, "By a metric, params.NAME or start_time; -NAME: highest first")
      ->expected(1)->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  runs->add_option("-c,--column", v.runs.columns, "Show these: a metric, or params.NAME")
      ->expected(1)->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  runs->add_option("--experiment", v.runs.experiment, "Only this experiment");
  runs->add_option("-n,--limit", v.runs.limit, "How many");

  auto* compare = Verb(app, v, "compare", "Params and metrics of runs, side by side",
                       [&v] { return CompareVerb(v.common, v.jobs); });
  compare->add_option("runs", v.jobs, "Two runs or more: ids or names")->required()->expected(2, 16);

  auto* events = Verb(app, v, "events", "What happened, in order",
                      [&v] { return EventsVerb(v.common, v.job, v.flag); });
  events->add_option("job", v.job, "Only this job");
  events->add_flag("-f,--follow", v.flag, "Go on as things happen");
}

void AddActing(CLI::App& app, Values& v) {
  auto* stop = Verb(app, v, "stop", "Stop jobs: SIGTERM, their grace time, SIGKILL",
                    [&v] { return StopVerb(v.common, v.stop); });
  stop->add_option("jobs", v.stop.jobs, "Jobs");
  stop->add_flag("--all", v.stop.all, "All jobs that are not over");
  stop->add_option("--state", v.stop.state, "All in these states: queued,running");
  stop->add_option("--experiment", v.stop.experiment, "All of this experiment");
  stop->add_option("--name", v.stop.name, "All whose name fits: 'lr-*'");
  stop->add_flag("--now", v.stop.now, "Without grace, also those that are stopping");
  stop->add_flag("-y,--yes", v.stop.yes, "Without asking");
  stop->add_flag("--dry-run", v.stop.dry_run, "Only say how many");

  auto* wait = Verb(app, v, "wait", "Wait until jobs are over; the exit status is the job's",
                    [&v] { return WaitVerb(v.common, v.jobs, v.text); });
  wait->add_option("jobs", v.jobs, "Jobs")->required();
  wait->add_option("--timeout", v.text, "Give up after this long: 10m");

  auto* retry = Verb(app, v, "retry", "Run a job again, with what you change",
                     [&v] { return RetryVerb(v.common, v.job, v.run); });
  retry->add_option("job", v.job, "Id, prefix, name, @last or @last-failed")->required();
  retry->add_flag("-d,--detach", v.run.detach, "Submit and leave; do not follow");
  retry->add_option("--key", v.run.key, "Idempotency key");
  retry->add_flag("--debug", v.run.debug, "Verbose environment, faulthandler, anomaly flags");
  AddSpecFlags(retry, v);

  auto* interrupt = Verb(app, v, "interrupt",
                         "Take a job's machine away; it goes on from its last checkpoint",
                         [&v] { return InterruptVerb(v.common, v.jobs, v.text); });
  interrupt->add_option("jobs", v.jobs, "Jobs")->required();
  interrupt->add_option("--grace", v.text, "Between the notice and SIGKILL: 30s; the job's own "
                                           "when not given");

  auto* checkpoints = Verb(app, v, "checkpoints", "Whole checkpoints of a job, newest first",
                           [&v] { return CheckpointsVerb(v.common, v.job); });
  checkpoints->add_option("job", v.job, "Id, prefix, name, @last or @last-failed")->required();

  auto* resume = Verb(app, v, "resume", "Go on from a checkpoint of a job that is over",
                      [&v] { return ResumeVerb(v.common, v.job, v.text, v.run.detach); });
  resume->add_option("job", v.job, "Id, prefix, name, @last or @last-failed")->required();
  resume->add_option("--from", v.text, "A step or checkpoint (ath checkpoints); the newest when "
                                       "not given");
  resume->add_flag("-d,--detach", v.run.detach, "Submit and leave; do not follow");

  auto* replay = Verb(app, v, "replay", "Run a captured step of a job again, here",
                      [&v] { return ReplayVerb(v.common, v.replay); });
  replay->add_option("job", v.replay.job, "Id, prefix, name, @last or @last-failed")->required();
  replay->add_option("--step", v.replay.step, "One of the captured steps; the last when not given");
  replay->add_option("--rank", v.replay.rank, "Captured by this rank; by any when not given")
      ->check(CLI::NonNegativeNumber);
  replay->add_flag("--pdb", v.replay.debug, "Open the debugger on what it raises");
  replay->add_option("--dir", v.replay.dir, "Lay everything out here and leave it");

  auto* diff = Verb(app, v, "diff", "What differs between jobs, and nothing else",
                    [&v] { return DiffVerb(v.common, v.jobs); });
  diff->add_option("jobs", v.jobs, "Two jobs or more")->required()->expected(2, 16);

  auto* exec = Verb(app, v, "exec", "Run a command inside a running job: ath exec JOB -- bash",
                    [&v] { return ExecVerb(v.common, v.job, v.run.command); });
  exec->add_option("job", v.job, "Id, prefix, name or @last")->required();

  auto* cp = Verb(app, v, "cp", "Copy what a job left: ath cp JOB:model/ .",
                  [&v] { return CpVerb(v.common, v.job, v.name); });
  cp->add_option("from", v.job, "JOB:model/..., JOB:output/... or JOB:code/...")->required();
  cp->add_option("to", v.name, "Local path")->required();

  auto* exported = Verb(app, v, "export", "Write a job's metrics as event files, CSV, JSON lines or for MLflow",
                        [&v] { return ExportVerb(v.common, v.exported); });
  exported->add_option("format", v.exported.format, "tb, csv, jsonl or mlflow")
      ->required()
      ->check(CLI::IsMember({"tb", "csv", "jsonl", "mlflow"}));
  exported->add_option("job", v.exported.job, "Id, prefix, name, @last or @last-failed")->required();
  exported->add_option("-o,--output", v.exported.to, "Where to: a file; for mlflow a folder (mlruns); for tb an empty one "
                                                     "(tb-JOB)");
  exported->add_flag("--abandoned", v.exported.abandoned, "Also points that a later attempt made again");

  auto* imported = Verb(app, v, "import", "Bring the scalars of event files in as runs: ath import tb DIR",
                        [&v] { return ImportVerb(v.common, v.imported); });
  imported->add_option("format", v.imported.format, "tb")->required()->check(CLI::IsMember({"tb"}));
  imported->add_option("from", v.imported.from, "A folder as for tensorboard --logdir, or s3://bucket/prefix")->required();
  imported->add_option("--experiment", v.imported.experiment, "Whose runs they are (the folder's name)");
  imported->add_flag("-f,--follow", v.imported.follow, "Go on reading what is written, until Ctrl-C");

  auto* rm = Verb(app, v, "rm", "Remove finished jobs with their logs and metrics",
                  [&v] { return RmVerb(v.common, v.jobs); });
  rm->add_option("jobs", v.jobs, "Jobs")->required();
}

void TuneFlag(CLI::App* app, Values& v, const char* flag, const char* key, const char* text) {
  app->add_option_function<std::string>(
      flag, [&v, key](const std::string& value) { v.tune.set.emplace_back(key, value); }, text);
}

void AddTune(CLI::App& app, Values& v) {
  auto* tune = app.add_subcommand("tune", "Search for good parameters of a job");
  AddCommon(tune, v);
  // The verbs below it have set theirs by then.
  tune->callback([&v, tune] {
    if (!tune->get_subcommands().empty()) return;
    v.verb = v.flag ? std::function<int()>([&v] { return TuneStdioVerb(v.common, v.name); })
                    : [&v] { return TuneVerb(v.common, v.tune); };
  });
  tune->add_option("file", v.tune.file, "Job file (YAML) with a tune section");
  tune->add_flag("-d,--detach", v.tune.detach, "Submit and leave; do not follow");
  tune->add_option("--key", v.tune.key, "Idempotency key: the same key never makes two studies");
  TuneFlag(tune, v, "--name", "name", "Name of the study");
  TuneFlag(tune, v, "--max-trials", "max_trials", "So many trials");
  TuneFlag(tune, v, "--parallel", "parallel", "So many at a time");
  TuneFlag(tune, v, "--strategy", "strategy", "auto, bayes, tpe, sobol, random or grid");
  TuneFlag(tune, v, "--seed", "seed", "The same seed, the same search");
  tune->add_flag("--stdio", v.flag, "No job: one request a line on stdin, one answer a line on stdout");
  tune->add_option("--journal", v.name, "Of --stdio: keep every step in this file, and go on from it");
  tune->footer("Examples:\n  ath tune job.yaml --max-trials 50 --parallel 4\n  ath tune show @last");

  const auto study = [&v](CLI::App* verb) {
    verb->add_option("study", v.tune.study, "Name, id, or @last")->required();
  };
  Verb(*tune, v, "ls", "Studies, newest first", [&v] { return TuneListVerb(v.common); });
  study(Verb(*tune, v, "show", "Best so far, trials, what matters, and what to change",
             [&v] { return TuneShowVerb(v.common, v.tune); }));
  study(Verb(*tune, v, "stop", "Stop a study and its trials",
             [&v] { return TuneStopVerb(v.common, v.tune); }));
  auto* extend = Verb(*tune, v, "extend", "Let a study do more; one that is over goes on",
                      [&v] { return TuneExtendVerb(v.common, v.tune); });
  study(extend);
  TuneFlag(extend, v, "--max-trials", "max_trials", "So many trials in all");
  TuneFlag(extend, v, "--parallel", "parallel", "So many at a time");
  TuneFlag(extend, v, "--target", "target", "End at this value");
  TuneFlag(extend, v, "--no-improvement", "no_improvement", "End after so many trials without a better one");
  extend->add_option("--time", v.tune.time, "So long in all: 2h");
  extend->add_option("--money", v.tune.money, "So much in all: 5");
  extend->add_option("--range", v.tune.params, "Search here from now on: lr=1e-5..1e-2, opt=sgd,adam")
      ->allow_extra_args(false);
  auto* add = Verb(*tune, v, "add", "Have a study try your own parameters, too",
                   [&v] { return TuneAddVerb(v.common, v.tune); });
  study(add);
  add->add_option("params", v.tune.params, "name=value ...")->required();
  auto* exported = Verb(*tune, v, "export", "Write a study's trials as CSV or JSON",
                        [&v] { return TuneExportVerb(v.common, v.tune); });
  study(exported);
  exported->add_option("--format", v.tune.format, "csv or json")->check(CLI::IsMember({"csv", "json"}));
  exported->add_option("-o,--output", v.tune.to, "A file; stdout when not given");
  study(Verb(*tune, v, "rm", "Remove a study that is over; its jobs stay",
             [&v] { return TuneRemoveVerb(v.common, v.tune); }));
}

void AddKeeping(CLI::App& app, Values& v) {
  auto* types = Verb(app, v, "types", "Instance types, their sizes and prices",
                     [&v] { return TypesVerb(v.common, v.name, v.flag, v.other_flag); });
  types->add_option("filter", v.name, "Part of a name");
  types->add_flag("-a,--all", v.flag, "Also those larger than this machine");
  types->add_flag("--spot", v.other_flag, "Those that may be taken away: price, saving, how often");

  auto* secret = app.add_subcommand("secret", "Secrets that jobs may be given");
  secret->require_subcommand(1);
  auto* set = Verb(*secret, v, "set", "Keep a secret; its value comes from stdin or a prompt",
                   [&v] { return SecretSetVerb(v.common, v.name); });
  set->add_option("name", v.name, "NAME")->required();
  Verb(*secret, v, "ls", "Their names", [&v] { return SecretListVerb(v.common); });
  auto* forget = Verb(*secret, v, "rm", "Forget one", [&v] { return SecretRemoveVerb(v.common, v.name); });
  forget->add_option("name", v.name, "NAME")->required();

  auto* env = app.add_subcommand("env", "Variables that lead other programs to this server");
  env->require_subcommand(1);
  auto* aws = Verb(*env, v, "aws", "For boto3, the aws CLI, the SageMaker SDK: eval \"$(ath env aws)\"",
                   [&v] { return EnvAwsVerb(v.common, v.flag); });
  aws->add_flag("--unset", v.flag, "Put back what was before");

  auto* token = app.add_subcommand("token", "Tokens for callers from elsewhere");
  token->require_subcommand(1);
  auto* create = Verb(*token, v, "create", "Make one; it is shown once",
                      [&v] { return TokenCreateVerb(v.common, v.name, v.scope, v.job, v.flag); });
  create->add_option("--note", v.name, "What it is for");
  create->add_option("--scope", v.scope, "read, submit or admin (submit)");
  create->add_option("--expires", v.job, "Life time: 30d");
  create->add_flag("--aws", v.flag, "An access key and its secret, for S3 and other AWS clients");
  Verb(*token, v, "ls", "List them", [&v] { return TokenListVerb(v.common); });
  auto* revoke = Verb(*token, v, "revoke", "Make one void", [&v] { return TokenRevokeVerb(v.common, v.job); });
  revoke->add_option("id", v.job, "Id")->required();
}

void AddHelping(CLI::App& app, Values& v) {
  auto* init = Verb(app, v, "init", "Write a commented job file from what is in this folder", [&v] {
    return InitVerb(v.common, v.name.empty() ? "athanor.yaml" : v.name, v.flag);
  });
  init->add_option("file", v.name, "Where to (athanor.yaml)");
  init->add_flag("--force", v.flag, "Write over an existing one");
  Verb(app, v, "check", "Look this machine over", [&v] { return CheckVerb(v.common); });
  auto* explain = Verb(app, v, "explain", "What a code means", [&v] { return ExplainVerb(v.common, v.name); });
  explain->add_option("code", v.name, "ATH-J0137")->required();
  Verb(app, v, "schema", "JSON schema of job files", [&v] { return SchemaVerb(v.common); });
  auto* completion = Verb(app, v, "completion", "Completion for bash, zsh or fish", [&v, &app] {
    std::vector<std::string> verbs;
    for (const auto* verb : app.get_subcommands([](CLI::App*) { return true; })) {
      if (!verb->get_group().empty()) verbs.push_back(verb->get_name());
    }
    return CompletionVerb(v.common, v.name, verbs);
  });
  completion->add_option("shell", v.name, "bash, zsh or fish")->required();
  auto* docs = Verb(app, v, "docs", "Print a page made from tables", [&v] { return DocsVerb(v.name); });
  docs->add_option("page", v.name)->required();
  docs->group("");
}

void AddServer(CLI::App& app, Values& v) {
  auto* ui = Verb(app, v, "ui", "Open the page in a browser, or print its address",
                  [&v] { return UiVerb(v.common, v.job, v.flag, v.other_flag); });
  ui->add_option("job", v.job, "At this job");
  ui->add_flag("--link", v.flag, "A link that works once, for a browser that is not yours here");
  ui->add_flag("--print", v.other_flag, "Only print it");

  auto* serve = Verb(app, v, "serve", "Run a server in the foreground", [&v] {
    v.serve.home = v.common.home;
    v.serve.json = v.common.json;
    return Serve(v.serve);
  });
  serve->add_option("--port", v.serve.port, "TCP port; 0 takes a free one");
  serve->add_option("--address", v.serve.address, "Address; another than loopback needs TLS");
  serve->add_option("--tls-cert", v.serve.tls_cert, "Certificate (PEM)");
  serve->add_option("--tls-key", v.serve.tls_key, "Key (PEM)");
  serve->add_option("--mlflow-artifact-root", v.serve.mlflow_artifact_root,
                    "Where new experiments keep artifacts: file:///DIR, s3://... (default: here)");
  serve->add_flag("--simulate", v.serve.simulate, "Run types larger than this machine on what there is");
  serve->add_flag("--auto", v.serve.any_port)->group("");

  auto* server = app.add_subcommand("server", "Look at, stop, back up or restore this user's server");
  server->require_subcommand(1);
  Verb(*server, v, "status", "Is it up, where, with what", [&v] { return ServerStatusVerb(v.common); });
  auto* stop = Verb(*server, v, "stop", "Stop it, and wait until it is gone; jobs go on",
                    [&v] { return ServerStopVerb(v.common, v.text); });
  stop->add_option("--timeout", v.text, "Give up after this long (60s)");
  auto* backup = Verb(*server, v, "backup", "Copy all it keeps, also while it runs",
                      [&v] { return ServerBackupVerb(v.common, v.name); });
  backup->add_option("target", v.name, "A new folder, or FILE.tar, .tar.gz, .tar.zst")->required();
  auto* restore = Verb(*server, v, "restore", "Lay a backup out in an empty ATHANOR_HOME",
                       [&v] { return ServerRestoreVerb(v.common, v.name); });
  restore->add_option("from", v.name, "What `ath server backup` made")->required();

  auto* gc = Verb(app, v, "gc", "Remove what no job needs any more",
                  [&v] { return GcVerb(v.common, v.flag, v.name); });
  gc->add_flag("--dry-run", v.flag, "Only say what would go");
  gc->add_option("--older", v.name, "Caches not used, and deleted runs, for that long (30d)");

  auto* fsck = Verb(app, v, "fsck", "Look over all that is kept, while no server runs",
                    [&v] { return FsckVerb(v.common, v.flag, v.deep); });
  fsck->add_flag("--repair", v.flag, "Do what is safe: put damaged files aside, cut torn tails");
  fsck->add_flag("--deep", v.deep, "Read every blob and compare its sha256");

  Verb(app, v, "version", "Version", [&v] { return VersionVerb(v.common); });
}

}  // namespace

namespace {

std::string NameOfVerb(const CLI::App& verb) {
  const auto* parent = verb.get_parent();
  return parent == nullptr ? "ath" : NameOfVerb(*parent) + " " + verb.get_name();
}

// The parser's own words say neither which verb it was nor what would be right. `file` is what
// it took for the job file of `run`.
Error Misunderstood(const CLI::App& app, const CLI::ParseError& e,
                    const std::vector<std::string>& args, const std::string& file) {
  const CLI::App* verb = &app;
  size_t at = 0;
  for (; at < args.size(); ++at) {
    const auto named = verb->get_subcommands(
        [&](const CLI::App* each) { return each->get_name() == args[at]; });
    if (named.empty()) break;
    verb = named.front();
  }
  Error error{ErrorCode::kInvalid, "", NameOfVerb(*verb) + " --help", "", "ATH-C0010", ""};
  const auto suggest = [&](const std::string& given, const std::vector<std::string>& known) {
    if (const auto near = Nearest(given, known)) {
      error.hint = "did you mean " + *near + "?\n" + error.hint;
    }
  };
  const auto verbs =
      verb->get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); });
  if (!verbs.empty() && verb->get_require_subcommand_min() > 0) {
    error.what = NameOfVerb(*verb) + " needs a verb";
    if (at == args.size()) return error;
    error.what = NameOfVerb(*verb) + " has no verb '" + Printable(args[at]) + "'";
    std::vector<std::string> names;
    for (const auto* each : verbs) names.push_back(each->get_name());
    suggest(args[at], names);
    return error;
  }
  error.what = NameOfVerb(*verb) + ": " + e.what();
  const std::string words = e.what();
  if (e.get_name() != "ExtrasError" || words.find(": ") == std::string::npos) return error;
  const auto extra = Split(words.substr(words.find(": ") + 2), ' ').front();
  error.what = NameOfVerb(*verb) + " does not know '" + Printable(extra) + "'";
  if (const auto command = std::find(args.begin(), args.end(), file);
      verb->get_name() == "run" && !file.empty() && command != args.end() &&
      !EndsWith(file, ".yaml") && !EndsWith(file, ".yml")) {
    error.why = "a command stands after --";
    error.hint = "ath run --";
    for (auto word = command; word != args.end(); ++word) error.hint += " " + ShellQuote(*word);
    return error;
  }
  std::vector<std::string> names;
  for (const auto* option : verb->get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  suggest(extra, names);
  return error;
}

// Every job waits for this role to start: it does not pay for the whole command line.
std::optional<int> MainOfAgent(int argc, char** argv) {
  if (argc < 4 || std::string_view(argv[1]) != "agent" || std::string_view(argv[2]) != "--dir") {
    return std::nullopt;
  }
  const std::string_view how = argc > 4 ? argv[4] : "";
  if (how == "--wait") return RunAgentWhenAsked(argv[3]);
  return how == "--end" ? EndAttempt(argv[3]) : RunAgent(argv[3]);
}

}  // namespace

int Main(int argc, char** argv) {
  if (auto status = MainOfAgent(argc, argv)) return *status;
  Values v;
  v.common.home = HomeFromEnvironment();
  // Everything after -- belongs to the job, whatever it looks like.
  std::vector<std::string> args;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--") {
      v.run.command.assign(argv + i + 1, argv + argc);
      break;
    }
    args.emplace_back(argv[i]);
  }
  CLI::App app("Athanor: managed training jobs on your own machines", "ath");
  app.require_subcommand(1);
  AddRun(app, v);
  // Nor does a submit pay for the other verbs.
  if (args.empty() || args.front() != "run") {
    AddLooking(app, v);
    AddActing(app, v);
    AddTune(app, v);
    AddKeeping(app, v);
    AddHelping(app, v);
    AddServer(app, v);
  }
  // After the verbs, which would inherit it.
  app.footer("Start here:\n  ath run -- python train.py    runs it as a managed job\n"
             "  ath why @last                 says how it went, and what to type next");
  // Known before the parser is, so that its own complaints obey it too.
  bool json = std::find(args.begin(), args.end(), "--json") != args.end();
  if (args.empty() && v.run.command.empty()) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  }
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    const Error error = Misunderstood(app, e, args, v.run.file);
    PrintError(error, json);
    return RowOf(error.code).exit_status;
  }
  return v.verb();
}

}  // namespace athanor
