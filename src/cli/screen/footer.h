// The live footer of an attached job: one or two lines below the scrolling log,
// redrawn at most ten times a second. Without a terminal it prints one line per
// tenth of progress instead.
#pragma once

#include <cstdio>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "base/exec/clock.h"
#include "base/text/json.h"
#include "cli/screen/output.h"

namespace athanor {

class Footer {
 public:
  Footer(const Terminal& terminal, bool on);
  ~Footer();
  // An event of the stream: state, usage, metrics.
  void On(std::string_view event, const Json& data);
  // Log bytes, above the footer.
  void Print(std::string_view bytes, std::FILE* to);
  void Clear();

 private:
  struct Metric {
    double last = 0;
    std::deque<double> recent;
  };
  void Draw(bool now);
  std::string FirstLine() const;
  std::string SecondLine() const;

  Terminal terminal_;
  bool on_;
  SystemClock clock_;
  Millis start_{0};
  Millis last_draw_{0};
  int drawn_ = 0;           // lines on the screen now
  bool line_open_ = false;  // the log's last line has not ended
  std::string state_;
  int64_t done_ = 0;
  int64_t total_ = 0;
  int64_t told_tenth_ = 0;
  uint64_t memory_ = 0;
  uint64_t cpu_percent_ = 0;
  bool has_usage_ = false;
  std::map<std::string, Metric> metrics_;
};

}  // namespace athanor
