#include "cli/screen/hosts.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "cli/screen/reading.h"
#include "submit/notes.h"

namespace athanor {
namespace {

ResourceSpec Asked(const Json& resources) {
  ResourceSpec asked;
  asked.nodes = static_cast<uint32_t>(std::max<int64_t>(Number(resources, "nodes"), 1));
  asked.nodes_most = static_cast<uint32_t>(std::max<int64_t>(Number(resources, "nodes_most"), 0));
  asked.processes = static_cast<uint32_t>(std::max<int64_t>(Number(resources, "processes"), 1));
  return asked;
}

ResourceSpec AskedBy(const Json& job) {
  return Asked(job.value("spec", Json::object()).value("resources", Json::object()));
}

std::string MemoryOf(const Json& host, bool live) {
  const auto usage = host.value("usage", Json::object());
  const auto exit = host.value("exit", Json::object());
  const auto size = [](int64_t bytes) { return HumanBytes(static_cast<uint64_t>(bytes)); };
  if (live && Number(usage, "memory_bytes") > 0) return size(Number(usage, "memory_bytes"));
  const int64_t peak = std::max(Number(exit, "memory_peak"), Number(usage, "memory_peak"));
  return peak > 0 ? "peak " + size(peak) : "-";
}

}  // namespace

std::string RanksOf(const Json& resources) { return RanksText(Asked(resources)); }

std::string HostsTable(const Json& job, const Json& attempt, const Terminal& terminal) {
  const auto hosts = attempt.value("hosts", Json::array());
  if (hosts.empty() || (hosts.size() == 1 && AskedBy(job).processes == 1)) return "";
  Table table({"HOST", "STATE", "CPU", "MEMORY", "RANKS"});
  for (size_t i = 0; i < hosts.size(); ++i) {
    const auto state = Text(hosts[i], "state");
    const bool live = state == "Running";
    const auto usage = hosts[i].value("usage", Json::object());
    table.Add({Text(hosts[i], "name"), state,
               live && !usage.empty() ? fmt::format("{} %", Number(usage, "cpu_percent")) : "-",
               MemoryOf(hosts[i], live), Text(hosts[i], "rank_text")},
              {Ink::kBold, InkOf(state == "Ended"  ? "Stopped"
                                 : state == "Lost" ? "Failed"
                                                   : state)});
  }
  constexpr size_t kIndent = 4;
  Terminal narrower = terminal;
  narrower.columns -= std::min(narrower.columns, kIndent);
  std::string text;
  for (const auto& line : Split(Trim(table.Format(narrower)), '\n')) {
    text += std::string(kIndent, ' ') + line + "\n";
  }
  return text;
}

std::vector<std::string> FallOrderOf(const Json& job) {
  const auto attempts = job.value("attempts", Json::array());
  if (attempts.empty()) return {};
  return attempts.back().value("fall_order", std::vector<std::string>());
}

}  // namespace athanor
