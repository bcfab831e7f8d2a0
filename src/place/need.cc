#include "place/need.h"

#include <algorithm>
#include <utility>

#include "base/text/format.h"

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
  Error error;
  error.code = ErrorCode::kInvalid;
  error.what = std::move(what);
  error.why = fmt::format("this machine can give {}", InventoryText(inventory));
  error.hint = std::move(hint);
  error.id = "ATH-S0211";
  return Fail(std::move(error));
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
  if (Fits(type, inventory))
    return Need{type.cpu_millis, type.memory_bytes, type.gpus, false, false};
  if (simulate) {
    return Need{std::min(type.cpu_millis, inventory.cpu_millis),
                std::min(type.memory_bytes, inventory.memory_bytes),
                std::min(type.gpus, inventory.gpus), true, false};
  }
  const auto largest = catalogue.LargestFitting(inventory);
  std::string hint = largest ? fmt::format("the largest type that fits: --type {}\n", largest->name)
                             : "no type of the catalogue fits; ask by amounts: --cpus, --memory\n";
  hint += "or set `instances: simulate` in the server's settings to run it on what there is";
  return TooLarge(
      fmt::format("{} has {}, {} and {}: more than this machine", type.name,
                  CpuText(type.cpu_millis), MemoryText(type.memory_bytes), GpuText(type.gpus)),
      inventory, std::move(hint));
}

Result<Need> ResolveAmounts(const ResourceSpec& spec, const Inventory& inventory) {
  if (spec.cpu_millis > inventory.cpu_millis) {
    return TooLarge(fmt::format("the job asks for {}", CpuText(spec.cpu_millis)), inventory,
                    fmt::format("ask for less: --cpus {}", Decimal(inventory.cpu_millis / 1e3, 3)));
  }
  if (spec.memory_bytes > inventory.memory_bytes) {
    return TooLarge(fmt::format("the job asks for {} of memory", MemoryText(spec.memory_bytes)),
                    inventory,
                    fmt::format("ask for less: --memory {}MiB", inventory.memory_bytes >> 20));
  }
  if (spec.gpus > inventory.gpus) {
    return TooLarge(fmt::format("the job asks for {}", GpuText(spec.gpus)), inventory,
                    inventory.gpus == 0 ? std::string("leave out --gpus to run on the CPU")
                                        : fmt::format("ask for less: --gpus {}", inventory.gpus));
  }
  Need need{spec.cpu_millis, spec.memory_bytes, spec.gpus, false,
            inventory.gpus > 0 && spec.gpus == 0 && !spec.no_gpus};
  // A machine may have less than the default.
  if (need.cpu_millis == 0) need.cpu_millis = std::min(kDefaultCpuMillis, inventory.cpu_millis);
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
