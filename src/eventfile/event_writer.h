// EventWriter writes an event file that TensorBoard can read: records with real checksums, scalars
// in the new style, hyper-parameters in the same run as their metrics. Buffered; what was added is
// on disk after Flush(). Threads: one. Errors: those of the disk; after one, the file ends with a
// complete record or a torn tail, which readers skip.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/fd.h"
#include "base/result.h"
#include "eventfile/plugins.h"
#include "eventfile/tensor.h"

namespace athanor {

class EventWriter {
 public:
  // Makes a new file in `dir`, which is made too: events.out.tfevents.<seconds>.<label>.
  static Result<EventWriter> Create(const std::string& dir, double wall_time,
                                    std::string_view label);

  Status Scalar(std::string_view tag, int64_t step, double wall_time, double value);
  // Rank-2 tensor [k,3].
  Status Histogram(std::string_view tag, int64_t step, double wall_time,
                   const HistogramValue& value);
  Status Image(std::string_view tag, int64_t step, double wall_time, const ImageValue& value);
  Status Audio(std::string_view tag, int64_t step, double wall_time, const AudioValue& value);
  Status Text(std::string_view tag, int64_t step, double wall_time, const TextValue& value);
  Status PrCurve(std::string_view tag, int64_t step, double wall_time, const PrCurveValue& value);
  Status HParams(double wall_time, const HParamsValue& value);
  Status Graph(double wall_time, std::string_view graph_def);
  Status Flush();

  const std::string& path() const { return path_; }

 private:
  EventWriter(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Status Value(std::string_view tag, int64_t step, double wall_time, const Tensor& tensor,
               std::string_view plugin, std::string_view content, int data_class);
  Status Event(int64_t step, double wall_time, uint32_t field, std::string_view body);

  UniqueFd fd_;
  std::string path_;
  std::string buffer_;
  std::set<std::string, std::less<>> described_;  // tags whose metadata was written
};

// A file may be an event file if its name contains "tfevents".
bool IsEventFileName(std::string_view name);

}  // namespace athanor
