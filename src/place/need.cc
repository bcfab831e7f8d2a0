#include "place/need.h"

#include <algorithm>
#include <utility>

#include "base/text/format.h"
#include "place/amounts.h"

namespace athanor {
namespace {

// At most `places` decimals, without trailing zeros.
std::string Decimal(double value, int places) {
  std::string text = fmt::format("{:.{}f}", value, places);
  if (text.find('.') == std::string::npos) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

tl::unexpected<Error> TooLarge(std::string what, const Inventory& inventory, std::string hint) {
  return Fail(Error{ErrorCode::kInvalid, std::move(what), std::move(hint)}
                  .Why(fmt::format("this machine can give {}", InventoryText(inventory)))
                  .Id("ATH-S0211"));
}

// What each of `nodes` may have of an amount.
template <class T>
T Share(T all, uint32_t nodes) {
  return static_cast<T>(all / std::max(nodes, 1u));
}

std::string TimesText(uint32_t nodes) {
  return nodes > 1 ? fmt::format("{} nodes with ", nodes) : std::string();
}

std::string EachText(uint32_t nodes) { return nodes > 1 ? " each" : ""; }

// How many nodes fit if each has these amounts.
std::string FewerNodes(const Need& need, const Inventory& inventory) {
  const uint64_t fit = Amounts::Of(inventory).NodesOf(need);
  return fit == 0 ? std::string() : fmt::format("ask for fewer: --nodes {}\n", fit);
}

Result<Need> ResolveType(const ResourceSpec& spec, const Catalogue& catalogue,
                         const Inventory& inventory, bool simulate) {
  if (spec.cpu_millis != 0 || spec.memory_bytes != 0 || spec.gpus != 0) {
    return Fail(Error{ErrorCode::kInvalid, "a job names an instance type or amounts, not both",
                      "leave out cpus, memory and gpus, or leave out the type"}
                    .Why(fmt::format("got type {} and amounts", spec.type))
                    .Id("ATH-S0212"));
  }
  ATHANOR_TRY(const InstanceType type, catalogue.Find(spec.type));
  Need need{type.cpu_millis, type.memory_bytes, type.gpus,     false,
            false,           spec.nodes,        spec.processes};
  if (Amounts::Of(inventory).Holds(Amounts::Of(need))) return need;
  if (simulate) {
    need.cpu_millis = std::min(type.cpu_millis, Share(inventory.cpu_millis, spec.nodes));
    need.memory_bytes = std::min(type.memory_bytes, Share(inventory.memory_bytes, spec.nodes));
    need.gpus = std::min(type.gpus, Share(inventory.gpus, spec.nodes));
    need.simulated = true;
    if (spec.nodes <= 1 || need.cpu_millis >= kLeastCpuMillis) return need;
  }
  std::string hint = FewerNodes(need, inventory);
  if (!Fits(type, inventory)) {
    const auto largest = catalogue.LargestFitting(inventory);
    hint = largest ? fmt::format("the largest type that fits: --type {}\n", largest->name)
                   : "no type of the catalogue fits; ask by amounts: --cpus, --memory\n";
  }
  if (!simulate) {
    hint += "or set `instances: simulate` in the server's settings to run it on what there is";
  }
  const std::string has = fmt::format("{}, {} and {}", CpuText(type.cpu_millis),
                                      MemoryText(type.memory_bytes), GpuText(type.gpus));
  return TooLarge(spec.nodes > 1
                      ? fmt::format("{} nodes of {}, which has {}, are more than this machine",
                                    spec.nodes, type.name, has)
                      : fmt::format("{} has {}: more than this machine", type.name, has),
                  inventory, std::move(hint));
}

Result<Need> ResolveAmounts(const ResourceSpec& spec, const Inventory& inventory) {
  const uint32_t nodes = std::max(spec.nodes, 1u);
  const auto asks = [&](const std::string& amount) {
    return fmt::format("the job asks for {}{}{}", TimesText(nodes), amount, EachText(nodes));
  };
  Need need{spec.cpu_millis,
            spec.memory_bytes,
            spec.gpus,
            false,
            inventory.gpus > 0 && spec.gpus == 0 && !spec.no_gpus,
            nodes,
            spec.processes};
  const Amounts all = Amounts::Of(need);
  const std::string fewer = nodes > 1 ? FewerNodes(need, inventory) : std::string();
  if (all.cpu_millis > inventory.cpu_millis) {
    return TooLarge(asks(CpuText(spec.cpu_millis)), inventory,
                    fmt::format("{}ask for less: --cpus {}", fewer,
                                Decimal(Share(inventory.cpu_millis, nodes) / 1e3, 3)));
  }
  if (all.memory_bytes > inventory.memory_bytes) {
    return TooLarge(asks(MemoryText(spec.memory_bytes) + " of memory"), inventory,
                    fmt::format("{}ask for less: --memory {}MiB", fewer,
                                Share(inventory.memory_bytes, nodes) >> 20));
  }
  if (all.gpus > inventory.gpus) {
    return TooLarge(asks(GpuText(spec.gpus)), inventory,
                    inventory.gpus == 0 ? std::string("leave out --gpus to run on the CPU")
                                        : fmt::format("{}ask for less: --gpus {}", fewer,
                                                      std::max(Share(inventory.gpus, nodes), 1u)));
  }
  if (need.cpu_millis != 0) return need;
  // A machine may have less than the default.
  const uint64_t wanted = uint64_t{kDefaultCpuMillis} * std::max(spec.processes, 1u);
  need.cpu_millis =
      static_cast<uint32_t>(std::min<uint64_t>(wanted, Share(inventory.cpu_millis, nodes)));
  if (nodes > 1 && need.cpu_millis < kLeastCpuMillis) {
    need.cpu_millis = kLeastCpuMillis;
    return TooLarge(fmt::format("the job asks for {} nodes, each with at least {}", nodes,
                                CpuText(kLeastCpuMillis)),
                    inventory, FewerNodes(need, inventory));
  }
  return need;
}

}  // namespace

Result<Need> Resolve(const ResourceSpec& spec, const Catalogue& catalogue,
                     const Inventory& inventory, bool simulate) {
  if (!spec.type.empty()) return ResolveType(spec, catalogue, inventory, simulate);
  return ResolveAmounts(spec, inventory);
}

std::string CpuText(uint64_t cpu_millis) {
  return Decimal(static_cast<double>(cpu_millis) / 1e3, 3) +
         (cpu_millis == 1'000 ? " CPU" : " CPUs");
}

std::string MemoryText(uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes >= 1ull << 30) return Decimal(value / (1ull << 30), 1) + " GiB";
  if (bytes >= 1ull << 20) return Decimal(value / (1ull << 20), 1) + " MiB";
  return fmt::format("{} bytes", bytes);
}

std::string GpuText(uint64_t gpus) {
  if (gpus == 0) return "no GPUs";
  return fmt::format("{} GPU{}", gpus, gpus == 1 ? "" : "s");
}

std::string InventoryText(const Inventory& inventory) {
  return fmt::format("{}, {} and {}", CpuText(inventory.cpu_millis),
                     MemoryText(inventory.memory_bytes), GpuText(inventory.gpus));
}

}  // namespace athanor
