// A batch that is read in its plain form is the one that the general reader finds in it.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "door/mlflow/plain_batch.h"
#include "door/mlflow/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto plain = ReadPlainBatch(body);
  if (!plain) return 0;
  const auto rest = ParseJson(plain->rest);
  if (!rest) return 0;
  const auto whole = ParseJson(body);
  if (!whole || !whole->is_object() || !rest->is_object()) std::abort();
  const Json& metrics = whole->at("metrics");
  if (!metrics.is_array() || metrics.size() != plain->metrics.size()) std::abort();
  for (size_t i = 0; i < metrics.size(); ++i) {
    const Json& metric = metrics[i];
    const Point& point = plain->metrics[i];
    const auto value = DoubleOf(metric.at("value"), "value");
    const auto time = IntOf(metric.at("timestamp"), "timestamp");
    if (metric.at("key") != point.name || !value || *value != point.value) std::abort();
    if (!time || *time * 1'000'000 != point.wall_ns) std::abort();
    if (metric.contains("step") != point.step.has_value()) std::abort();
    if (point.step && metric.at("step") != *point.step) std::abort();
  }
  Json without = *whole;
  without["metrics"] = nullptr;
  if (without != *rest) std::abort();
  return 0;
}
