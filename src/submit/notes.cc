#include "submit/notes.h"

#include "base/text/format.h"

namespace athanor {

std::vector<std::string> NotesAbout(const ResourceSpec& resources, const Inventory& inventory) {
  std::vector<std::string> notes;
  const uint32_t ranks = resources.ranks();
  const uint32_t each = resources.processes;
  const auto cpus = [](uint32_t millis) {
    return fmt::format("{} CPU{}", millis / 1000.0, millis == 1000 ? "" : "s");
  };
  if (resources.cpu_millis > 0) {
    if (each > 1 && uint64_t{each} * 1000 > resources.cpu_millis) {
      notes.push_back(fmt::format("{} ranks share {}{}, so each of them is slower than alone", each,
                                  cpus(resources.cpu_millis),
                                  resources.nodes > 1 ? " on each node" : ""));
    }
  } else if (ranks > 1 && uint64_t{ranks} * 1000 > inventory.cpu_millis &&
             inventory.cpu_millis > 0) {
    notes.push_back(
        fmt::format("{} ranks share the {} of this machine, so each of them is slower than alone",
                    ranks, cpus(inventory.cpu_millis)));
  }
  if (resources.nodes_most != 0) {
    notes.push_back(
        fmt::format("nodes: {}..{} starts with {} and keeps that number; changing it "
                    "while the job runs is not available yet",
                    resources.nodes, resources.nodes_most, resources.nodes));
  }
  return notes;
}

std::string RanksText(const ResourceSpec& resources) {
  const auto counted = [](uint32_t count, const char* one, const char* many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
  };
  std::string nodes = counted(resources.nodes, "node", "nodes");
  if (resources.nodes_most != 0)
    nodes = fmt::format("{}..{} nodes", resources.nodes, resources.nodes_most);
  const std::string processes = counted(resources.processes, "process", "processes");
  const bool many = resources.nodes > 1 || resources.nodes_most != 0;
  if (!many) return resources.processes > 1 ? processes : "";
  return resources.processes > 1 ? nodes + " with " + processes + " each" : nodes;
}

}  // namespace athanor
