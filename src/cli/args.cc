#include "cli/args.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/text/text.h"
#include "cli/arg_values.h"
#include "cli/completed_app.h"
#include "cli/machine_role.h"
#include "cli/parse_help.h"
#include "cli/screen/help_format.h"
#include "cli/screen/output.h"
#include "cli/screen/refuse.h"
#include "cli/spec_flags.h"
#include "cli/verbs/verb_ui.h"
#include "cli/verbs/verbs.h"
#include "run/agent/agent.h"
#include "run/environment/interpreter.h"

namespace athanor {
namespace {

using args::AddCommon;
using args::AddHelping;
using args::AddKeeping;
using args::AddServer;
using args::Values;
using args::Verb;

constexpr char kJobsHelp[] = "Job ids or names, @last, or one pattern such as 'lr-*'";
constexpr char kJobHelp[] = "Job id, the start or end of one, a name, @last or @last-failed";

// In the parser's group for options without another group.
CLI::Option* Under(CLI::Option* option, const char* group) {
  return *group == '\0' ? option : option->group(group);
}

void AddPass(CLI::App* verb, Values& v) {
  verb->add_flag_callback(
          "-P,--pass", [&v] { v.run.flags.emplace_back("--pass", "flags"); },
          "Pass the parameters to the script as --NAME VALUE")
      ->group(kData);
}

void AddSpecFlags(CLI::App* run, Values& v) {
  for (const auto& row : kSpecFlags) {
    if (std::string_view(row.flag) == "-i,--input") AddPass(run, v);
    if (std::string_view(row.flag) == "--max-wait") {
      run->add_flag_callback(
             "--spot", [&v] { v.run.flags.emplace_back("--spot", "true"); },
             "Run on spot capacity: cheaper, but the machine can be taken away")
          ->group(kSpot);
    }
    auto* option = run->add_option_function<std::vector<std::string>>(
        row.flag,
        [&v, key = row.key](const std::vector<std::string>& values) {
          for (const auto& value : values) v.run.flags.emplace_back(key, value);
        },
        row.text);
    option->type_name(row.value);
    option->expected(1);
    option->allow_extra_args(false);
    option->multi_option_policy(row.many ? CLI::MultiOptionPolicy::TakeAll
                                         : CLI::MultiOptionPolicy::TakeLast);
    Under(option, row.group);
  }
}

void AddRun(CLI::App& app, Values& v) {
  auto* run = Verb(app, v, "run", "Run a command or a job file as a managed job",
                   [&v] { return RunVerb(v.common, v.run); });
  v.help->SetUsage(run,
                   "ath run [OPTIONS] -- COMMAND [ARGS...]\n"
                   "       ath run [OPTIONS] JOB.yaml");
  run->add_option("file", v.run.file, "Job file (YAML)")->type_name("JOB.yaml");
  run->add_flag("-d,--detach", v.run.detach, "Submit the job and return; do not follow its log");
  AddSpecFlags(run, v);
  run->add_flag("--dry-run", v.run.dry_run, "Check everything, but submit nothing")->group(kChecks);
  run->add_flag("--preflight", v.run.preflight,
                "First try a few steps on a sample of the data, and report what to expect")
      ->group(kChecks);
  run->add_flag("--no-preflight", v.run.no_preflight,
                "Skip the preflight, even if the settings ask for one")
      ->group(kChecks);
  run->add_option("--preflight-time", v.run.preflight_time, "Longest time for the preflight (30s)")
      ->type_name("DURATION")
      ->group(kChecks);
  run->add_option("--preflight-sample", v.run.preflight_sample,
                  "How much of each channel the preflight reads (64 files, 64MB)")
      ->type_name("AMOUNT")
      ->group(kChecks);
  run->add_flag("--debug", v.run.debug,
                "Turn on Python's fault handler, verbose libraries and anomaly detection")
      ->group(kEnvironment);
  run->add_option("--key", v.run.key,
                  "Idempotency key: submitting again with the same key returns the same job")
      ->type_name("KEY")
      ->group(kOutput);
  run->add_option("--sagemaker", v.run.sagemaker,
                  "Read a SageMaker CreateTrainingJob request (JSON) from a file, or - for stdin")
      ->type_name("FILE")
      ->group(kOutput);
  run->footer(
      "Examples:\n  ath run -- python train.py --epochs 5\n  ath run job.yaml -p lr=0.1\n"
      "  ath run -d --memory 4GB -- python train.py");
}

// The options that choose many jobs, the same wherever they can be chosen; `what` is "List only".
void AddPick(CLI::App* verb, JobPick& pick, const std::string& what, const char* states,
             const char* aged) {
  verb->add_option("--state", pick.state, what + " in these states: " + states)
      ->type_name("STATES");
  verb->add_option("--tag", pick.tags, what + " with this tag. Can be repeated")
      ->type_name("KEY[=VALUE]")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb->add_option("--experiment", pick.experiment, what + " of this experiment")
      ->type_name("NAME");
  verb->add_option("--name", pick.name, what + " whose name matches: 'lr-*'")->type_name("PATTERN");
  verb->add_option("--older-than", pick.older, what + " that " + aged + " longer ago than this: 7d")
      ->type_name("DURATION");
}

void AddJob(CLI::App* verb, std::string& job) {
  verb->add_option("job", job, kJobHelp)->type_name("JOB")->required();
}

void AddLooking(CLI::App& app, Values& v) {
  auto* ps =
      Verb(app, v, "ps", "List jobs, newest first", [&v] { return PsVerb(v.common, v.list); });
  ps->add_flag("-a,--all", v.list.all, "List all jobs, not only the newest");
  ps->add_option("-n,--limit", v.list.limit, "List at most N jobs")->type_name("N");
  AddPick(ps, v.list.pick, "Only jobs", "running,failed", "ended (or were created)");
  ps->add_flag("-w,--watch", v.list.watch, "Keep the list up to date until Ctrl-C");

  auto* queue =
      Verb(app, v, "queue", "List waiting jobs in the order they will start, and why they wait",
           [&v] { return QueueVerb(v.common, v.list); });
  queue->add_flag("-a,--all", v.list.all, "List all of them, not only the first");
  queue->add_option("-n,--limit", v.list.limit, "List at most N jobs")->type_name("N");

  auto* show = Verb(app, v, "show", "Show everything about a job",
                    [&v] { return ShowVerb(v.common, v.job, v.flag); });
  AddJob(show, v.job);
  show->add_flag("--sagemaker", v.flag, "Print it as SageMaker's DescribeTrainingJob (JSON)");

  auto* logs =
      Verb(app, v, "logs", "Print a job's log", [&v] { return LogsVerb(v.common, v.logs); });
  AddJob(logs, v.logs.job);
  logs->add_flag("-f,--follow", v.logs.follow, "Keep printing until the job ends");
  logs->add_option("--tail", v.logs.tail, "Only the last N lines")->type_name("N");
  logs->add_option("--since", v.logs.since, "Only lines newer than this: 10m")
      ->type_name("DURATION");
  logs->add_option("--grep", v.logs.grep, "Only lines that match this regular expression")
      ->type_name("REGEX");
  logs->add_option("--phase", v.logs.phase, "setup, run or all")
      ->type_name("PHASE")
      ->check(CLI::IsMember({"setup", "run", "all"}));
  logs->add_option("--rank", v.logs.rank, "Only the log of this rank: 0 is the first")
      ->type_name("N");
  logs->add_option("--host", v.logs.host, "Only the log of this host: algo-2, or 2")
      ->type_name("HOST");
  logs->add_flag("--no-prefix", v.logs.no_prefix,
                 "Do not print the rank, such as [1], in front of each line");

  auto* why = Verb(app, v, "why", "Explain why a job waits, failed or was stopped",
                   [&v] { return WhyVerb(v.common, v.job); });
  AddJob(why, v.job);

  auto* metrics = Verb(app, v, "metrics", "Show the metrics of a job",
                       [&v] { return MetricsVerb(v.common, v.metrics); });
  AddJob(metrics, v.metrics.job);
  metrics->add_option("name", v.metrics.name, "Print the points of this metric")
      ->type_name("METRIC");
  metrics->add_flag("--plot", v.metrics.plot, "Draw the metric as a chart");
  metrics->add_flag("-f,--follow", v.metrics.follow, "Keep printing new points until the job ends");

  auto* runs = Verb(app, v, "runs", "List runs with their parameters and metrics",
                    [&v] { return RunsVerb(v.common, v.runs); });
  runs->add_option("--filter", v.runs.filter,
                   "Only runs that match, such as \"metrics.loss < 0.5 AND params.opt = 'adam'\"")
      ->type_name("EXPR");
  runs->add_option("--sort", v.runs.sort,
                   "Sort by a metric, params.NAME or start_time; -NAME puts the highest first")
      ->type_name("KEY")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  runs->add_option("-c,--column", v.runs.columns,
                   "Show this metric or params.NAME. Can be repeated")
      ->type_name("KEY")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  runs->add_option("--experiment", v.runs.experiment, "Only runs of this experiment")
      ->type_name("NAME");
  runs->add_option("-n,--limit", v.runs.limit, "List at most N runs")->type_name("N");

  auto* compare = Verb(app, v, "compare", "Compare the parameters and metrics of runs",
                       [&v] { return CompareVerb(v.common, v.jobs); });
  compare->add_option("runs", v.jobs, "Two or more runs, by id or name")
      ->type_name("RUN")
      ->required()
      ->expected(2, 16);

  auto* events = Verb(app, v, "events", "Show what happened, in order",
                      [&v] { return EventsVerb(v.common, v.job, v.flag); });
  events->add_option("job", v.job, "Only events of this job")->type_name("JOB");
  events->add_flag("-f,--follow", v.flag, "Keep printing as things happen");
}

void AddActing(CLI::App& app, Values& v) {
  auto* stop = Verb(app, v, "stop", "Stop jobs: first SIGTERM, then SIGKILL after a grace period",
                    [&v] { return StopVerb(v.common, v.stop); });
  stop->add_option("jobs", v.stop.jobs, kJobsHelp)->type_name("JOB");
  stop->add_flag("--all", v.stop.pick.all, "Stop all jobs that have not ended");
  AddPick(stop, v.stop.pick, "Stop all jobs", "queued,running", "were created");
  stop->add_flag("--now", v.stop.now,
                 "Send SIGKILL at once, also to jobs that are already stopping");
  stop->add_flag("-y,--yes", v.stop.yes, "Do not ask for confirmation");
  stop->add_flag("--dry-run", v.stop.dry_run, "Only print how many jobs would be stopped");
  stop->footer("Examples:\n  ath stop 'sweep-*'\n  ath stop --tag team=vision --yes");

  auto* wait = Verb(app, v, "wait", "Wait until jobs end, and exit with the job's status",
                    [&v] { return WaitVerb(v.common, v.jobs, v.text); });
  wait->add_option("jobs", v.jobs, kJobHelp)->type_name("JOB")->required();
  wait->add_option("--timeout", v.text, "Give up after this long: 10m")->type_name("DURATION");

  auto* retry = Verb(app, v, "retry", "Run a job again, with the changes you give",
                     [&v] { return RetryVerb(v.common, v.job, v.run); });
  AddJob(retry, v.job);
  retry->add_flag("-d,--detach", v.run.detach, "Submit the job and return; do not follow its log");
  retry->add_flag("--current", v.run.current,
                  "Run the source folder as it is now, not as it was when the job was submitted");
  AddSpecFlags(retry, v);
  retry
      ->add_flag("--debug", v.run.debug,
                 "Turn on Python's fault handler, verbose libraries and anomaly detection")
      ->group(kEnvironment);
  retry
      ->add_option("--key", v.run.key,
                   "Idempotency key: submitting again with the same key returns the same job")
      ->type_name("KEY")
      ->group(kOutput);

  auto* interrupt = Verb(app, v, "interrupt",
                         "Take a job's machine away; the job resumes from its last checkpoint",
                         [&v] { return InterruptVerb(v.common, v.jobs, v.text); });
  interrupt->add_option("jobs", v.jobs, kJobHelp)->type_name("JOB")->required();
  interrupt
      ->add_option("--grace", v.text,
                   "Time between the notice and SIGKILL: 30s (the job's own grace period)")
      ->type_name("DURATION");

  auto* checkpoints = Verb(app, v, "checkpoints", "List the checkpoints of a job, newest first",
                           [&v] { return CheckpointsVerb(v.common, v.job); });
  AddJob(checkpoints, v.job);

  auto* resume = Verb(app, v, "resume", "Start a new job from a checkpoint of one that ended",
                      [&v] { return ResumeVerb(v.common, v.job, v.text, v.run.detach); });
  AddJob(resume, v.job);
  resume->add_option("--from", v.text, "Checkpoint or step to start from (the newest)")
      ->type_name("CHECKPOINT");
  resume->add_flag("-d,--detach", v.run.detach, "Submit the job and return; do not follow its log");

  auto* replay = Verb(app, v, "replay", "Run a captured training step again, on this machine",
                      [&v] { return ReplayVerb(v.common, v.replay); });
  AddJob(replay, v.replay.job);
  replay->add_option("--step", v.replay.step, "Captured step to run (the last)")->type_name("N");
  replay->add_option("--rank", v.replay.rank, "Rank that captured it (any)")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  replay->add_flag("--pdb", v.replay.debug, "Open the Python debugger on an exception");
  replay->add_option("--dir", v.replay.dir, "Write the files here and keep them")->type_name("DIR");

  auto* diff = Verb(app, v, "diff", "Show what differs between jobs",
                    [&v] { return DiffVerb(v.common, v.jobs); });
  diff->add_option("jobs", v.jobs, "Two or more jobs")
      ->type_name("JOB")
      ->required()
      ->expected(2, 16);

  auto* exec = Verb(app, v, "exec", "Run a command inside a running job",
                    [&v] { return ExecVerb(v.common, v.job, v.exec, v.run.command); });
  AddJob(exec, v.job);
  exec->add_option("--rank", v.exec.rank, "Run it next to this rank: 0 is the first")
      ->type_name("N");
  exec->add_option("--host", v.exec.host, "Run it on this host: algo-2, or 2")->type_name("HOST");
  v.help->SetUsage(exec, "ath exec [OPTIONS] JOB -- COMMAND [ARGS...]");
  exec->footer("Example:\n  ath exec @last -- bash");

  auto* cp = Verb(app, v, "cp", "Copy files of a job to this machine, or list them",
                  [&v] { return CpVerb(v.common, v.job, v.name); });
  cp->add_option("from", v.job, "File or folder that the script left, or model/, output/ or code/")
      ->type_name("JOB:PATH")
      ->required();
  cp->add_option("to", v.name, "Local file or folder. Without it, the files are listed")
      ->type_name("PATH");
  cp->footer("Examples:\n  ath cp @last:model/ .\n  ath cp @last:model.pt .\n  ath cp @last:");

  auto* exported =
      Verb(app, v, "export", "Export a job's metrics for TensorBoard or MLflow, or as CSV or JSON",
           [&v] { return ExportVerb(v.common, v.exported); });
  exported->add_option("format", v.exported.format, "tb, csv, jsonl or mlflow")
      ->type_name("FORMAT")
      ->required()
      ->check(CLI::IsMember({"tb", "csv", "jsonl", "mlflow"}));
  AddJob(exported, v.exported.job);
  exported
      ->add_option("-o,--output", v.exported.to,
                   "File to write; for mlflow a folder (mlruns), for tb a new folder (tb-JOB)")
      ->type_name("PATH");
  exported->add_flag("--abandoned", v.exported.abandoned,
                     "Include points that a later attempt logged again");

  auto* imported = Verb(app, v, "import", "Import TensorBoard event files as runs",
                        [&v] { return ImportVerb(v.common, v.imported); });
  imported->add_option("format", v.imported.format, "tb")
      ->type_name("FORMAT")
      ->required()
      ->check(CLI::IsMember({"tb"}));
  imported
      ->add_option("from", v.imported.from,
                   "Folder, as for tensorboard --logdir, or s3://bucket/prefix")
      ->type_name("DIR")
      ->required();
  imported
      ->add_option("--experiment", v.imported.experiment,
                   "Experiment for the runs (the folder's name)")
      ->type_name("NAME");
  imported->add_flag("-f,--follow", v.imported.follow, "Keep reading new points until Ctrl-C");

  auto* rm = Verb(app, v, "rm", "Delete jobs that ended, with their logs and metrics",
                  [&v] { return RmVerb(v.common, v.remove); });
  rm->add_option("jobs", v.remove.jobs, kJobsHelp)->type_name("JOB");
  AddPick(rm, v.remove.pick, "Delete all jobs", "failed,stopped", "ended");
  rm->add_flag("-y,--yes", v.remove.yes, "Do not ask for confirmation");
  rm->add_flag("--dry-run", v.remove.dry_run, "Only print which jobs would be deleted");
  rm->footer("Examples:\n  ath rm --state failed --older-than 7d\n  ath rm 'sweep-*' --dry-run");
}

void TuneFlag(CLI::App* app, Values& v, const char* flag, const char* key, const char* value,
              const char* text) {
  app->add_option_function<std::string>(
         flag, [&v, key](const std::string& given) { v.tune.set.emplace_back(key, given); }, text)
      ->type_name(value);
}

void AddTune(CLI::App& app, Values& v) {
  auto* tune = app.add_subcommand("tune", "Search for the best parameters of a job");
  AddCommon(tune, v);
  // The verbs below it have set theirs by then.
  tune->callback([&v, tune] {
    if (!tune->get_subcommands().empty()) return;
    v.verb = v.flag ? std::function<int()>([&v] { return TuneStdioVerb(v.common, v.name); })
                    : [&v] { return TuneVerb(v.common, v.tune); };
  });
  tune->add_option("file", v.tune.file, "Job file (YAML) with a tune section")
      ->type_name("JOB.yaml");
  tune->add_flag("-d,--detach", v.tune.detach, "Submit the study and return; do not follow it");
  tune->add_flag("-P,--pass", v.tune.pass, "Pass the parameters to the script as --NAME VALUE");
  TuneFlag(tune, v, "--name", "name", "NAME", "Name of the study");
  TuneFlag(tune, v, "--max-trials", "max_trials", "N", "Run at most N trials");
  TuneFlag(tune, v, "--parallel", "parallel", "N", "Run N trials at a time");
  TuneFlag(tune, v, "--strategy", "strategy", "NAME", "auto, bayes, tpe, sobol, random or grid");
  TuneFlag(tune, v, "--seed", "seed", "N", "Seed: the same seed gives the same search");
  for (const auto& row : kSpecFlags) {
    if (std::string_view(row.key) != "--nodes" && std::string_view(row.key) != "--processes")
      continue;
    tune->add_option_function<std::string>(
            row.flag,
            [&v, key = row.key](const std::string& value) {
              v.tune.flags.emplace_back(key, value);
            },
            std::string(row.text) + ". Of each trial")
        ->type_name(row.value);
  }
  tune->add_option("--key", v.tune.key,
                   "Idempotency key: submitting again with the same key returns the same study")
      ->type_name("KEY");
  tune->add_flag("--stdio", v.flag,
                 "Do not run jobs: answer requests on stdin, one JSON object per line");
  tune->add_option("--journal", v.name,
                   "With --stdio: save every step in this file and resume from it")
      ->type_name("FILE");
  tune->footer(
      "Examples:\n  ath tune job.yaml --max-trials 50 --parallel 4\n  ath tune show @last");

  const auto study = [&v](CLI::App* verb) {
    verb->add_option("study", v.tune.study, "Study name, id or @last")
        ->type_name("STUDY")
        ->required();
  };
  Verb(*tune, v, "ls", "List studies, newest first", [&v] { return TuneListVerb(v.common); });
  study(Verb(*tune, v, "show", "Show a study: the best trial so far, all trials, what matters",
             [&v] { return TuneShowVerb(v.common, v.tune); }));
  study(Verb(*tune, v, "stop", "Stop a study and its trials",
             [&v] { return TuneStopVerb(v.common, v.tune); }));
  auto* extend =
      Verb(*tune, v, "extend", "Give a study more trials, time or money; one that ended continues",
           [&v] { return TuneExtendVerb(v.common, v.tune); });
  study(extend);
  TuneFlag(extend, v, "--max-trials", "max_trials", "N", "Run at most N trials in total");
  TuneFlag(extend, v, "--parallel", "parallel", "N", "Run N trials at a time");
  TuneFlag(extend, v, "--target", "target", "VALUE", "Stop when a trial reaches this value");
  TuneFlag(extend, v, "--no-improvement", "no_improvement", "N",
           "Stop after N trials without a better one");
  extend->add_option("--time", v.tune.time, "Stop after this long in total: 2h")
      ->type_name("DURATION");
  extend->add_option("--money", v.tune.money, "Spend at most this much in total: 5")
      ->type_name("AMOUNT");
  extend
      ->add_option("--range", v.tune.params,
                   "Search this range from now on: lr=1e-5..1e-2, opt=sgd,adam")
      ->type_name("NAME=RANGE")
      ->allow_extra_args(false);
  auto* add = Verb(*tune, v, "add", "Add a trial with parameters you choose",
                   [&v] { return TuneAddVerb(v.common, v.tune); });
  study(add);
  add->add_option("params", v.tune.params, "Parameters of the trial")
      ->type_name("NAME=VALUE")
      ->required();
  auto* exported = Verb(*tune, v, "export", "Export the trials of a study as CSV or JSON",
                        [&v] { return TuneExportVerb(v.common, v.tune); });
  study(exported);
  exported->add_option("--format", v.tune.format, "csv or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"csv", "json"}));
  exported->add_option("-o,--output", v.tune.to, "File to write (stdout)")->type_name("FILE");
  study(Verb(*tune, v, "rm", "Delete a study that ended; its jobs stay",
             [&v] { return TuneRemoveVerb(v.common, v.tune); }));
}

// Help lists commands under headings, the everyday ones first.
void GroupVerbs(CLI::App& app, HelpFormat& help) {
  std::vector<std::string> order;
  for (const auto& [group, list] : kVerbGroups) {
    const auto verbs = Split(list, ' ');
    order.emplace_back(group);
    for (auto* verb : app.get_subcommands([&](CLI::App* each) {
           return std::ranges::find(verbs, each->get_name()) != verbs.end();
         })) {
      verb->group(group);
    }
  }
  help.SetOrder(std::move(order));
}

// Every job waits for this role to start: it does not pay for the whole command line.
std::optional<int> MainOfAgent(int argc, char** argv) {
  if (argc < 4 || std::string_view(argv[1]) != "agent") return std::nullopt;
  if (std::string_view(argv[2]) == "--machine") return AnswerBackend(argv[3]);
  if (std::string_view(argv[2]) != "--dir") return std::nullopt;
  const std::string_view how = argc > 4 ? argv[4] : "";
  if (how == "--wait") return RunAgentWhenAsked(argv[3]);
  return how == "--end" ? EndAttempt(argv[3]) : RunAgent(argv[3]);
}

}  // namespace

namespace {

// What people type out of habit: `ath help run`, `ath --version`.
void TakeEverydayForms(std::vector<std::string>& args, const std::vector<std::string>& command) {
  if (args.empty() || !command.empty()) return;
  if (args.front() == "--version" || args.front() == "-V") args.front() = "version";
  if (args.front() == "help") {
    args.erase(args.begin());
    args.emplace_back("--help");
  }
}

// `ath run python train.py`: the command begins at the first word that is neither an option nor a
// job file. What follows is the command's, whatever it looks like.
void TakeBareCommand(const CLI::App& run, std::vector<std::string>& args,
                     std::vector<std::string>& command) {
  for (size_t i = 1; i < args.size(); ++i) {
    const std::string& word = args[i];
    if (StartsWith(word, "-")) {
      if (word.find('=') != std::string::npos) continue;
      const auto* option = run.get_option_no_throw(word);
      if (option == nullptr) return;  // the parser has the better message
      if (option->get_items_expected_max() != 0) ++i;
      continue;
    }
    if (EndsWith(word, ".yaml") || EndsWith(word, ".yml")) return;
    // One word alone may be a job file of any name, or a slip of the finger; so may one before an
    // option.
    const char* path = std::getenv("PATH");
    const bool alone = i + 1 == args.size() || StartsWith(args[i + 1], "-");
    if (alone && FindProgram(word, path ? path : "").empty()) return;
    command.assign(args.begin() + static_cast<ptrdiff_t>(i), args.end());
    args.resize(i);
    return;
  }
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
  TakeEverydayForms(args, v.run.command);
  CLI::App app("Athanor: managed training jobs on your own machines", "ath");
  app.require_subcommand(1);
  app.formatter(v.help);
  app.set_help_flag("-h,--help", "Print this help");
  AddRun(app, v);
  if (!args.empty() && args.front() == "run" && v.run.command.empty()) {
    TakeBareCommand(*app.get_subcommand("run"), args, v.run.command);
  }
  // Nor does a submit pay for the other verbs.
  if (args.empty() || args.front() != "run") {
    AddLooking(app, v);
    AddActing(app, v);
    AddTune(app, v);
    AddKeeping(app, v);
    AddHelping(app, v);
    AddServer(app, v);
  }
  GroupVerbs(app, *v.help);
  // After the verbs, which would inherit it.
  app.footer(
      "Start here:\n  ath run -- python train.py    Run a script as a managed job\n"
      "  ath why @last                 Explain how it went and what to do next\n\n"
      "ath COMMAND --help shows the options of a command.");
  if (!args.empty() && args.front() == "__complete") {
    return CompleteVerb(v.common, CompletedOf(app), {argv + 2, argv + argc});
  }
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
