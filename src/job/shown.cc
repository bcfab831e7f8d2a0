#include "job/shown.h"

#include "base/text/text.h"

namespace athanor {

namespace {

// The host of a gang that has been silent the longest; null: the job runs on one host.
const Host* QuietestHost(const JobRecord& record) {
  const auto* attempt = record.current();
  if (!attempt || attempt->hosts.size() <= 1) return nullptr;
  const Host* quietest = nullptr;
  for (const auto& host : attempt->hosts) {
    if (host.last_seen.ms == 0 || host.over.ms != 0) continue;
    if (!quietest || host.last_seen < quietest->last_seen) quietest = &host;
  }
  return quietest;
}

}  // namespace

std::optional<WallTime> SilentSince(const JobRecord& record, WallTime now) {
  const bool heard = record.state == JobState::kRunning || record.state == JobState::kUploading;
  const auto* host = heard ? QuietestHost(record) : nullptr;
  const WallTime seen = host ? host->last_seen : record.last_seen;
  if (!heard || seen.ms == 0) return std::nullopt;
  if (now.ms - seen.ms <= kSilentAfter.count()) return std::nullopt;
  return seen;
}

std::string_view ShownState(const JobRecord& record, WallTime now) {
  if (IsTerminal(record.state)) return NameOf(record.state);
  if (record.stop) return kViews[0];
  if (HoldsRoom(record.state) && record.current()->interrupt) return kViews[1];
  if (SilentSince(record, now)) return kViews[2];
  return NameOf(record.state);
}

WallTime FirstStarted(const JobRecord& record) {
  for (const auto& attempt : record.attempts) {
    if (attempt.started.ms != 0) return attempt.started;
  }
  return {};
}

std::string_view ShownStatus(std::string_view mlflow_status) {
  if (mlflow_status == "RUNNING") return NameOf(JobState::kRunning);
  if (mlflow_status == "SCHEDULED") return NameOf(JobState::kQueued);
  if (mlflow_status == "FINISHED") return NameOf(JobState::kCompleted);
  if (mlflow_status == "FAILED") return NameOf(JobState::kFailed);
  if (mlflow_status == "KILLED") return NameOf(JobState::kStopped);
  return mlflow_status;
}

Cause ShownCause(const JobRecord& record, WallTime now) {
  if (IsTerminal(record.state)) return record.cause;
  const std::string name = ShellQuote(record.spec.name);
  const auto silent = SilentSince(record, now);
  const auto* quiet = silent ? QuietestHost(record) : nullptr;
  const std::string whose = quiet ? "the agent of " + quiet->name : "its agent";
  const std::string silence =
      silent ? "no word from " + whose + " for " + HumanDuration(Millis(now.ms - silent->ms)) : "";
  if (record.stop) {
    Cause cause = record.stop->cause;
    cause.text = "is being stopped: " + cause.text + (silent ? "; " + silence : "");
    cause.hint = "ath wait " + name + "    it has " + HumanDuration(record.stop->grace) +
                 " to save and end, from when it was asked";
    return cause;
  }
  if (HoldsRoom(record.state) && record.current()->interrupt) {
    Cause cause = record.current()->interrupt->cause;
    cause.text = "is being interrupted: " + cause.text + (silent ? "; " + silence : "");
    return cause;
  }
  // On a full disk, an agent waits for the answer to its last report: the cause is known.
  if (silent && !record.cause.Is(CauseKind::kWaitingDisk)) {
    return {"agent_silent",
            silence +
                ". Silence is not death: the script may well go on, and what it prints and "
                "logs is kept beside it until the agent is heard of again",
            "ath logs -f " + name + "    goes on by itself with the agent's next word\n" +
                "pkill -KILL -f '[a]gent --dir .*" + record.current()->id.ToString() +
                "'    if it hangs: another is started, and the script goes on",
            ""};
  }
  return record.cause;
}

}  // namespace athanor
