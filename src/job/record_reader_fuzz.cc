// Any bytes as a stored record: the fast reader gives up, or reads what the slow one reads.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text/json.h"
#include "job/codec.h"
#include "job/record_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  athanor::JobRecord quick;
  if (!athanor::ReadRecordText(text, quick)) return 0;
  const auto json = athanor::ParseJson(text);
  if (!json) std::abort();
  const auto slow = athanor::RecordFromJson(*json);
  if (!slow || *slow != quick) std::abort();
  return 0;
}
