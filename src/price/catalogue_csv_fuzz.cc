#include <cstdint>
#include <cstdlib>

#include "price/catalogue_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Once as it is, once as rows, so that the fuzzer need not find the header.
  const std::string rows = std::string(kCatalogueHeader) + "\n" + std::string(text);
  for (const std::string_view input : {text, std::string_view(rows)}) {
    const auto file = ParseCatalogueCsv(input, "types.csv");
    if (!file) {
      if (file.error().where.empty() || file.error().hint.empty()) std::abort();
      continue;
    }
    for (const InstanceType& type : file->types) {
      if (type.cpu_millis == 0 || type.memory_bytes == 0 || type.on_demand_micros < 0) std::abort();
      if ((type.gpus == 0) != type.gpu_model.empty()) std::abort();
    }
    if (!Catalogue::WithOverrides(input, "types.csv")) std::abort();
  }
  return 0;
}
