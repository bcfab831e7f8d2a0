#include "cli/errors.h"

#include <algorithm>

#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "job/causes.h"
#include "submit/errors.h"

namespace athanor {
namespace {

struct Row {
  const char* code;
  const char* title;
  const char* text;
};

constexpr Row kRows[] = {
    {"ATH-A0001", "not an agent's token", "Only the agent of a running attempt may report about it; its token is void once the attempt is over."},
    {"ATH-A0002", "not authorised", "No credential was presented and the caller is not this server's own user on this machine, or the token is unknown, expired or revoked. The owner makes one with `ath token create`; give it as ATHANOR_TOKEN."},
    {"ATH-A0003", "wrong Host", "The request named another host than this server. This check stops pages that reach a local server through a DNS name of theirs."},
    {"ATH-A0004", "foreign Origin", "A web page of another origin called this server. That is never allowed."},
    {"ATH-A0005", "route without a permission", "A route is in no permission table. That is a bug: please report it."},
    {"ATH-A0006", "scope too small", "The token is valid but its scope does not cover the call: read looks, submit runs and stops jobs, admin also manages secrets and tokens."},
    {"ATH-A0007", "CSRF token missing", "A browser asked for a change without the X-Athanor-Csrf header that GET /api/v1/session gives."},
    {"ATH-A0008", "link used or too old", "A link of `ath ui --link` makes one browser the one who asked for it, once and within two minutes. Ask for another."},
    {"ATH-A0009", "no such file of the page", "The page in the browser is of another version of the server than the one that answers now. Reload it."},
    {"ATH-A0010", "inside a job", "A process inside a job called without a credential. It runs as the server's user but does not speak for that user: it has its job's own token (MLFLOW_TRACKING_TOKEN, for MLflow's calls) and access key (AWS_ACCESS_KEY_ID). A script that must do more is given a token as a secret."},
    {"ATH-C0001", "no server", "No server answered on the socket of ATHANOR_HOME and none could be started. `ath serve` in the foreground shows why."},
    {"ATH-C0002", "the server did not answer", "The connection failed or was cut. Submits carry a key, so trying again never makes two jobs."},
    {"ATH-C0010", "command line", "The arguments were not understood. `ath VERB --help` lists them; everything after -- belongs to the job."},
    {"ATH-C0011", "nothing to run", "`ath run` needs a job file, or a command after --."},
    {"ATH-C0012", "not a regular expression", "--grep takes an RE2 expression. Quote it, so that the shell leaves it alone."},
    {"ATH-C0013", "not over yet", "`ath wait --timeout` gave up; the job goes on."},
    {"ATH-C0014", "not a duration", "A time is a number and its unit, largest first: 250ms, 90s, 10m, 1h30m, 2d. A number alone is seconds."},
    {"ATH-C0015", "not a size", "A size is a number and its unit: 512, 64KB (thousands), 1.5GiB or 2G (1024s)."},
    {"ATH-C0020", "no job in the source of a copy", "`ath cp` copies from JOB:path to a local path."},
    {"ATH-C0021", "no such part", "A finished job keeps model/ (what the script wrote to SM_MODEL_DIR), output/ (SM_OUTPUT_DATA_DIR) and code/ (its source)."},
    {"ATH-C0022", "no such file in an output", "The archive does not have that member; copy the whole folder to see what is there."},
    {"ATH-C0023", "nothing to execute", "`ath exec` needs a command after --."},
    {"ATH-C0030", "job file exists", "`ath init` does not write over a file unless told to with --force."},
    {"ATH-C0031", "no such code", "Codes are printed by errors and by `ath why`."},
    {"ATH-C0032", "no such shell", "Completion exists for bash, zsh and fish."},
    {"ATH-C0040", "no script to replay", "`ath replay` starts the job's Python script anew. Commands that need a shell to be understood are replayed by hand: `ath replay JOB --dir FOLDER` lays everything out."},
    {"ATH-C0041", "the folder is not empty", "A replay is laid out in a folder of its own, so that it mixes with nothing."},
    {"ATH-C0042", "the preflight failed", "The short run on this machine showed what would fail on the real one. Each check says what to do; --no-preflight submits the job all the same."},
    {"ATH-C0043", "the request file is no JSON", "`ath run --sagemaker` takes the body of a CreateTrainingJob call, as `aws sagemaker create-training-job --generate-cli-skeleton` prints one."},
    {"ATH-C0050", "the folder is not empty", "`ath export tb` writes a run into a folder of its own: TensorBoard takes all event files of a folder for one run. `ath export mlflow` writes a run once."},
    {"ATH-C0051", "no event files", "`ath import tb` reads TensorBoard's event files: files with \"tfevents\" in their names, in the folder or below it."},
    {"ATH-C0060", "the server's disk is full", "What changes something is answered once it is on the server's disk, and there is no room. The server waits and goes on by itself when there is: nothing is lost, and what was asked for is then done. Scripts go on meanwhile, but for those that print to the full disk. `ath server status` says how much is free and how much is needed."},
    {"ATH-K0001", "a secret's name", "The name of a secret is also the environment variable that carries it: letters, digits and _, not starting with a digit."},
    {"ATH-K0002", "a secret's value", "A value has 6 bytes to 64 KiB and no NUL byte: a shorter one cannot be scrubbed from logs, and an environment variable cannot hold the others."},
    {"ATH-K0003", "no such secret", "The built-in store has no secret of that name. `ath secret ls` lists the names."},
    {"ATH-K0004", "no such scope", "A token's scope is read (looks), submit (also runs and stops jobs) or admin (also manages secrets and tokens)."},
    {"ATH-K0005", "no such token", "No token has that id. `ath token ls` lists them; the token's own text is kept nowhere."},
    {"ATH-K0006", "a token that cannot be made", "Its note must be short plain text, and its end must lie in the future."},
    {"ATH-R0001", "no such job", "No job has that id, beginning or end of an id, or name. `ath ps -a` lists all; @last is the newest, @last-failed the newest that failed."},
    {"ATH-R0002", "several jobs", "The digits given are those of several jobs. Give more of them, or the last ones: those of jobs made close together differ at the end."},
    {"ATH-R0003", "not the name of a job", "A job is named by its id, the beginning or end of it, its name, @last, @last~1 (the one before) or @last-failed."},
    {"ATH-R0004", "the job is not running", "`ath exec` enters the namespaces of a running script, on the machine where it runs."},
    {"ATH-R0005", "the job is not over", "Only a job that has ended can be retried, resumed or removed. `ath stop` ends it; `ath interrupt` lets it go on from its newest checkpoint."},
    {"ATH-R0006", "the job is over", "A job that has ended never runs again: `ath retry` and `ath resume` make a new one from it."},
    {"ATH-R0007", "no such metric", "The job has no points of that name. `ath metrics JOB` lists what it has."},
    {"ATH-R0008", "no such output", "The job kept no archive of that name. `ath show JOB` lists what it kept."},
    {"ATH-R0009", "no machine to take away", "`ath interrupt` acts on a job that holds a machine: one that is placed, prepared, running or uploading."},
    {"ATH-R0010", "no such checkpoint", "The job kept no whole checkpoint, or none of that step. `ath checkpoints JOB` lists them; `ath retry JOB` starts from the beginning."},
    {"ATH-R0011", "no such state", "States are Queued, Placing, Preparing, Running, Uploading, Interrupted, Completed, Failed and Stopped."},
    {"ATH-R0012", "too few or too many jobs", "Two to sixteen jobs are compared at once."},
    {"ATH-R0013", "no log", "The job has printed nothing so far; `ath why JOB` says where it is."},
    {"ATH-R0020", "the SageMaker request was refused", "A CreateTrainingJob request is not as SageMaker's API wants it, or asks for what is not available here; the message names the member. docs/sagemaker.md lists what is."},
    {"ATH-R0014", "request not understood", "The body or a parameter of a request is not what /api/v1/openapi.json describes."},
    {"ATH-R0015", "no captured step", "athanor.capture() keeps the last steps in memory; they are written when an exception, a rule or a hang ends the attempt, and kept when it is over."},
    {"ATH-R0016", "nothing at this path", "The server has no such page or call. /api/v1/openapi.json lists the calls; a client of another version may know others."},
    {"ATH-R0017", "not this method", "The path is there, but not for this method; the header Allow names those it takes."},
    {"ATH-R0018", "not a path", "The path of the request is malformed: a bad %-escape, a NUL or a step outside."},
    {"ATH-R0030", "no such run", "Runs are named by id, by a part of it of at least four digits, or by name. `ath runs` lists them."},
    {"ATH-R0031", "filter or order not understood", "A filter is one or more clauses joined by AND: metrics.loss < 0.5 AND params.opt = 'adam' AND status = 'FINISHED'. Texts stand in quotes, numbers do not; names with other characters in backticks."},
    {"ATH-R0040", "no such source", "The job was submitted without a source folder, or the source was removed, or it has no such file."},
    {"ATH-R0041", "no such artifact", "The run keeps no file of this name. Its artifacts are what was logged to it with MLflow's log_artifact and the like."},
    {"ATH-R0042", "no such media", "The run's event files hold nothing of this kind and name, or were changed since the page asked."},
    {"ATH-R0046", "too many metric names", "A run keeps at most 100,000 metric names. Points of the names it has are stored; those of a new one are not. Use one name and count by step, instead of numbers in names."},
    {"ATH-S0201", "key used for another job", "An idempotency key names one submit. The same key with the same job gives the same id; with another job it is refused."},
    {"ATH-S0202", "disk too full", "Jobs are accepted only while 64 MiB are free where the server keeps its data, so that what runs can be recorded."},
    {"ATH-S0203", "source not uploaded", "The job names a source bundle the server does not have. Clients upload what POST /api/v1/blobs/missing names, the manifest last."},
    {"ATH-S0204", "secret not set", "The job names a secret that the built-in store does not have. `ath secret set NAME` takes its value from a prompt or stdin."},
    {"ATH-S0205", "not in a page", "A job file typed into the page cannot name a source folder, relative paths or a search: a browser is in no folder of the server's machine. It uses the source of an earlier job; `ath run job.yaml` takes the folder it lies in."},
    {"ATH-S0206", "no place for an upload", "What is sent may be large and is written to a file as it comes, never held in memory. No such file could be made in ATHANOR_HOME: the disk is full, there are no inodes or descriptors left, or the folder cannot be written to."},
    {"ATH-S0210", "no such instance type", "The catalogue has no type of that name. `ath types` lists them; --cpus, --memory and --gpus ask by amounts."},
    {"ATH-S0211", "more than the machine has", "The job could never be placed here. Ask for less, or set `instances: simulate` in the server's settings to run a type on what there is."},
    {"ATH-S0212", "a type and amounts", "An instance type fixes CPUs, memory and GPUs; a job names one or the other."},
    {"ATH-T0001", "a search space, or a trial's parameters", "A space is a list of parameters: float and int with low and high, cat with choices, const with a value. Ranges must not be empty, a log scale needs low > 0, conditions name parameters above. What a trial is given must fit the space."},
    {"ATH-T0002", "no such trial", "A tell names the id that an ask gave, and a trial is told once. A trial made elsewhere has the id null and its params."},
    {"ATH-T0003", "no such strategy", "Strategies are auto (which is bayes, or tpe for many parameters or trials), bayes, tpe, sobol, random and grid. A grid must have fewer than 10^15 points."},
    {"ATH-T0004", "the grid is done", "Every point of the grid was asked for once, failed ones twice. More levels, or another strategy, give more trials."},
    {"ATH-T0005", "a damaged journal", "The journal of a search carries a checksum from line to line. A line was changed or is missing; what stands before it can still be used."},
    {"ATH-T0006", "a request of `ath tune --stdio`", "Requests are JSON objects, one a line: init with a space and a seed, then ask, tell, best, quit. docs/tuning.md describes them."},
    {"ATH-T0007", "the journal is in use", "One process writes a journal at a time."},
    {"ATH-T0010", "no such study", "A study is named by its name (the newest of it), its id or the end of it, or @last. `ath tune ls` lists them."},
    {"ATH-T0011", "a study that cannot be", "The tune section of a job file, or a request for a study, says which metric is optimised, over which space, and how long. Unknown keys are refused, because a misspelt limit is no limit. docs/tuning.md lists them."},
    {"ATH-T0012", "the study's state forbids it", "One that is over takes no more trials until it is extended; one that runs cannot be removed."},
    {"ATH-T0013", "a warm start from another objective", "Values of trials are taken over only when they measure the same metric with the same goal. `transfer: true` takes the best parameters instead."},
    {"ATH-T0014", "no tune section", "`ath tune FILE` reads the job as `ath run FILE` does, and the search from its tune section."},
    {"ATH-V0001", "a server already runs", "One server per ATHANOR_HOME: a lock guarantees one writer."},
    {"ATH-V0002", "TLS needed", "A server that listens on another address than loopback must have a certificate, and callers need tokens."},
    {"ATH-V0003", "port taken", "Another program listens there. --port 0 takes a free one and says which."},
    {"ATH-V0020", "the home is not empty", "A backup is restored into an empty ATHANOR_HOME only, so that two homes are never mixed."},
    {"ATH-V0021", "no store", "The folder that ATHANOR_HOME names has no store of a server, so there is nothing to look over or to back up."},
    {"ATH-V0022", "no place for a backup", "A backup goes to a new name outside the home; it never writes over anything."},
    {"ATH-V0023", "a backup or a sweep is being made", "Only one runs at a time: `ath gc` would remove what a backup is about to copy."},
    {"ATH-V0024", "no backup there", "A backup is a folder or archive that `ath server backup` made."},
    {"ATH-V0030", "a sweep that cannot be sure", "`ath gc` removes only what no job needs, and could not read what some job needs; nothing was removed. `ath fsck` says what is damaged."},
    {"ATH-V0004", "the server did not stop", "It was asked to, and its process is still there: it finishes what it has begun, such as a backup or a write to a disk that does not answer. `ath server stop` waits again; ending it with kill -9 loses nothing that was acknowledged."},
    {"ATH-V0011", "no root for artifacts", "The root of MLflow's artifacts is a URI (file:///DIR, s3://BUCKET/...) or an absolute path: clients go there themselves, from wherever they are."},
    {"ATH-V0010", "settings", "settings.yaml of the server has a key or a value it cannot have."},
};

}  // namespace

std::vector<Explained> AllCodes() {
  std::vector<Explained> all;
  for (const auto& row : kRows) all.push_back({row.code, row.title, row.text});
  for (const auto& row : SubmitErrors()) {
    all.push_back({std::string(row.id), std::string(row.title), std::string(row.explain)});
  }
  for (const auto& row : Causes()) {
    all.push_back({std::string(row.code), std::string(row.title), std::string(row.explain)});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.code < b.code; });
  return all;
}

std::optional<Explained> ExplainCode(std::string_view code) {
  auto wanted = ToUpper(code);
  for (auto& row : AllCodes()) {
    if (row.code == wanted) return row;
  }
  if (const auto* cause = FindCause(ToLower(code))) return ExplainCode(cause->code);
  return std::nullopt;
}

std::string ErrorsPage() {
  std::string out = "# Errors and causes\n\nMade by `athanor docs errors`; a test compares it with the "
                    "program. `ath explain CODE` prints one row.\n\n## Exit statuses\n\n`ath run` and "
                    "`ath wait` pass the script's own status through (0-255), and 128 + n when signal n "
                    "ended it. When the script never ran, or for every other verb:\n\n"
                    "| status | meaning |\n|---|---|\n";
  for (auto code : {ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kConflict, ErrorCode::kUnavailable,
                    ErrorCode::kDenied, ErrorCode::kTimeout, ErrorCode::kExhausted, ErrorCode::kCorrupt,
                    ErrorCode::kCancelled, ErrorCode::kBug}) {
    out += fmt::format("| {} | {} |\n", RowOf(code).exit_status, RowOf(code).name);
  }
  for (const auto& row : Causes()) {
    if (row.exit_status != 0) out += fmt::format("| {} | {} ({}) |\n", row.exit_status, row.title, row.code);
  }
  out += "| 15 | the job failed for another reason before the script ran |\n| 130 | Ctrl-C: left the job |\n"
         "\nWith `--json`, a failure of ours carries `\"origin\": \"athanor\"`.\n\n## Codes\n\n"
         "| code | what | meaning |\n|---|---|---|\n";
  for (const auto& row : AllCodes()) {
    out += fmt::format("| {} | {} | {} |\n", row.code, row.title, row.text);
  }
  return out;
}

}  // namespace athanor
