#include "job/causes.h"

namespace athanor {
namespace {

constexpr CauseRow kCauses[] = {
    {"completed", "ATH-J0000", "the script ended with status 0",
     "The script ran to its end and said so with exit status 0. Its model and output folders were "
     "archived and kept.",
     false, 0},
    {"nonzero_exit", "ATH-J0101", "the script ended with a non-zero status",
     "The script itself returned a failure and nothing more telling was found in its last lines. "
     "`ath logs JOB --tail 50` shows them; `ath run` passes the status through.",
     false, 0},
    {"python_exception", "ATH-J0102", "an exception was not caught",
     "Python ended with a traceback. `ath why` shows the exception and the last frames that are in "
     "your own files; frames of installed packages are left out.",
     false, 0},
    {"bad_import", "ATH-J0103", "a module could not be imported",
     "The interpreter the job ran with does not have the module. Name it in requirements.txt and "
     "give the job `environment: {requirements: requirements.txt}`, or install it in the "
     "environment you submit from.",
     false, 0},
    {"missing_file", "ATH-J0104", "a file or program was not there",
     "The script opened a path, or the job named a program, that does not exist where the job "
     "runs. Jobs run in a copy of the source folder: data outside of it must be a channel "
     "(`data:` in the job file, `-i NAME=PATH` on the command line).",
     false, 127},
    {"segfault", "ATH-J0111", "the script crashed: segmentation fault",
     "A native extension touched memory it must not. If faulthandler was on (it is, unless "
     "switched off), the Python stack at the crash is in the log.",
     false, 0},
    {"signal", "ATH-J0115", "a signal ended the script",
     "Something sent the script a signal it did not handle. The exit status of `ath run` is 128 "
     "plus the signal's number.",
     false, 0},
    {"out_of_memory", "ATH-J0137", "out of memory",
     "The kernel killed the script because the job reached its memory limit (or the allocation "
     "itself was refused). `ath why` shows the peak and the limit; retry with more memory or a "
     "smaller batch.",
     false, 0},
    {"disk_full", "ATH-J0128", "the disk is full",
     "A write of the job failed because no space was left. Free some space; `ath rm` removes old "
     "jobs with their outputs.",
     false, 0},
    {"user_stop", "ATH-J0201", "stopped by a person",
     "Somebody asked for it: `ath stop`, Ctrl-C while attached, or a stop button. The script got "
     "SIGTERM and the grace time of the job before SIGKILL.",
     false, 0},
    {"time_limit", "ATH-J0202", "ran into its time limit",
     "The job held its machine for longer than limits.max_runtime. It got SIGTERM, then, after "
     "the grace time, SIGKILL. Raise the limit or save checkpoints and continue.",
     false, 0},
    {"hung", "ATH-J0203", "made no progress",
     "The script neither printed, logged nor used CPU for longer than it was allowed to.", false,
     0},
    {"server_silent", "ATH-J0204", "stopped itself after the server's silence",
     "The job asked for it with limits.lost_after: its agent could not reach the server for that "
     "long. Without that limit an agent goes on for ever.",
     true, 0},
    {"log_capped", "ATH-J0205", "the log was cut",
     "The script printed more than limits.log_size to one stream. What came after was read and "
     "dropped, so that neither the script nor the disk suffered. Or it was stopped while it waited "
     "for room on a full disk.",
     false, 0},
    {"metric_unmatched", "ATH-J0206", "a metric's regex matched nothing",
     "The expression of a metric found no line among the first thousand, or none at all. Group 1 "
     "must capture the number.",
     false, 0},
    {"params_unread", "ATH-J0230", "parameters that the script did not read",
     "The job was given a parameter, but the script did not ask for it: it is not in the command, "
     "the script did not use athanor.params, and it opened none of the files that hold it. It "
     "probably trained with its own default. `ath run -P`, or `args: flags` in the job file, "
     "passes parameters as --name value. For programs that are not Python, reads of SM_HP_NAME "
     "cannot be seen; then it only says that there is no sign of a read.",
     false, 0},
    {"preempted", "ATH-J0207", "its machine was taken away",
     "The attempt ran on a machine that may be taken away (spot), or was interrupted on purpose "
     "(`ath interrupt`, --preempt-after, --preempt-every). The script got SIGTERM and the grace "
     "time to save; the job goes on as a new attempt from its last whole checkpoint.",
     true, 0},
    {"max_wait", "ATH-J0208", "waited longer than it may",
     "Waiting and running together took longer than resources.spot.max_wait. Raise it, or set "
     "resources.spot.fallback to go on as an ordinary job.",
     false, 28},
    {"stopped_early", "ATH-J0209", "ended after the stop signal without having finished",
     "The script ended with status 0 after SIGTERM of ours. That is not the end of its work unless "
     "it called athanor.done().",
     false, 0},
    {"rule_stop", "ATH-J0210", "a rule stopped it",
     "A rule of the job file fired and its action is to stop. `ath show` has the metric, the step, "
     "the value and the threshold.",
     false, 0},
    {"rule_retry", "ATH-J0211", "a rule asked for another attempt",
     "A rule of the job file fired and its action is to go back to the last whole checkpoint and "
     "try again.",
     false, 0},
    {"waiting_disk", "ATH-J0212", "waits for disk space",
     "The disk that holds the job's log is full. What the script prints is neither kept nor lost: "
     "the script waits in its write until there is room, then goes on by itself. Time limits and "
     "`ath stop` work meanwhile. Free some space; `ath rm` removes old jobs with their outputs.",
     false, 0},
    {"webhook", "ATH-J0213", "a rule's webhook was not delivered",
     "A rule of the job file fired, and the address it names could not be told: it did not answer, "
     "answered with an error, or is not public. The job itself is not touched by that. `ath events "
     "JOB` has the host's answer.",
     false, 0},
    {"metrics_quota", "ATH-J0215", "metrics come too fast",
     "The script logs more points than a job may send (2,000,000 at once, then 50,000 a second). The "
     "rest waits on disk; when there is no room left for them, points are dropped and counted, and the "
     "script is never kept waiting. Log less often.",
     false, 0},
    {"mlflow_refused", "ATH-J0216", "the server refused what MLflow logged",
     "The script logs with MLflow through the agent, which answers at once and delivers later. The "
     "server refused a call when it was delivered: the run was deleted, say, or the name of a metric "
     "is none. The script was told nothing and went on.",
     false, 0},
    {"mlflow_dropped", "ATH-J0217", "what MLflow logged could not be kept",
     "The server was away, and there was no room to keep what the script logged with MLflow until it "
     "is back: the disk is full, or more than 1 GiB waited. These calls are lost; the script went on.",
     false, 0},
    {"trial_stopped", "ATH-J0214", "its study stopped it",
     "The job is a trial of a tuning job, which stopped it: by its early-stopping rule, or because "
     "the study ended. `ath tune show STUDY` says which. The script got SIGTERM and its grace time.",
     false, 0},
    {"trial_paused", "ATH-J0218", "its study paused it",
     "The job is a trial of a tuning job with `form: promotion`: it reached a rung, and goes on as a "
     "new job from its newest checkpoint when it is among the best there. The script got SIGTERM and "
     "its grace time.",
     false, 0},
    {"restore_failed", "ATH-J0305", "a checkpoint could not be restored",
     "The checkpoint that was asked for is not whole any more, or the disk is full. `ath "
     "checkpoints JOB` lists the whole ones.",
     false, 29},
    {"install_failed", "ATH-J0301", "the environment could not be built",
     "Installing the requirements failed. The set-up log (`ath logs JOB --phase setup`) has the "
     "installer's own words; `ath why` names the requirement.",
     false, 20},
    {"source_failed", "ATH-J0302", "the source could not be laid out",
     "The packaged source could not be unpacked where the job was to run: the disk is full, or a "
     "blob of the store is damaged.",
     false, 21},
    {"data_failed", "ATH-J0303", "a data channel could not be provided",
     "A channel's folder was not readable on the machine that runs the job.", false, 22},
    {"secret_missing", "ATH-J0304", "a secret could not be had",
     "The job names a secret that its source did not give when the job started. `ath secret ls` "
     "shows the built-in store's names.",
     false, 23},
    {"launch_failed", "ATH-J0311", "the job could not be started on this machine",
     "The back end did not manage to start the job's agent. The reason is the system's own.",
     true, 24},
    {"agent_lost", "ATH-J0401", "the job's agent and script are gone",
     "Neither the agent nor the supervisor of the attempt is alive and no exit record was "
     "written: they were killed together, or the machine was restarted.",
     true, 25},
    {"agent_silent", "ATH-J0403", "no word from the job's agent",
     "The agent reports every second or so and has not been heard of for half a minute: it is "
     "held up, its machine sleeps or the network is gone. Silence is not death: the script goes "
     "on without the agent, nothing is lost, and nothing is decided about the job. An agent that "
     "has died is started again, so one that hangs may be killed without harm. A stop is carried "
     "out with its next word.",
     true, 0},
    {"upload_failed", "ATH-J0402", "outputs could not be kept",
     "The script ended, but archiving its model or output folder failed.", false, 26},
    {"never_fits", "ATH-J0501", "asks for more than this machine has",
     "No amount of waiting will make room: the request is larger than the whole machine.", false,
     27},
    {"waiting_cpus", "ATH-Q0001", "waits for CPUs", "Other jobs hold the CPUs it needs.", false, 0},
    {"waiting_memory", "ATH-Q0002", "waits for memory", "Other jobs hold the memory it needs.",
     false, 0},
    {"waiting_gpus", "ATH-Q0003", "waits for GPUs", "Other jobs hold the GPUs it needs.", false, 0},
    {"waiting_turn", "ATH-Q0004", "waits for its turn",
     "Jobs of a higher priority, or submitted earlier, go first.", false, 0},
    {"backoff", "ATH-Q0005", "waits before the next attempt",
     "The last attempt ended through no fault of the script; the next one starts after a pause.",
     false, 0},
    {"queued", "ATH-Q0006", "was just accepted", "The queue has not looked at it yet.", false, 0},
};

}  // namespace

std::span<const CauseRow> Causes() { return kCauses; }

const CauseRow* FindCause(std::string_view kind_or_code) {
  for (const auto& row : kCauses) {
    if (row.kind == kind_or_code || row.code == kind_or_code) return &row;
  }
  return nullptr;
}

}  // namespace athanor
