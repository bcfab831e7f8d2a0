#include "price/catalogue.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "base/text/format.h"
#include "base/text/text.h"
#include "price/catalogue_csv.h"

namespace athanor {
namespace {

constexpr int kNearestShown = 3;

bool Larger(const InstanceType& a, const InstanceType& b) {
  const auto amounts = [](const InstanceType& type) {
    return std::tuple(type.gpus, type.cpu_millis, type.memory_bytes);
  };
  if (amounts(a) != amounts(b)) return amounts(a) > amounts(b);
  return std::tie(a.on_demand_micros, a.name) < std::tie(b.on_demand_micros, b.name);
}

std::vector<std::string> NearestNames(std::string_view name, std::vector<std::string> candidates) {
  std::vector<std::string> nearest;
  while (nearest.size() < kNearestShown) {
    auto found = Nearest(name, candidates);
    if (!found) break;
    std::erase(candidates, *found);
    nearest.push_back(std::move(*found));
  }
  return nearest;
}

}  // namespace

bool Fits(const InstanceType& type, const Inventory& inventory) {
  return type.cpu_millis <= inventory.cpu_millis && type.memory_bytes <= inventory.memory_bytes &&
         type.gpus <= inventory.gpus;
}

Catalogue::Catalogue(std::vector<InstanceType> types) : types_(std::move(types)) {
  std::sort(types_.begin(), types_.end(),
            [](const InstanceType& a, const InstanceType& b) { return a.name < b.name; });
}

const Catalogue& Catalogue::Builtin() {
  static const Catalogue builtin = [] {
    auto file = ParseCatalogueCsv(BuiltinCatalogueCsv(), "catalogue.csv");
    if (!file) std::abort();  // the compiled-in file is checked by a test
    return Catalogue(std::move(file->types));
  }();
  return builtin;
}

Result<Catalogue> Catalogue::WithOverrides(std::string_view csv, std::string_view file) {
  ATHANOR_TRY(CatalogueFile overrides, ParseCatalogueCsv(csv, file));
  std::vector<InstanceType> types = std::move(overrides.types);
  std::vector<std::string> replaced;
  for (const InstanceType& type : types) replaced.push_back(type.name);
  std::sort(replaced.begin(), replaced.end());
  for (const InstanceType& type : Builtin().All()) {
    if (!std::binary_search(replaced.begin(), replaced.end(), type.name)) types.push_back(type);
  }
  return Catalogue(std::move(types));
}

Result<InstanceType> Catalogue::Find(std::string_view name) const {
  const auto found = std::lower_bound(
      types_.begin(), types_.end(), name,
      [](const InstanceType& type, std::string_view wanted) { return type.name < wanted; });
  if (found != types_.end() && found->name == name) return *found;

  // Names are short; a long one is shown cut and is near to nothing.
  const std::string shown = Printable(name.substr(0, 80));
  std::vector<std::string> nearest;
  if (name.size() <= 80) {
    std::vector<std::string> names;
    for (const InstanceType& type : types_) names.push_back(type.name);
    nearest = NearestNames(ToLower(name), std::move(names));
  }
  std::string hint;
  if (!nearest.empty()) hint = fmt::format("did you mean {}?\n", Join(nearest, ", "));
  hint += "ath types";
  return Fail(Error{ErrorCode::kNotFound, fmt::format("no instance type is called '{}'", shown),
                    std::move(hint)}
                  .Why(fmt::format("the catalogue has {} types", types_.size()))
                  .Id("ATH-S0210"));
}

std::optional<InstanceType> Catalogue::LargestFitting(const Inventory& inventory) const {
  const InstanceType* best = nullptr;
  for (const InstanceType& type : types_) {
    if (Fits(type, inventory) && (best == nullptr || Larger(type, *best))) best = &type;
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

}  // namespace athanor
