// The kinds of causes, by name: what a program may switch on. Every kind that this version uses
// stands here, and has a row in job/causes.cc. A stored cause may have another name, of an older or
// newer version: it is kept and shown as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace athanor {

enum class CauseKind : uint8_t {
  kCompleted,
  kNonzeroExit,
  kPythonException,
  kBadImport,
  kMissingFile,
  kMissingVariable,
  kPermissionDenied,
  kBadArguments,
  kSyntaxError,
  kNetworkError,
  kAccessRefused,
  kSegfault,
  kCheckpointMismatch,
  kWorkerDied,
  kUnreadableData,
  kGpuError,
  kNotFinite,
  kSystemLimit,
  kWrongBuild,
  kAddressInUse,
  kSignal,
  kOutOfMemory,
  kDiskFull,
  kUserStop,
  kTimeLimit,
  kHung,
  kServerSilent,
  kLogCapped,
  kMetricUnmatched,
  kParamsUnread,
  kPreempted,
  kMaxWait,
  kStoppedEarly,
  kRuleStop,
  kRuleRetry,
  kWaitingDisk,
  kWebhook,
  kMetricsQuota,
  kMlflowRefused,
  kMlflowDropped,
  kTrialStopped,
  kTrialPaused,
  kRestoreFailed,
  kInstallFailed,
  kSourceFailed,
  kDataFailed,
  kSecretMissing,
  kLaunchFailed,
  kAgentLost,
  kHostMissing,
  kAgentSilent,
  kUploadFailed,
  kNeverFits,
  kWaitingBackend,
  kWaitingCpus,
  kWaitingMemory,
  kWaitingGpus,
  kWaitingTurn,
  kBackoff,
  kQueued,
  kPeerFailed,
  kRuleFired,
  kCheckpoint,
  kEventFiles,
  kResumed,
  kDiskRoom,
  kNoObjective,
  kObjectiveNotFinite,
  kTargetReached,
  kStudyOver,
  kTrialRefused,
  kJobRemoved,
  kNetwork,
};

struct CauseName {
  CauseKind kind;
  std::string_view name;
};

inline constexpr CauseName kCauseNames[] = {
    {CauseKind::kCompleted, "completed"},
    {CauseKind::kNonzeroExit, "nonzero_exit"},
    {CauseKind::kPythonException, "python_exception"},
    {CauseKind::kBadImport, "bad_import"},
    {CauseKind::kMissingFile, "missing_file"},
    {CauseKind::kMissingVariable, "missing_variable"},
    {CauseKind::kPermissionDenied, "permission_denied"},
    {CauseKind::kBadArguments, "bad_arguments"},
    {CauseKind::kSyntaxError, "syntax_error"},
    {CauseKind::kNetworkError, "network_error"},
    {CauseKind::kAccessRefused, "access_refused"},
    {CauseKind::kSegfault, "segfault"},
    {CauseKind::kCheckpointMismatch, "checkpoint_mismatch"},
    {CauseKind::kWorkerDied, "worker_died"},
    {CauseKind::kUnreadableData, "unreadable_data"},
    {CauseKind::kGpuError, "gpu_error"},
    {CauseKind::kNotFinite, "not_finite"},
    {CauseKind::kSystemLimit, "system_limit"},
    {CauseKind::kWrongBuild, "wrong_build"},
    {CauseKind::kAddressInUse, "address_in_use"},
    {CauseKind::kSignal, "signal"},
    {CauseKind::kOutOfMemory, "out_of_memory"},
    {CauseKind::kDiskFull, "disk_full"},
    {CauseKind::kUserStop, "user_stop"},
    {CauseKind::kTimeLimit, "time_limit"},
    {CauseKind::kHung, "hung"},
    {CauseKind::kServerSilent, "server_silent"},
    {CauseKind::kLogCapped, "log_capped"},
    {CauseKind::kMetricUnmatched, "metric_unmatched"},
    {CauseKind::kParamsUnread, "params_unread"},
    {CauseKind::kPreempted, "preempted"},
    {CauseKind::kMaxWait, "max_wait"},
    {CauseKind::kStoppedEarly, "stopped_early"},
    {CauseKind::kRuleStop, "rule_stop"},
    {CauseKind::kRuleRetry, "rule_retry"},
    {CauseKind::kWaitingDisk, "waiting_disk"},
    {CauseKind::kWebhook, "webhook"},
    {CauseKind::kMetricsQuota, "metrics_quota"},
    {CauseKind::kMlflowRefused, "mlflow_refused"},
    {CauseKind::kMlflowDropped, "mlflow_dropped"},
    {CauseKind::kTrialStopped, "trial_stopped"},
    {CauseKind::kTrialPaused, "trial_paused"},
    {CauseKind::kRestoreFailed, "restore_failed"},
    {CauseKind::kInstallFailed, "install_failed"},
    {CauseKind::kSourceFailed, "source_failed"},
    {CauseKind::kDataFailed, "data_failed"},
    {CauseKind::kSecretMissing, "secret_missing"},
    {CauseKind::kLaunchFailed, "launch_failed"},
    {CauseKind::kAgentLost, "agent_lost"},
    {CauseKind::kHostMissing, "host_missing"},
    {CauseKind::kAgentSilent, "agent_silent"},
    {CauseKind::kUploadFailed, "upload_failed"},
    {CauseKind::kNeverFits, "never_fits"},
    {CauseKind::kWaitingBackend, "waiting_backend"},
    {CauseKind::kWaitingCpus, "waiting_cpus"},
    {CauseKind::kWaitingMemory, "waiting_memory"},
    {CauseKind::kWaitingGpus, "waiting_gpus"},
    {CauseKind::kWaitingTurn, "waiting_turn"},
    {CauseKind::kBackoff, "backoff"},
    {CauseKind::kQueued, "queued"},
    {CauseKind::kPeerFailed, "peer_failed"},
    {CauseKind::kRuleFired, "rule_fired"},
    {CauseKind::kCheckpoint, "checkpoint"},
    {CauseKind::kEventFiles, "event_files"},
    {CauseKind::kResumed, "resumed"},
    {CauseKind::kDiskRoom, "disk_room"},
    {CauseKind::kNoObjective, "no_objective"},
    {CauseKind::kObjectiveNotFinite, "objective_not_finite"},
    {CauseKind::kTargetReached, "target_reached"},
    {CauseKind::kStudyOver, "study_over"},
    {CauseKind::kTrialRefused, "trial_refused"},
    {CauseKind::kJobRemoved, "job_removed"},
    {CauseKind::kNetwork, "network"},
};

constexpr std::string_view NameOf(CauseKind kind) {
  return kCauseNames[static_cast<size_t>(kind)].name;
}

// A kind, or its name in the source: a name that does not stand above does not compile.
class KnownCause {
 public:
  constexpr KnownCause(CauseKind kind) : kind_(kind) {}  // NOLINT(google-explicit-constructor)
  consteval KnownCause(const char* name)                 // NOLINT(google-explicit-constructor)
      : kind_(Named(name)) {}

  constexpr CauseKind kind() const { return kind_; }
  constexpr std::string_view name() const { return NameOf(kind_); }

 private:
  static consteval CauseKind Named(std::string_view name) {
    for (size_t i = 0; i < std::size(kCauseNames); ++i) {
      if (static_cast<size_t>(kCauseNames[i].kind) != i)
        throw "the names are not in the order of the kinds";
      if (kCauseNames[i].name == name) return kCauseNames[i].kind;
    }
    throw "no such kind of cause: give it a row in job/cause_kind.h and job/causes.cc";
  }

  CauseKind kind_;
};

}  // namespace athanor
