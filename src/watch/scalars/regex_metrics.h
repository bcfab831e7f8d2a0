// Metrics from what a script prints. Log bytes go in as they arrive, per rank and stream, cut
// anywhere; points come out, each with a number that increases within its (rank, stream) and does
// not depend on how the bytes were cut: a reader that starts again at a line start makes the same
// points with the same numbers, so the store drops what it has. Not thread-safe.
//
// A definition is an RE2 expression whose group 1 is the value: a plain decimal, nan, inf, 1e-4,
// with or without '%'; anything else is counted and dropped. All matches of a line count. The step
// is group 1 of the step expression: its last match that begins before the value, otherwise its
// first one after it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "job/ids.h"
#include "job/spec.h"
#include "watch/scalars/guess.h"
#include "watch/scalars/lines.h"

namespace athanor {

struct MetricPoint {
  Rank rank;
  uint32_t stream = 0;
  uint64_t seq = 0;  // offset of the line's end * 64 + position in the line
  std::string name;
  std::optional<int64_t> step;
  double value = 0;
  bool guessed = false;  // no definition asked for it
};

// A definition that found nothing, reported once: after 1,000 lines, or at the end.
struct MetricWarning {
  std::string name;
  std::string text;    // "matched none of 1,000 lines", or what its group 1 held instead
  std::string sample;  // a line that it may have been meant for; printable, at most 200 bytes
};

class RegexMetrics {
 public:
  static constexpr uint64_t kWarnAfterLines = 1'000;
  static constexpr uint32_t kMaxPerLine = 64;  // later ones of the same line are dropped

  // kInvalid names the definition and RE2's message; also for a missing group 1.
  static Status Check(const MetricSpec& spec);
  // Without definitions the metrics are guessed (guess.h); `guess` turns that off.
  static Result<RegexMetrics> Make(const std::vector<MetricSpec>& specs, bool guess = true);
  RegexMetrics(RegexMetrics&&) noexcept;
  RegexMetrics& operator=(RegexMetrics&&) noexcept;
  ~RegexMetrics();

  // The next bytes of (rank, stream) begin at `offset`, which begins a line.
  void StartAt(Rank rank, uint32_t stream, uint64_t offset);
  void Feed(Rank rank, uint32_t stream, std::string_view bytes, std::vector<MetricPoint>& out);
  // All streams have ended: unfinished lines count.
  void Finish(std::vector<MetricPoint>& out);
  // Where to start again after a crash: the beginning of the line that is still open.
  uint64_t LineStart(Rank rank, uint32_t stream) const;

  // What has become due since the last call.
  std::vector<MetricWarning> TakeWarnings();
  uint64_t lines() const { return lines_; }  // not empty, over all streams

 private:
  struct Definition;
  struct Source {
    LineSplitter splitter;
    MetricGuesser guesser;
  };
  using SourceKey = std::pair<Rank, uint32_t>;

  RegexMetrics();
  void Line(SourceKey key, Source& source, std::string_view line, uint64_t end,
            std::vector<MetricPoint>& out);
  void Search(Definition& definition, std::string_view line, MetricPoint& point, uint32_t& count,
              std::vector<MetricPoint>& out);

  std::vector<std::unique_ptr<Definition>> definitions_;
  std::map<SourceKey, Source> sources_;
  bool guess_ = false;
  bool finished_ = false;
  uint64_t lines_ = 0;
};

// The number in `text`, after trimming; a '%' after it is allowed and changes nothing.
std::optional<double> ParseMetricValue(std::string_view text);

}  // namespace athanor
