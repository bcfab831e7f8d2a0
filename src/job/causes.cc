#include "job/causes.h"

namespace athanor {
namespace {

constexpr CauseRow kCauses[] = {
    {"completed", "ATH-J0000", "the script ended with status 0",
     "The script ran to its end with exit status 0. Its model and output folders were kept.",
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
     "Somebody stopped the job with `ath stop`, with Ctrl-C, or on the page. The script got "
     "SIGTERM, and SIGKILL after the grace time of the job.",
     false, 0},
    {"time_limit", "ATH-J0202", "ran into its time limit",
     "The script ran for longer than limits.max_runtime. It got SIGTERM, then, after the grace "
     "time, SIGKILL. Raise the limit, or save checkpoints and continue with `ath resume`.",
     false, 0},
    {"hung", "ATH-J0203", "made no progress",
     "The script printed nothing, logged nothing and used no CPU for longer than limits.hang "
     "allows.",
     false, 0},
    {"server_silent", "ATH-J0204", "stopped itself after the server's silence",
     "The job has limits.lost_after, and its agent could not reach the server for that long. "
     "Without this limit, a job never stops for this reason.",
     true, 0},
    {"log_capped", "ATH-J0205", "the log was cut",
     "The script printed more than limits.log_size to one stream, and the rest was dropped. The "
     "script was not slowed down. Or the script was stopped while it waited for space on a full "
     "disk.",
     false, 0},
    {"metric_unmatched", "ATH-J0206", "a metric's regex matched nothing",
     "The expression of a metric found no line among the first thousand, or none at all. Group 1 "
     "must capture the number.",
     false, 0},
    {"preempted", "ATH-J0207", "its machine was taken away",
     "The machine was taken away: it was spot capacity, or the job was interrupted on purpose "
     "(`ath interrupt`, --preempt-after, --preempt-every). The script got SIGTERM and the grace "
     "time to save. The job continues with a new attempt from its last complete checkpoint.",
     true, 0},
    {"max_wait", "ATH-J0208", "waited longer than it may",
     "Waiting and running together took longer than resources.spot.max_wait. Raise it, or set "
     "resources.spot.fallback to continue as an ordinary job.",
     false, 28},
    {"stopped_early", "ATH-J0209", "ended after the stop signal without having finished",
     "Athanor sent SIGTERM, and the script ended with status 0. The job counts as completed only"
     " if the script called athanor.done().",
     false, 0},
    {"rule_stop", "ATH-J0210", "a rule stopped it",
     "A rule of the job file fired, and its action is stop. `ath show` prints the metric, the "
     "step, the value and the threshold.",
     false, 0},
    {"rule_retry", "ATH-J0211", "a rule asked for another attempt",
     "A rule of the job file fired, and its action is retry: the job starts again from its last "
     "complete checkpoint.",
     false, 0},
    {"waiting_disk", "ATH-J0212", "waits for disk space",
     "The disk that holds the job's log is full. The script waits when it prints, and continues "
     "when there is space. No output is lost. Time limits and `ath stop` still work. Free some "
     "space; `ath rm` removes old jobs with their outputs.",
     false, 0},
    {"webhook", "ATH-J0213", "a rule's webhook was not delivered",
     "A rule of the job file fired, but its webhook failed: the address did not answer, answered"
     " with an error, or is not public. The job continues. `ath events JOB` shows the answer.",
     false, 0},
    {"metrics_quota", "ATH-J0215", "metrics come too fast",
     "The script logs more points than a job can send (2,000,000 at once, then 50,000 a second)."
     " The rest waits on disk. If there is no space left, points are dropped and counted. The "
     "script never waits. Log less often.",
     false, 0},
    {"mlflow_refused", "ATH-J0216", "the server refused what MLflow logged",
     "The script logs with MLflow through the agent, which answers at once and delivers later. "
     "The server refused a call when it was delivered, for example because the run was deleted "
     "or a metric name is not valid. The script did not see the error and continued.",
     false, 0},
    {"mlflow_dropped", "ATH-J0217", "what MLflow logged could not be kept",
     "The server did not answer, and there was no space to keep what the script logged with "
     "MLflow: the disk is full, or more than 1 GiB was waiting. These calls are lost. The script"
     " continued.",
     false, 0},
    {"trial_stopped", "ATH-J0214", "its study stopped it",
     "The job is a trial of a study, and the study stopped it: by its early-stopping rule, or "
     "because the study ended. `ath tune show STUDY` says which. The script got SIGTERM and its "
     "grace time.",
     false, 0},
    {"trial_paused", "ATH-J0218", "its study paused it",
     "The job is a trial of a study with `form: promotion`, and it reached a rung. If it is "
     "among the best there, it continues as a new job from its newest checkpoint. The script got"
     " SIGTERM and its grace time.",
     false, 0},
    {"restore_failed", "ATH-J0305", "a checkpoint could not be restored",
     "The checkpoint is no longer complete, or the disk is full. `ath checkpoints JOB` lists the"
     " complete ones.",
     false, 29},
    {"install_failed", "ATH-J0301", "the environment could not be built",
     "Installing the requirements failed. `ath logs JOB --phase setup` prints the output of the "
     "installer, and `ath why` names the requirement.",
     false, 20},
    {"source_failed", "ATH-J0302", "the source could not be laid out",
     "The source could not be unpacked on the machine that runs the job: the disk is full, or a "
     "file in the store is damaged.",
     false, 21},
    {"data_failed", "ATH-J0303", "a data channel could not be provided",
     "The folder of a channel could not be read on the machine that runs the job.",
     false, 22},
    {"secret_missing", "ATH-J0304", "a secret could not be had",
     "The job uses a secret that did not exist when the job started. `ath secret ls` lists the "
     "secrets in the built-in store.",
     false, 23},
    {"launch_failed", "ATH-J0311", "the job could not be started on this machine",
     "The job's agent could not be started. The message is from the operating system.",
     true, 24},
    {"agent_lost", "ATH-J0401", "the job's agent and script are gone",
     "Neither the agent nor the supervisor of the attempt is running, and there is no exit "
     "record: both were killed, or the machine was restarted.",
     true, 25},
    {"agent_silent", "ATH-J0403", "no word from the job's agent",
     "The agent reports about once a second, and the server has not heard from it for half a "
     "minute. It may be blocked, its machine may sleep, or the network may be down. The script "
     "continues, and nothing is lost. An agent that died is started again, so you can kill one "
     "that hangs. A stop takes effect when the agent reports again.",
     true, 0},
    {"upload_failed", "ATH-J0402", "outputs could not be kept",
     "The script ended, but its model or output folder could not be stored.",
     false, 26},
    {"never_fits", "ATH-J0501", "asks for more than this machine has",
     "The job can never start: it asks for more than the whole machine has.",
     false, 27},
    {"waiting_cpus", "ATH-Q0001", "waits for CPUs", "Other jobs hold the CPUs it needs.", false, 0},
    {"waiting_memory", "ATH-Q0002", "waits for memory", "Other jobs hold the memory it needs.",
     false, 0},
    {"waiting_gpus", "ATH-Q0003", "waits for GPUs", "Other jobs hold the GPUs it needs.", false, 0},
    {"waiting_turn", "ATH-Q0004", "waits for its turn",
     "Jobs with a higher priority, and jobs that were submitted earlier, start first.",
     false, 0},
    {"backoff", "ATH-Q0005", "waits before the next attempt",
     "The last attempt did not fail because of the script. The next one starts after a pause.",
     false, 0},
    {"queued", "ATH-Q0006", "was just accepted",
     "The queue has not processed the job yet.",
     false, 0},
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
