#include "job/causes.h"

#include <iterator>

namespace athanor {
namespace {

constexpr CauseRow kCauses[] = {
    {CauseKind::kCompleted, "ATH-J0000", "the script ended with status 0",
     "The script ended with exit status 0. Its model and output folders were stored.", false, 0},
    {CauseKind::kNonzeroExit, "ATH-J0101", "the script ended with a non-zero status",
     "The script returned a failure, and its last lines do not say more. `ath logs JOB --tail 50` "
     "shows them. `ath run` exits with the same status.",
     false, 0},
    {CauseKind::kPythonException, "ATH-J0102", "an exception was not caught",
     "Python ended with a traceback. `ath why` shows the exception and the last frames that are in "
     "your own files; frames of installed packages are left out.",
     false, 0},
    {CauseKind::kBadImport, "ATH-J0103", "a module could not be imported",
     "The interpreter that the job ran with does not have the module. Put its package into "
     "requirements.txt and run the job with `--requirements requirements.txt`. If the system's "
     "Python "
     "has it, use `--base system`, or `environment: {base: system}` in the job file.",
     false, 0},
    {CauseKind::kMissingFile, "ATH-J0104", "a file or program was not there",
     "The script opened a path, or the job named a program, that does not exist where the job "
     "runs. Jobs run in a copy of the source folder: data outside of it must be a channel "
     "(`data:` in the job file, `-i NAME=PATH` on the command line).",
     false, 127},
    {CauseKind::kMissingVariable, "ATH-J0105", "an environment variable is not set",
     "The script reads an environment variable that the job does not have. A job gets only a few "
     "of "
     "your shell's variables, such as PATH and HOME. Give it others with `-e NAME=VALUE` or `env:` "
     "in the job file, and secrets with `-s NAME`.",
     false, 0, true},
    {CauseKind::kPermissionDenied, "ATH-J0106", "permission was denied",
     "The script may not read, write or execute a file. Write to the folders that the job has for "
     "it, such as $SM_MODEL_DIR. A script that is started by its name needs `chmod +x`.",
     false, 0, true},
    {CauseKind::kBadArguments, "ATH-J0107", "the script does not accept its arguments",
     "The script, or its configuration library, refused an argument or a parameter. `ath show JOB` "
     "has the command as it was run.",
     false, 0, true},
    {CauseKind::kSyntaxError, "ATH-J0108", "the code has a syntax error",
     "Python or the shell could not read the code. `ath why` names the file and the line.", false,
     0, true},
    {CauseKind::kNetworkError, "ATH-J0109", "a host could not be reached",
     "A host name is not known, the host does not answer, or its certificate is not trusted. If "
     "that "
     "passes by itself, let the job try again: `retry: {max: 3, on: [network_error]}`.",
     false, 0, true},
    {CauseKind::kAccessRefused, "ATH-J0110", "a server refused a request",
     "The host answered, but not with what the script asked for: the token is missing or not "
     "accepted (401, 403, a gated repository), nothing is there (404), or it was asked too often "
     "(429). Give the job a token with `ath secret set NAME` and `-s NAME`.",
     false, 0, true},
    {CauseKind::kSegfault, "ATH-J0111", "the script crashed: segmentation fault",
     "A native extension used memory that it must not. The Python stack at the crash is in the "
     "log, "
     "unless faulthandler was switched off.",
     false, 0},
    {CauseKind::kCheckpointMismatch, "ATH-J0112", "a checkpoint does not fit the model",
     "The script loaded a checkpoint of a model with other layers or other sizes. Use the code and "
     "the parameters that the checkpoint was saved with, or start without it.",
     false, 0, true},
    {CauseKind::kWorkerDied, "ATH-J0113", "a process of the job died",
     "A data-loader worker, a rank or another process that the script started ended or does not "
     "answer, and the script failed because of that. The reason is most often further up in the "
     "log. "
     "A worker that was killed has most often used too much memory.",
     false, 0, true},
    {CauseKind::kUnreadableData, "ATH-J0114", "a file or text could not be read",
     "JSON, YAML, a pickle, an archive or an image is damaged, cut short or of another format than "
     "the script expects.",
     false, 0, true},
    {CauseKind::kGpuError, "ATH-J0116", "the GPU or its libraries failed",
     "The script found no GPU, or CUDA, cuDNN or NCCL reported an error. A job sees only the GPUs "
     "that it asks for with `--gpus`.",
     false, 0, true},
    {CauseKind::kNotFinite, "ATH-J0117", "a value is NaN or infinite",
     "The script stopped because the loss, a gradient or its input is not a number. `ath retry JOB "
     "--debug` turns anomaly detection on. The rules nan and inf stop a job when that happens.",
     false, 0, true},
    {CauseKind::kSystemLimit, "ATH-J0118", "a limit of the system was reached",
     "Too many files are open, no more processes can be started, or shared memory (/dev/shm) is "
     "full. Fewer data-loader workers need less of all of them.",
     false, 0, true},
    {CauseKind::kWrongBuild, "ATH-J0119", "a program or library does not fit this machine",
     "It was built for another CPU, a newer system (GLIBC) or another version of a package. "
     "Install "
     "a version that was built for this machine.",
     false, 0, true},
    {CauseKind::kAddressInUse, "ATH-J0120", "a port is taken",
     "The script wants to listen on a port that another program has. Choose another one, or 0 for "
     "any free one.",
     false, 0, true},
    {CauseKind::kSignal, "ATH-J0115", "a signal ended the script",
     "The script received a signal that it did not handle, or a shell reports that a program it "
     "ran "
     "did. The exit status of `ath run` is 128 plus the signal's number.",
     false, 0},
    {CauseKind::kOutOfMemory, "ATH-J0137", "out of memory",
     "The script was killed because the job reached its memory limit (or the allocation "
     "itself was refused). `ath why` shows the peak and the limit; retry with more memory or a "
     "smaller batch.",
     false, 0},
    {CauseKind::kDiskFull, "ATH-J0128", "the disk is full",
     "A write of the job failed because no space was left. Free some space; `ath rm` removes old "
     "jobs with their outputs.",
     false, 0},
    {CauseKind::kUserStop, "ATH-J0201", "stopped by a person",
     "Somebody stopped the job: with `ath stop`, with Ctrl-C, or on the page. The script got "
     "SIGTERM, "
     "and SIGKILL after the job's grace period.",
     false, 0},
    {CauseKind::kTimeLimit, "ATH-J0202", "ran into its time limit",
     "The script ran for longer than limits.max_runtime. It got SIGTERM, and SIGKILL after the "
     "grace "
     "period. Raise the limit, or save checkpoints and continue with `ath resume`.",
     false, 0},
    {CauseKind::kHung, "ATH-J0203", "made no progress",
     "The script printed nothing, logged nothing and used no CPU for longer than limits.hang "
     "allows.",
     false, 0},
    {CauseKind::kServerSilent, "ATH-J0204", "stopped itself after the server's silence",
     "The job file sets limits.lost_after, and the job's agent could not reach the server for that "
     "long. Without this limit, an agent never gives up.",
     true, 0},
    {CauseKind::kLogCapped, "ATH-J0205", "the log was cut",
     "The script printed more than limits.log_size to one stream, and the rest was dropped. Or it "
     "was "
     "stopped while it waited for space on a full disk.",
     false, 0},
    {CauseKind::kMetricUnmatched, "ATH-J0206", "a metric's regex matched nothing",
     "The regular expression of a metric matched none of the first 1,000 lines, or none at all. "
     "Group 1 "
     "must capture the number.",
     false, 0},
    {CauseKind::kParamsUnread, "ATH-J0230", "parameters that the script did not read",
     "The job was given a parameter, but the script did not ask for it: it is not in the command, "
     "the script did not use athanor.params, and it opened none of the files that hold it. It "
     "probably trained with its own default. `ath run -P`, or `args: flags` in the job file, "
     "passes parameters as --name value. For programs that are not Python, reads of SM_HP_NAME "
     "cannot be seen; then it only says that there is no sign of a read.",
     false, 0},
    {CauseKind::kPreempted, "ATH-J0207", "its machine was taken away",
     "The machine was taken away: it was spot capacity, or the job was interrupted on purpose "
     "(`ath interrupt`, --preempt-after, --preempt-every). The script got SIGTERM and the grace "
     "time to save; the job resumes as a new attempt from its last complete checkpoint.",
     true, 0},
    {CauseKind::kMaxWait, "ATH-J0208", "waited longer than it may",
     "Waiting and running together took longer than resources.spot.max_wait. Raise it, or set "
     "resources.spot.fallback to continue as an ordinary job.",
     false, 28},
    {CauseKind::kStoppedEarly, "ATH-J0209", "ended after the stop signal without having finished",
     "The script ended with status 0 after Athanor sent it SIGTERM. That does not count as "
     "completed "
     "unless the script called athanor.done().",
     false, 0},
    {CauseKind::kRuleStop, "ATH-J0210", "a rule stopped it",
     "A rule of the job file fired, and its action is stop. `ath show` prints the metric, the "
     "step, the value and the threshold.",
     false, 0},
    {CauseKind::kRuleRetry, "ATH-J0211", "a rule asked for another attempt",
     "A rule of the job file fired and its action is retry: the job resumes from the last complete "
     "checkpoint.",
     false, 0},
    {CauseKind::kWaitingDisk, "ATH-J0212", "waits for disk space",
     "The disk that holds the job's log is full. Nothing that the script prints is lost: the "
     "script "
     "waits until there is space, then continues by itself. Time limits and `ath stop` still work. "
     "Free some space; `ath rm` removes old jobs with their outputs.",
     false, 0},
    {CauseKind::kWebhook, "ATH-J0213", "a rule's webhook was not delivered",
     "A rule of the job file fired, and its webhook failed: the host did not answer, answered with "
     "an "
     "error, or is not public. The job itself continues. `ath events JOB` shows the host's answer.",
     false, 0},
    {CauseKind::kMetricsQuota, "ATH-J0215", "metrics come too fast",
     "The script logs more points than a job may send (2,000,000 at once, then 50,000 a second). "
     "The "
     "rest waits on disk; when that is full, points are dropped and counted. The script never "
     "waits. "
     "Log less often.",
     false, 0},
    {CauseKind::kMlflowRefused, "ATH-J0216", "the server refused what MLflow logged",
     "The script logs with MLflow through the agent, which answers at once and delivers later. The "
     "server refused a call when it was delivered: for example, the run was deleted, or the name "
     "of a "
     "metric is invalid. The script was not told and continued.",
     false, 0},
    {CauseKind::kMlflowDropped, "ATH-J0217", "what MLflow logged could not be kept",
     "The server could not be reached, and there was no space to keep what the script logged with "
     "MLflow: the disk is full, or more than 1 GiB waited. These calls are lost; the script "
     "continued.",
     false, 0},
    {CauseKind::kTrialStopped, "ATH-J0214", "its study stopped it",
     "The job is a trial of a study, and the study stopped it: by its early-stopping rule, or "
     "because the study ended. `ath tune show STUDY` says which. The script got SIGTERM and its "
     "grace time.",
     false, 0},
    {CauseKind::kTrialPaused, "ATH-J0218", "its study paused it",
     "The job is a trial of a tuning job with `form: promotion`: it reached a rung, and resumes as "
     "a "
     "new job from its newest checkpoint if it is among the best there. The script got SIGTERM and "
     "its grace time.",
     false, 0},
    {CauseKind::kRestoreFailed, "ATH-J0305", "a checkpoint could not be restored",
     "The checkpoint that was asked for is damaged or incomplete, or the disk is full. `ath "
     "checkpoints JOB` lists the complete ones.",
     false, 29},
    {CauseKind::kInstallFailed, "ATH-J0301", "the environment could not be built",
     "Installing the requirements failed. `ath logs JOB --phase setup` shows the installer's "
     "output; "
     "`ath why` names the requirement.",
     false, 20},
    {CauseKind::kSourceFailed, "ATH-J0302", "the source could not be unpacked",
     "The packaged source could not be unpacked on the machine that runs the job: the disk is "
     "full, or "
     "a stored file is damaged.",
     false, 21},
    {CauseKind::kDataFailed, "ATH-J0303", "a data channel could not be provided",
     "A channel's folder was not readable on the machine that runs the job.", false, 22},
    {CauseKind::kSecretMissing, "ATH-J0304", "a secret could not be read",
     "The job names a secret that could not be read when the job started. `ath secret ls` "
     "shows the built-in store's names.",
     false, 23},
    {CauseKind::kLaunchFailed, "ATH-J0311", "the job could not be started on this machine",
     "The back end could not start the job's agent. The reason is the system's error.", true, 24},
    {CauseKind::kAgentLost, "ATH-J0401", "the job's agent and script are gone",
     "Neither the agent nor the supervisor of the attempt is running, and no exit record was "
     "written: "
     "both were killed, or the machine was restarted.",
     true, 25},
    {CauseKind::kHostMissing, "ATH-J0404", "a host of the job never came up",
     "The job runs on several hosts at once. After the first of them was up, the others had five "
     "minutes to come up, and the one that is named did not. What there was of the attempt was "
     "ended, so that it holds no machines while it waits.",
     true, 30},
    {CauseKind::kAgentSilent, "ATH-J0403", "the job's agent does not report",
     "The agent reports about once a second, and the server has not heard from it for half a "
     "minute: "
     "it hangs, its machine sleeps, or the network is down. The script continues without the agent "
     "and "
     "nothing is lost, so nothing is decided about the job. An agent that has died is started "
     "again, so "
     "you may kill one that hangs. A stop takes effect when the agent reports again.",
     true, 0},
    {CauseKind::kUploadFailed, "ATH-J0402", "outputs could not be stored",
     "The script ended, but storing its model or output folder failed.", false, 26},
    {CauseKind::kNeverFits, "ATH-J0501", "asks for more than this machine has",
     "The job asks for more than the whole machine has, so waiting does not help.", false, 27},
    {CauseKind::kWaitingBackend, "ATH-Q0007", "waits at its back end",
     "The job was given to the back end that it is to run on, which has not started it yet. The "
     "reason is the back end's own.",
     false, 0},
    {CauseKind::kWaitingCpus, "ATH-Q0001", "waits for CPUs", "Other jobs use the CPUs it needs.",
     false, 0},
    {CauseKind::kWaitingMemory, "ATH-Q0002", "waits for memory",
     "Other jobs use the memory it needs.", false, 0},
    {CauseKind::kWaitingGpus, "ATH-Q0003", "waits for GPUs", "Other jobs use the GPUs it needs.",
     false, 0},
    {CauseKind::kWaitingTurn, "ATH-Q0004", "waits for its turn",
     "Jobs with a higher priority, or that were submitted earlier, start first.", false, 0},
    {CauseKind::kBackoff, "ATH-Q0005", "waits before the next attempt",
     "The last attempt did not fail because of the script. The next one starts after a pause.",
     false, 0},
    {CauseKind::kQueued, "ATH-Q0006", "was just accepted", "The queue has not checked it yet.",
     false, 0},
    {CauseKind::kPeerFailed, "ATH-J0219", "another rank or host failed first",
     "A rank or host of the job failed, and the others were told to stop. `ath why` names the one "
     "that failed first, with its cause.",
     false, 0},
    {CauseKind::kRuleFired, "ATH-J0220", "a rule fired",
     "A rule on a metric became true. `ath show` lists the firings, each with its step, value "
     "and advice. What happens then is up to the rule's action.",
     false, 0},
    {CauseKind::kCheckpoint, "ATH-J0221", "a checkpoint was not kept as asked",
     "The note names the checkpoint, or the reason. The job goes on, and a later save is tried "
     "again.",
     false, 0},
    {CauseKind::kEventFiles, "ATH-J0222", "event files are not followed",
     "The folder of TensorBoard's event files could not be watched, so their metrics are "
     "missing. The script is not affected.",
     false, 0},
    {CauseKind::kResumed, "ATH-J0223", "continued from a checkpoint",
     "The attempt started from the newest complete checkpoint of an earlier one.", false, 0},
    {CauseKind::kDiskRoom, "ATH-J0224", "there is room on the disk again",
     "The script had waited for disk space, and goes on.", false, 0},
    {CauseKind::kNoObjective, "ATH-J0225", "a trial never reported its metric",
     "A trial ended well, but did not log the metric that the tuning job compares. The study "
     "shows what it logged instead.",
     false, 0},
    {CauseKind::kObjectiveNotFinite, "ATH-J0226", "a trial's metric is not a number",
     "The last value of the metric was NaN or infinite. The trial counts as failed, and the "
     "search goes on.",
     false, 0},
    {CauseKind::kTargetReached, "ATH-J0227", "the tuning job reached its target",
     "A trial was at least as good as `target`, so no others were started.", false, 0},
    {CauseKind::kStudyOver, "ATH-J0228", "the tuning job has ended",
     "All its trials have ended, or a limit of the tuning job was reached.", false, 0},
    {CauseKind::kTrialRefused, "ATH-J0229", "a trial was refused",
     "The job of a trial could not be submitted with its parameters. The study ends, and its "
     "message has the reason.",
     false, 0},
    {CauseKind::kJobRemoved, "ATH-J0231", "the job of a trial was removed",
     "The job was deleted before the tuning job had looked at its result. The trial counts as "
     "lost.",
     false, 0},
    {CauseKind::kNetwork, "ATH-J0232", "the script cannot reach the server",
     "The host of the job has a network of its own, and the way from there to this server could "
     "not "
     "be made. The script runs, but calls to the server's address fail.",
     false, 0},
};

// The row of a kind is at its number.
static_assert([] {
  if (std::size(kCauses) != std::size(kCauseNames)) return false;
  for (size_t i = 0; i < std::size(kCauses); ++i) {
    if (static_cast<size_t>(kCauses[i].kind) != i) return false;
  }
  return true;
}());

}  // namespace

std::span<const CauseRow> Causes() { return kCauses; }

const CauseRow& RowOf(CauseKind kind) { return kCauses[static_cast<size_t>(kind)]; }

const CauseRow* FindCause(std::string_view name_or_code) {
  for (const auto& row : kCauses) {
    if (row.name() == name_or_code || row.code == name_or_code) return &row;
  }
  return nullptr;
}

}  // namespace athanor
