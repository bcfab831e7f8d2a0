// What TensorBoard's plug-ins store in a Summary value, in the old form (their own messages) and
// the new (tensors). Pure; strings are copies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "eventfile/event.h"

namespace athanor {

struct HistogramValue {
  struct Bucket {
    double left = 0;
    double right = 0;
    double count = 0;
  };
  std::vector<Bucket> buckets;
};
struct ImageValue {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<std::string> encoded;  // PNG, JPEG or GIF; new style: one or more
};
struct AudioValue {
  double sample_rate = 0;  // 0: only the encoded bytes tell
  std::string content_type;
  std::vector<std::string> encoded;  // WAV
};
struct TextValue {
  std::vector<std::string> texts;  // Markdown
};
// One entry per threshold, from 0 to 1 in equal steps.
struct PrCurveValue {
  std::vector<double> true_positives, false_positives, true_negatives, false_negatives, precision,
      recall;
};
using HParam = std::variant<std::string, double, bool>;
struct HParamsValue {
  enum class Part { kExperiment, kStart, kEnd };
  Part part = Part::kStart;
  std::vector<std::pair<std::string, HParam>> params;  // of kStart; of kExperiment: names only
  std::vector<std::string> metrics;                    // tags, of kExperiment
  std::string group;                                   // of kStart
  int64_t status = 0;                                  // of kEnd: 1 success, 2 failure
};

// `value` is of the kind that the name says; otherwise, and if it is malformed, kInvalid.
Result<HistogramValue> ReadHistogram(const SummaryValue& value);
Result<ImageValue> ReadImage(const SummaryValue& value);
Result<AudioValue> ReadAudio(const SummaryValue& value);
Result<TextValue> ReadText(const SummaryValue& value);
Result<PrCurveValue> ReadPrCurve(const SummaryValue& value);
Result<HParamsValue> ReadHParams(const SummaryValue& value);

// SummaryMetadata for a plug-in; data_class: 1 scalar, 2 tensor, 3 blob sequence.
std::string WriteMetadata(std::string_view plugin, std::string_view content, int data_class);
// HParamsPluginData.
std::string WriteHParams(const HParamsValue& value);

}  // namespace athanor
