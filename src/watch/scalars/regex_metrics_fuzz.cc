#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "watch/progress.h"
#include "watch/scalars/regex_metrics.h"

// First byte: how the bytes are cut, and whether metrics are guessed. The same
// bytes fed whole and in pieces must give the same points.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  if (size < 2) return 0;
  const std::string_view log(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece = 1 + (data[0] & 0x3f);
  std::vector<MetricSpec> specs;
  if (data[0] & 0x80) {
    specs = {{"loss", "loss[=:] ?(.*?)[;, ]", "step=(\\S+)"}, {"any", "([-\\d.einfa]*)", "(\\d+)"}};
  }
  if (data[0] & 0x40) specs.push_back({"own", std::string(log.substr(0, log.find('\n'))), ""});
  auto whole = RegexMetrics::Make(specs);
  auto pieces = RegexMetrics::Make(specs);
  if (!whole || !pieces) {
    if (whole || whole.error().hint.empty()) std::abort();
    return 0;
  }
  std::vector<MetricPoint> expected;
  whole->Feed(Rank{0}, 1, log, expected);
  whole->Finish(expected);
  std::vector<MetricPoint> points;
  for (size_t at = 0; at < log.size(); at += piece)
    pieces->Feed(Rank{0}, 1, log.substr(at, piece), points);
  pieces->Finish(points);
  if (points.size() != expected.size()) std::abort();
  for (size_t i = 0; i < points.size(); ++i) {
    const bool same_value = points[i].value == expected[i].value ||
                            (std::isnan(points[i].value) && std::isnan(expected[i].value));
    if (points[i].seq != expected[i].seq || points[i].step != expected[i].step || !same_value)
      std::abort();
    if (i > 0 && points[i].seq <= points[i - 1].seq) std::abort();
  }
  whole->TakeWarnings();

  ProgressTracker progress;
  for (size_t at = 0; at < log.size(); at += piece) {
    progress.Feed(log.substr(at, piece), Millis(static_cast<int64_t>(at)));
    const auto now = progress.At(Millis(static_cast<int64_t>(at + 1)));
    if (now && !(now->fraction >= 0 && now->fraction <= 1)) std::abort();
  }
  return 0;
}
