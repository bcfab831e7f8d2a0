// What is read in its plain form is what the general reader finds in it.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "door/mlflow/wire.h"
#include "link/plain_batch.h"

namespace athanor {
namespace {

void MustBe(bool so) {
  if (!so) std::abort();
}

void Compare(const Json& metric, const Point& point) {
  const auto value = DoubleOf(metric.at("value"), "value");
  const auto time = IntOf(metric.at("timestamp"), "timestamp");
  MustBe(metric.at("key") == point.name && value && *value == point.value);
  MustBe(time && *time * 1'000'000 == point.wall_ns);
  MustBe(metric.contains("step") == point.step.has_value());
  MustBe(!point.step || metric.at("step") == *point.step);
}

void TryBatch(std::string_view body) {
  const auto plain = ReadPlainBatch(body);
  if (!plain) return;
  const auto rest = ParseJson(plain->rest);
  if (!rest) return;
  const auto whole = ParseJson(body);
  MustBe(whole && whole->is_object() && rest->is_object());
  const Json& metrics = whole->at("metrics");
  MustBe(metrics.is_array() && metrics.size() == plain->metrics.size());
  for (size_t i = 0; i < metrics.size(); ++i) Compare(metrics[i], plain->metrics[i]);
  Json without = *whole;
  without["metrics"] = nullptr;
  MustBe(without == *rest);
}

void TryMetric(std::string_view body) {
  const auto plain = ReadPlainMetric(body);
  if (!plain) return;
  auto whole = ParseJson(body);
  MustBe(whole && whole->is_object());
  Compare(*whole, plain->point);
  const Fields fields(std::move(*whole));
  const auto run = fields.Text("run_id");
  MustBe(run && (run->empty() ? fields.Text("run_uuid").value() : *run) == plain->run);
}

}  // namespace
}  // namespace athanor

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  athanor::TryBatch(body);
  athanor::TryMetric(body);
  return 0;
}
