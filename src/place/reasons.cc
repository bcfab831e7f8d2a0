#include "place/reasons.h"

#include <string>
#include <string_view>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kSeeQueue = "ath ps";
constexpr size_t kNamesShown = 2;
constexpr size_t kAheadShown = 100;

struct Shortage {
  CauseKind kind = CauseKind::kWaitingTurn;  // of the scarcest, if something is short
  std::string text;                          // "needs 4 CPUs; 1.5 of 2 free"
};

std::string Of(std::string_view need, std::string free, std::string_view all) {
  // "1.5 CPUs" of "2 CPUs": the unit is shown once, with the need.
  free.resize(free.find(' '));
  return fmt::format("needs {}; {} of {} free", need, free, all.substr(0, all.find(' ')));
}

std::string MemoryOf(uint64_t need, uint64_t free, uint64_t all) {
  return fmt::format("needs {} of memory; {} of {} free", MemoryText(need), MemoryText(free),
                     MemoryText(all));
}

Shortage ShortageOf(const Need& each, const Amounts& free, const Inventory& all) {
  Shortage shortage;
  const Amounts need = Amounts::Of(each);
  const auto add = [&shortage](CauseKind kind, const std::string& text) {
    if (shortage.text.empty()) shortage.kind = kind;
    shortage.text += (shortage.text.empty() ? "" : ", ") + text;
  };
  if (need.gpus > free.gpus) {
    add(CauseKind::kWaitingGpus,
        fmt::format("needs {}; {} of {} free", GpuText(need.gpus), free.gpus, all.gpus));
  }
  if (need.memory_bytes > free.memory_bytes) {
    add(CauseKind::kWaitingMemory,
        MemoryOf(need.memory_bytes, free.memory_bytes, all.memory_bytes));
  }
  if (need.cpu_millis > free.cpu_millis) {
    add(CauseKind::kWaitingCpus,
        Of(CpuText(need.cpu_millis), CpuText(free.cpu_millis), CpuText(all.cpu_millis)));
  }
  if (each.nodes > 1) {
    const auto fit = free.NodesOf(each);
    shortage.text = fmt::format("{} of {} nodes {} room; {}", fit, each.nodes,
                                fit == 1 ? "has" : "have", shortage.text);
  }
  return shortage;
}

// To the minute, rounded up, because it follows "at the latest".
std::string ClockText(WallTime time, WallTime now) {
  const std::string text = Rfc3339(WallTime{time.ms + 59'999});
  const std::string minute = text.substr(11, 5) + " UTC";
  const bool today = text.substr(0, 10) == Rfc3339(now).substr(0, 10);
  return today ? minute : text.substr(0, 10) + " " + minute;
}

std::string HoldText(const Hold& hold, WallTime now) {
  if (!hold.ends_by) return hold.job->name;
  return fmt::format("{} (ends by {} at the latest)", hold.job->name,
                     ClockText(*hold.ends_by, now));
}

// The jobs whose end, in the order of `holds`, makes the need fit.
std::vector<const Hold*> Releasers(const Need& need, Amounts free, const std::vector<Hold>& holds) {
  std::vector<const Hold*> releasers;
  const Amounts wanted = Amounts::Of(need);
  for (const Hold& hold : holds) {
    if (free.Holds(wanted)) break;
    const Amounts held = Amounts::Of(hold.job->placement);
    if (free.MissingFor(wanted).Shares(held)) releasers.push_back(&hold);
    free = free.Plus(held);
  }
  return releasers;
}

}  // namespace

Cause NeverFits(const WaitingJob& job, const Inventory& inventory) {
  std::string wants;
  const auto add = [&wants](const std::string& text) {
    wants += (wants.empty() ? "" : ", ") + text;
  };
  const Amounts need = Amounts::Of(job.need);
  if (need.gpus > inventory.gpus) add(GpuText(need.gpus));
  if (need.memory_bytes > inventory.memory_bytes) add(MemoryText(need.memory_bytes) + " of memory");
  if (need.cpu_millis > inventory.cpu_millis) add(CpuText(need.cpu_millis));
  if (job.need.nodes > 1) wants += fmt::format(" for its {} nodes", job.need.nodes);
  return {"never_fits",
          fmt::format("needs {}; this machine has {}", wants, InventoryText(inventory)),
          "ath stop " + ShellQuote(job.name) + "\nath types", ""};
}

Cause BackingOff(const WaitingJob& job, WallTime now) {
  const std::string time = Rfc3339(job.not_before);
  const bool today = time.substr(0, 10) == Rfc3339(now).substr(0, 10);
  return {"backoff",
          fmt::format("attempt {} starts at {}{} UTC at the earliest", job.attempts + 1,
                      today ? "" : time.substr(0, 10) + " ", time.substr(11, 8)),
          "ath events " + ShellQuote(job.name), ""};
}

Cause HeadLacks(const WaitingJob& job, const Amounts& free, const Inventory& inventory,
                const std::vector<Hold>& holds, WallTime now) {
  const Shortage shortage = ShortageOf(job.need, free, inventory);
  const std::vector<const Hold*> releasers = Releasers(job.need, free, holds);
  std::string text = shortage.text;
  if (releasers.size() == 1) {
    text += fmt::format("; frees up when job {} finishes", HoldText(*releasers[0], now));
  } else if (!releasers.empty()) {
    std::vector<std::string> names;
    for (const Hold* hold : releasers) {
      if (names.size() == kNamesShown) break;
      names.push_back(HoldText(*hold, now));
    }
    const size_t more = releasers.size() - names.size();
    text += more == 0 ? fmt::format("; frees up when jobs {} finish", Join(names, " and "))
                      : fmt::format("; frees up when jobs {} and {} more finish", Join(names, ", "),
                                    more);
  }
  return {shortage.kind, std::move(text), std::string(kSeeQueue), ""};
}

Cause Lacks(const WaitingJob& job, const Amounts& free, const Inventory& inventory, size_t ahead) {
  const Shortage shortage = ShortageOf(job.need, free, inventory);
  const std::string line =
      ahead > kAheadShown ? fmt::format("more than {} jobs go first", kAheadShown)
                          : fmt::format("{} job{} first", ahead, ahead == 1 ? " goes" : "s go");
  return {shortage.kind, shortage.text + "; " + line, std::string(kSeeQueue), ""};
}

Cause NotItsTurn(const WaitingJob& job, const WaitingJob& head, const Amounts& free,
                 const Inventory& inventory) {
  const char* claim =
      head.priority > job.priority ? "has a higher priority" : "was submitted earlier";
  return {"waiting_turn",
          fmt::format("job {} goes first: it {} and {}", head.name, claim,
                      ShortageOf(head.need, free, inventory).text),
          std::string(kSeeQueue), ""};
}

}  // namespace athanor
