#include "door/native/hosts_view.h"

#include <algorithm>
#include <map>

#include "base/text/format.h"
#include "job/shown.h"

namespace athanor {
namespace {

constexpr size_t kMostSteps = 8;

// Athanor ended all of it, beginning with one host: nothing there failed.
bool WasEndedOnPurpose(const FirstFall& fell) {
  return fell.cause.Is(CauseKind::kTimeLimit) || fell.cause.Is(CauseKind::kRuleStop) ||
         fell.cause.Is(CauseKind::kRuleRetry) || fell.cause.Is(CauseKind::kStoppedEarly) ||
         fell.cause.Is(CauseKind::kServerSilent);
}

// The end of a rank, on the clock of people: RankEnd has only how long it ran.
struct Ended {
  uint32_t host = 0;
  RankEnd end;
  int64_t at_ms = 0;
};

std::string EndText(const RankEnd& end) {
  return end.signal != 0 ? fmt::format("signal {}", end.signal) : fmt::format("exit {}", end.code);
}

// What a stopped script ends with: the signal, or a shell's status for it.
bool WasStopped(const RankEnd& end) {
  return end.signal == 15 || end.signal == 9 || end.code == 128 + 15 || end.code == 128 + 9;
}

// "rank 3", "ranks 0 and 1", "ranks 0 to 7", "ranks 0, 2 and 5".
std::string RanksText(std::vector<uint32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  if (ranks.size() > 2 && ranks.back() - ranks.front() + 1 == ranks.size()) {
    return fmt::format("ranks {} to {}", ranks.front(), ranks.back());
  }
  std::string text = "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

std::string StepText(const std::vector<uint32_t>& ranks, uint32_t host, const RankEnd& end) {
  const std::string who = RanksText(ranks) + " on " + HostNameOf(host);
  const bool many = ranks.size() > 1;
  if (WasStopped(end)) {
    return fmt::format("then {} {} stopped by {}", who, many ? "were" : "was",
                       end.signal != 0 ? EndText(end) : fmt::format("signal {}", end.code - 128));
  }
  return fmt::format("then {} ended with {}", who, EndText(end));
}

}  // namespace

bool IsKnown(const std::optional<ExitInfo>& exit) {
  return exit && (exit->code >= 0 || exit->signal != 0 || !exit->spawn_error.empty());
}

const FirstFall* FirstFailure(const Attempt& attempt) {
  return attempt.fell && !WasEndedOnPurpose(*attempt.fell) ? &*attempt.fell : nullptr;
}

std::string_view HostState(const Attempt& attempt, const Host& host, WallTime now) {
  if (host.over.ms != 0 || attempt.ended.ms != 0) {
    return host.started.ms != 0 && !IsKnown(host.exit) ? "Lost" : "Ended";
  }
  if (host.exited.ms != 0) return "Uploading";
  if (host.up.ms == 0) return "Starting";
  if (host.last_seen.ms != 0 && now.ms - host.last_seen.ms > kSilentAfter.count()) return kViews[2];
  return host.started.ms != 0 ? "Running" : "Preparing";
}

bool IsGang(const JobRecord& record) {
  return record.spec.resources.ranks() > 1 ||
         std::any_of(record.attempts.begin(), record.attempts.end(),
                     [](const Attempt& attempt) { return attempt.hosts.size() > 1; });
}

std::string HostRanks(const JobSpec& spec, const Attempt& attempt, uint32_t host) {
  const FirstFall* fell = FirstFailure(attempt);
  std::map<uint32_t, std::string> ends;
  for (const auto& end : attempt.hosts[host].ranks) {
    const bool first = fell && fell->host == host && fell->rank == end.rank;
    ends[end.rank] = " " + EndText(end) + (first ? " (failed first)" : "");
  }
  std::string text;
  const uint32_t processes = spec.resources.processes;
  const uint32_t beyond = (host + 1) * processes;
  for (uint32_t rank = host * processes; rank < beyond;) {
    uint32_t next = rank;
    while (next < beyond && ends[next] == ends[rank]) ++next;
    text += text.empty() ? "" : ", ";
    text += next - rank > 2    ? fmt::format("{} to {}", rank, next - 1)
            : next - rank == 2 ? fmt::format("{} and {}", rank, rank + 1)
                               : std::to_string(rank);
    text += ends[rank];
    rank = next;
  }
  return text;
}

std::vector<std::string> FallOrder(const Attempt& attempt) {
  std::vector<std::string> steps;
  if (FirstFailure(attempt) == nullptr) return steps;
  const auto& fell = *attempt.fell;
  std::vector<Ended> ended;
  const RankEnd* first = nullptr;
  for (uint32_t host = 0; host < attempt.hosts.size(); ++host) {
    for (const auto& end : attempt.hosts[host].ranks) {
      if (fell.rank && end.rank == *fell.rank && host == fell.host) {
        first = &end;
      } else {
        ended.push_back({host, end, attempt.hosts[host].started.ms + end.ran_ms});
      }
    }
  }
  const std::string why = first != nullptr ? EndText(*first) : fell.cause.text;
  steps.push_back(fell.rank
                      ? fmt::format("rank {} on {} failed first", *fell.rank, HostNameOf(fell.host))
                      : fmt::format("{} failed first", HostNameOf(fell.host)));
  if (!why.empty()) steps.back() += ": " + why;
  // A rank that was through before is no part of it.
  std::erase_if(ended, [&](const Ended& one) {
    return one.end.code == 0 && one.end.signal == 0 && fell.at.ms != 0 && one.at_ms < fell.at.ms;
  });
  std::stable_sort(ended.begin(), ended.end(),
                   [](const Ended& a, const Ended& b) { return a.at_ms < b.at_ms; });
  for (size_t i = 0; i < ended.size();) {
    std::vector<uint32_t> ranks;
    const Ended& like = ended[i];
    size_t next = i;
    while (next < ended.size() && ended[next].host == like.host &&
           ended[next].end.code == like.end.code && ended[next].end.signal == like.end.signal) {
      ranks.push_back(ended[next++].end.rank);
    }
    if (steps.size() == kMostSteps) {
      steps.push_back(fmt::format("then {} more", ended.size() - i));
      break;
    }
    steps.push_back(StepText(ranks, like.host, like.end));
    i = next;
  }
  return steps;
}

}  // namespace athanor
