// Reads the file form of the catalogue: one instance type per line, under the header
//
//   name,cpus,memory_gib,gpu,gpu_count,gpu_mem_gib,price_od,price_spot_mean
//
// Strict: that header, those eight columns, plain decimals (no sign, exponent
// or quotes), no name twice. Empty lines and lines that begin with '#' are
// skipped; "# as_of: 2026-08-22" dates the prices. Pure; errors are kInvalid
// with file:line in `where`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "price/catalogue.h"

namespace athanor {

struct CatalogueFile {
  std::string as_of;                // empty if the file does not say
  std::vector<InstanceType> types;  // in the file's order; `source` is filled in
};

inline constexpr std::string_view kCatalogueHeader =
    "name,cpus,memory_gib,gpu,gpu_count,gpu_mem_gib,price_od,price_spot_mean";

// `file` is only for messages and, if there is no date, for InstanceType::source.
Result<CatalogueFile> ParseCatalogueCsv(std::string_view text, std::string_view file);

// The bytes of src/price/catalogue.csv.
std::string_view BuiltinCatalogueCsv();

}  // namespace athanor
