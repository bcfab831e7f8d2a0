#include "cli/errors.h"

#include <algorithm>

#include "base/result.h"
#include "base/text/format.h"
#include "base/text/text.h"
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
    {"ATH-A0001", "not an agent's token",
     "Only the agent of a running attempt can report on it. Its token stops working when the "
     "attempt ends."},
    {"ATH-A0002", "not authorised",
     "The request had no credential and did not come from the server's own user on this machine, "
     "or its token is unknown, expired or revoked. The server's owner creates a token with `ath "
     "token create`; set it as ATHANOR_TOKEN."},
    {"ATH-A0003", "wrong Host",
     "The request's Host header does not name this server. This check blocks web pages that try to "
     "reach a local server through their own DNS name."},
    {"ATH-A0004", "foreign Origin",
     "A web page from another origin called this server. This is never allowed."},
    {"ATH-A0005", "route without a permission",
     "No permission is defined for this route. This is a bug: please report it."},
    {"ATH-A0006", "scope too small",
     "The token is valid, but its scope does not allow this call. A read token can only read, a "
     "submit token can also run and stop jobs, and an admin token can also manage secrets and "
     "tokens."},
    {"ATH-A0007", "CSRF token missing",
     "A browser tried to change something without the X-Athanor-Csrf header. GET /api/v1/session "
     "returns its value."},
    {"ATH-A0008", "link used or expired",
     "A link from `ath ui --link` signs in one browser, once, within two minutes. Create a new "
     "link."},
    {"ATH-A0009", "no such page file",
     "The page in the browser belongs to another version of the server. Reload it."},
    {"ATH-A0011", "no such host",
     "An agent reported for a host that the attempt does not have. The attempt's hosts are counted "
     "from algo-1."},
    {"ATH-A0012", "another host's report",
     "An agent reported for another host than its token is for, or for ranks that run on another "
     "host. Nothing of the report was taken."},
    {"ATH-A0010", "inside a job",
     "A process inside a job called the server without a credential. It runs as the server's user "
     "but does not have that user's rights. It has its job's own token (MLFLOW_TRACKING_TOKEN, for "
     "MLflow calls) and access key (AWS_ACCESS_KEY_ID). If a script needs to do more, give it a "
     "token as a secret."},
    {"ATH-C0001", "no server",
     "No server answered on the socket in ATHANOR_HOME, and none could be started. Run `ath serve` "
     "in the foreground to see why."},
    {"ATH-C0004", "the home was removed",
     "The folder ATHANOR_HOME was deleted while a command waited. Its server and its jobs end with "
     "it."},
    {"ATH-C0002", "the server did not answer",
     "The connection failed or was lost. Each submit carries a key, so trying again never creates "
     "two jobs."},
    {"ATH-C0010", "invalid command line",
     "The arguments are not valid. `ath VERB --help` lists them; everything after -- belongs to "
     "the job."},
    {"ATH-C0011", "nothing to run", "`ath run` needs a job file, or a command after --."},
    {"ATH-C0012", "not a regular expression",
     "--grep takes an RE2 regular expression. Quote it so that the shell does not change it."},
    {"ATH-C0013", "not ended yet", "`ath wait --timeout` gave up; the job continues."},
    {"ATH-C0014", "not a duration",
     "A duration is a number and a unit, largest unit first: 250ms, 90s, 10m, 1h30m, 2d. A number "
     "without a unit is in seconds."},
    {"ATH-C0015", "not a size",
     "A size is a number and a unit: 512 (bytes), 64KB (powers of 1000), 1.5GiB or 2G (powers of "
     "1024)."},
    {"ATH-C0016", "--yes needed",
     "`ath stop` and `ath rm` ask before they act on jobs selected by state, tag, name or age. If "
     "no one can be asked, as in a script, pass --yes; --dry-run only shows the jobs."},
    {"ATH-C0020", "no job to copy from",
     "`ath cp` copies from JOB:PATH to a local path. Without a local path, it lists the files."},
    {"ATH-C0021", "the job has no files",
     "When a script ends, the job keeps what it left: files in the working folder, model/ "
     "(athanor.model_dir(), SM_MODEL_DIR) and output/ (athanor.output_dir(), SM_OUTPUT_DATA_DIR). "
     "This job left nothing, or has not ended. code/ is its source."},
    {"ATH-C0022", "no such file in a job",
     "The job did not keep a file or folder with that name. `ath cp JOB:` lists what it kept."},
    {"ATH-C0023", "nothing to execute", "`ath exec` needs a command after --."},
    {"ATH-C0030", "job file exists",
     "`ath init` does not overwrite a file unless you pass --force."},
    {"ATH-C0031", "no such code", "Errors and `ath why` print codes."},
    {"ATH-C0032", "no such shell", "Completion is available for bash, zsh and fish."},
    {"ATH-C0040", "no script to replay",
     "`ath replay` runs the job's Python script again. It cannot do this for commands that need a "
     "shell. To replay one by hand, use `ath replay JOB --dir FOLDER`, which writes all the files "
     "you need."},
    {"ATH-C0041", "the folder is not empty",
     "A replay needs a folder of its own, so that its files do not mix with others."},
    {"ATH-C0042", "the preflight failed",
     "The short test run on this machine found problems that would make the real run fail. Each "
     "check says what to do; --no-preflight submits the job anyway."},
    {"ATH-C0043", "the request file is not JSON",
     "`ath run --sagemaker` takes the body of a CreateTrainingJob call. `aws sagemaker "
     "create-training-job --generate-cli-skeleton` prints a template."},
    {"ATH-C0050", "the folder is not empty",
     "`ath export tb` writes each run to a folder of its own, because TensorBoard treats all event "
     "files in a folder as one run. `ath export mlflow` writes each run only once."},
    {"ATH-C0051", "no event files",
     "`ath import tb` reads TensorBoard event files: files with \"tfevents\" in their names, in "
     "the folder or its subfolders."},
    {"ATH-C0060", "the server's disk is full",
     "The server confirms a change only when it is saved on disk, and the disk is full. The server "
     "waits and continues by itself when there is space again: nothing is lost, and your request "
     "is then carried out. Scripts keep running, except those that print to the full disk. `ath "
     "server status` shows how much space is free and how much is needed."},
    {"ATH-K0001", "invalid secret name",
     "A secret's name is also the name of its environment variable: letters, digits and _, not "
     "starting with a digit."},
    {"ATH-K0002", "invalid secret value",
     "A secret's value must have between 6 bytes and 64 KiB, and no NUL byte. Shorter values "
     "cannot be masked in logs, and an environment variable cannot hold longer values or NUL "
     "bytes."},
    {"ATH-K0003", "no such secret",
     "The built-in store has no secret with that name. `ath secret ls` lists the names."},
    {"ATH-K0004", "no such scope",
     "A token's scope is read (can only read), submit (can also run and stop jobs) or admin (can "
     "also manage secrets and tokens)."},
    {"ATH-K0005", "no such token",
     "No token has that id. `ath token ls` lists the ids; the tokens themselves are not stored."},
    {"ATH-K0006", "the token cannot be created",
     "Its note must be short plain text, and it must expire in the future."},
    {"ATH-R0001", "no such job",
     "No job has that name or id, or an id that starts or ends like that. `ath ps -a` lists all "
     "jobs. @last is the newest job, @last-failed the newest one that failed."},
    {"ATH-R0002", "several jobs match",
     "More than one job id matches. Give more characters, or the last ones: ids of jobs created "
     "close together differ at the end."},
    {"ATH-R0003", "not a valid job reference",
     "To refer to a job, use its id, the start or end of its id, its name, @last, @last~1 (the one "
     "before) or @last-failed."},
    {"ATH-R0004", "the job is not running",
     "`ath exec` enters the namespaces of a running script, so it works only while the job runs, "
     "and on the same machine."},
    {"ATH-R0005", "the job has not ended",
     "You can only retry, resume or delete a job that has ended. `ath stop` ends it; `ath "
     "interrupt` makes it continue from its newest checkpoint."},
    {"ATH-R0006", "the job has ended",
     "A job that has ended never runs again. `ath retry` and `ath resume` create a new job from "
     "it."},
    {"ATH-R0007", "no such metric",
     "The job has no metric with that name. `ath metrics JOB` lists its metrics."},
    {"ATH-R0008", "no such output",
     "The job has no output archive with that name. `ath show JOB` lists its outputs."},
    {"ATH-R0009", "no machine to take away",
     "`ath interrupt` works only on a job that has a machine: its state is Placing, Preparing, "
     "Running or Uploading."},
    {"ATH-R0010", "no such checkpoint",
     "The job has no complete checkpoint, or none for that step. `ath checkpoints JOB` lists them; "
     "`ath retry JOB` starts from the beginning."},
    {"ATH-R0011", "no such state",
     "The states are Queued, Placing, Preparing, Running, Uploading, Interrupted, Completed, "
     "Failed and Stopped."},
    {"ATH-R0012", "too few or too many jobs", "You can compare 2 to 16 jobs at once."},
    {"ATH-R0013", "no log",
     "The job has not printed anything yet; `ath why JOB` says what it is doing."},
    {"ATH-R0020", "the SageMaker request was refused",
     "The CreateTrainingJob request does not follow SageMaker's API, or asks for something that is "
     "not available here; the message names the field. docs/sagemaker.md lists what is available."},
    {"ATH-R0014", "invalid request",
     "The body or a parameter of the request does not match /api/v1/openapi.json."},
    {"ATH-R0015", "no captured step",
     "athanor.capture() holds the last steps in memory. They are written to disk when an "
     "exception, a rule or a hang ends the attempt, and stored when the attempt is over."},
    {"ATH-R0016", "nothing at this path",
     "The server has no such page or API call. /api/v1/openapi.json lists the calls; a client of "
     "another version may use different ones."},
    {"ATH-R0017", "method not allowed",
     "This path exists, but does not accept this method. The Allow header lists the methods that "
     "it accepts."},
    {"ATH-R0018", "invalid path",
     "The path of the request is malformed: it has a bad %-escape or a NUL, or it leads outside "
     "the root."},
    {"ATH-R0030", "no such run",
     "To refer to a run, use its id, at least four characters of its id, or its name. `ath runs` "
     "lists the runs."},
    {"ATH-R0031", "invalid filter or order",
     "A filter is one or more conditions joined by AND: metrics.loss < 0.5 AND params.opt = 'adam' "
     "AND status = 'FINISHED'. Put strings in quotes, but not numbers. Put names with special "
     "characters in backticks."},
    {"ATH-R0040", "no such source",
     "The job was submitted without a source folder, its source was deleted, or the source has no "
     "such file."},
    {"ATH-R0041", "no such artifact",
     "The run has no artifact with this name. Its artifacts are the files logged to it with "
     "MLflow's log_artifact and similar calls."},
    {"ATH-R0042", "no such media",
     "The run's event files have nothing of this kind and name, or they changed after the page "
     "listed them."},
    {"ATH-R0046", "too many metric names",
     "A run can have at most 100,000 metric names. Points for existing names are stored; points "
     "for new names are not. Use one name with a step, instead of putting numbers in names."},
    {"ATH-S0201", "key used for another job",
     "An idempotency key belongs to one submit. Submitting the same job again with the same key "
     "returns the same id; submitting another job with it is refused."},
    {"ATH-S0202", "disk too full",
     "The server accepts jobs only while at least 64 MiB are free where it stores its data, so "
     "that it can record what running jobs do."},
    {"ATH-S0203", "source not uploaded",
     "The job refers to a source bundle that the server does not have. Clients must upload the "
     "blobs that POST /api/v1/blobs/missing lists, with the manifest last."},
    {"ATH-S0204", "secret not set",
     "The job uses a secret that is not in the built-in store. `ath secret set NAME` reads its "
     "value from a prompt or from stdin."},
    {"ATH-S0205", "not possible in the browser",
     "A job file typed into the web page cannot use a source folder, relative paths or a tune "
     "section, because a browser has no folder on the server's machine. The job uses the source of "
     "an earlier job. `ath run job.yaml` uses the folder of the job file."},
    {"ATH-S0206", "the upload could not be stored",
     "Uploads can be large, so the server writes them to a file as they arrive. It could not "
     "create that file in ATHANOR_HOME: the disk is full, there are no free inodes or file "
     "descriptors, or the folder is not writable."},
    {"ATH-S0210", "no such instance type",
     "There is no instance type with that name. `ath types` lists them; use --cpus, --memory and "
     "--gpus to ask for amounts instead."},
    {"ATH-S0211", "more than the machine has",
     "This machine is too small to ever run the job. Ask for less, or set `instances: simulate` in "
     "the server's settings to run larger instance types on the resources it has."},
    {"ATH-S0212", "both a type and amounts",
     "An instance type sets the CPUs, memory and GPUs. Give either a type or amounts, not both."},
    {"ATH-T0001", "invalid search space or trial parameters",
     "A search space is a list of parameters: float and int with low and high, cat with choices, "
     "const with a value. Ranges must not be empty, a log scale needs low > 0, and conditions can "
     "only name parameters listed before them. The parameters of a trial must fit the space."},
    {"ATH-T0002", "no such trial",
     "A tell must use an id that an ask returned, and each trial is told only once. For a trial "
     "made elsewhere, set the id to null and give its params."},
    {"ATH-T0003", "no such strategy",
     "The strategies are auto (which uses bayes, or tpe for many parameters or trials), bayes, "
     "tpe, sobol, random and grid. A grid must have fewer than 10^15 points."},
    {"ATH-T0004", "the grid is finished",
     "Every point of the grid has been tried once, and failed points twice. For more trials, use "
     "more levels or another strategy."},
    {"ATH-T0005", "the journal is damaged",
     "Each line of a search journal has a checksum that covers the lines before it. A line was "
     "changed or is missing; the lines before it can still be used."},
    {"ATH-T0006", "invalid request to `ath tune --stdio`",
     "Requests are JSON objects, one per line: init with a space and a seed, then ask, tell, best "
     "and quit. See docs/tuning.md."},
    {"ATH-T0007", "the journal is in use", "Only one process can write to a journal at a time."},
    {"ATH-T0010", "no such study",
     "To refer to a study, use its name (the newest study with that name), its id, the end of its "
     "id, or @last. `ath tune ls` lists the studies."},
    {"ATH-T0011", "invalid study",
     "The tune section of a job file, or a request for a study, says which metric to optimise, "
     "which parameters to search, and when to end. Unknown keys are refused, because a misspelt "
     "limit would have no effect. docs/tuning.md lists the keys."},
    {"ATH-T0012", "not possible in the study's state",
     "A study that has ended takes no more trials until you extend it; a study that is running "
     "cannot be deleted."},
    {"ATH-T0013", "a warm start from another objective",
     "A study can reuse the values of earlier trials only if they are for the same metric and the "
     "same goal. `transfer: true` reuses the best parameters instead."},
    {"ATH-T0014", "no tune section",
     "`ath tune FILE` reads the job as `ath run FILE` does, and the settings of the search from "
     "its tune section."},
    {"ATH-V0001", "a server is already running",
     "There can be only one server per ATHANOR_HOME. A lock makes sure of that."},
    {"ATH-V0002", "TLS needed",
     "A server that listens on a non-loopback address needs a TLS certificate, and its clients "
     "need tokens."},
    {"ATH-V0003", "port in use",
     "Another program uses the port that --port, or agents.listen in settings.yaml, asks for. "
     "Without --port, or with port 0 in agents.listen, the server uses the port of its home, or "
     "finds a free one and keeps it."},
    {"ATH-V0040", "no systemd",
     "`ath service install` needs systemd. Without it, a crontab line with @reboot starts the "
     "server with the machine; in a container, run `ath serve` as its main program."},
    {"ATH-V0041", "systemd refused",
     "systemd did not do what `ath service` asked for. What it said is shown; `systemctl status` "
     "and `journalctl` know more."},
    {"ATH-V0042", "a server runs by hand",
     "A service cannot take over from an `ath serve` that somebody started by hand. Stop that "
     "server first; running jobs continue."},
    {"ATH-V0043", "needs root",
     "A service of the whole machine is written to /etc/systemd/system, which only root may do. "
     "Without --system the service is your own."},
    {"ATH-V0050", "not confirmed",
     "`ath uninstall` deletes all jobs, runs and models of this server. It asks on a terminal; "
     "elsewhere it needs --yes."},
    {"ATH-V0051", "something has not ended",
     "`ath uninstall` waits until every job and process of the server has ended. Run it again to "
     "wait longer."},
    {"ATH-V0020", "the home is not empty",
     "A backup can only be restored into an empty ATHANOR_HOME, so that data of two servers never "
     "mixes."},
    {"ATH-V0021", "no server data",
     "There is no server data in ATHANOR_HOME, so there is nothing to check or back up."},
    {"ATH-V0022", "invalid backup target",
     "A backup must go to a new path outside ATHANOR_HOME. It never overwrites anything."},
    {"ATH-V0023", "a backup or `ath gc` is running",
     "Only one can run at a time, because `ath gc` could delete files that a backup is about to "
     "copy."},
    {"ATH-V0024", "not a backup",
     "A backup is a folder or archive that `ath server backup` created."},
    {"ATH-V0030", "`ath gc` could not tell what is needed",
     "`ath gc` deletes only files that no job needs. It could not read what some job needs, so it "
     "deleted nothing. `ath fsck` shows what is damaged."},
    {"ATH-V0004", "the server did not stop",
     "The server was asked to stop, but its process is still running: it finishes what it started, "
     "such as a backup or a write to a disk that does not respond. Run `ath server stop` to wait "
     "again. Killing it with kill -9 loses nothing that it confirmed."},
    {"ATH-V0011", "invalid artifact root",
     "The root for MLflow artifacts must be a URI (file:///DIR, s3://BUCKET/...) or an absolute "
     "path, because clients access it directly, from wherever they run."},
    {"ATH-V0010", "invalid settings",
     "The server's settings.yaml has an unknown key or an invalid value."},
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
  std::string out =
      "# Errors and causes\n\nGenerated by `athanor docs errors`; a test compares it with the "
      "program. `ath explain CODE` prints one row.\n\n## Exit statuses\n\n`ath run` and "
      "`ath wait` exit with the script's own status (0-255), or with 128 + n if signal n "
      "ended it. If the script never ran, and for all other commands:\n\n"
      "| status | meaning |\n|---|---|\n";
  for (auto code :
       {ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kConflict, ErrorCode::kUnavailable,
        ErrorCode::kDenied, ErrorCode::kTimeout, ErrorCode::kExhausted, ErrorCode::kCorrupt,
        ErrorCode::kCancelled, ErrorCode::kBug}) {
    out += fmt::format("| {} | {} |\n", RowOf(code).exit_status, RowOf(code).name);
  }
  for (const auto& row : Causes()) {
    if (row.exit_status != 0)
      out += fmt::format("| {} | {} ({}) |\n", row.exit_status, row.title, row.code);
  }
  out +=
      "| 15 | the job failed for another reason before the script ran |\n| 130 | Ctrl-C: stopped "
      "following the job |\n"
      "\nWith `--json`, an error of Athanor itself has `\"origin\": \"athanor\"`.\n\n## Codes\n\n"
      "| code | what | meaning |\n|---|---|---|\n";
  for (const auto& row : AllCodes()) {
    out += fmt::format("| {} | {} | {} |\n", row.code, row.title, row.text);
  }
  return out;
}

}  // namespace athanor
