// The log of several ranks as lines of one screen: each line whole, with its rank in front, as
// `mpirun --tag-output` does:
//   [0] epoch 1
//   [3] epoch 1
//   [algo-2] installing requirements
// What the set-up of a host prints has the host's name. A line that has not ended yet is kept until
// it does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/json.h"
#include "cli/screen/output.h"

namespace athanor {

class RankLines {
 public:
  using Keep = std::function<std::string(std::string_view)>;  // a line, or nothing of it

  // `tags`: with the ranks in front, coloured if the terminal can. `split`: the script's stderr
  // goes to stderr.
  RankLines(const Terminal& terminal, bool tags, bool split, Keep keep = {})
      : terminal_(terminal), tags_(tags), split_(split), keep_(std::move(keep)) {}

  // Whole lines for a "log" event of a job's stream, whose bytes are `bytes`.
  std::string Take(const Json& event, std::string_view bytes);
  // The lines that never ended; `first`: of stderr.
  std::vector<std::pair<bool, std::string>> Finish();

 private:
  struct Stream {
    std::string tag;
    std::string open;
    bool error = false;
  };
  std::string TagOf(const Json& event) const;
  void Line(const Stream& stream, std::string_view line, std::string& out) const;

  const Terminal terminal_;
  const bool tags_;
  const bool split_;
  const Keep keep_;
  std::map<std::string, Stream> streams_;
};

// Puts lines into the order of their times, which differs from that of arrival by as much as one
// host sends later than another. Holds at most a few megabytes.
class LinesByTime {
 public:
  static constexpr size_t kMost = 8 << 20;  // bytes

  // `time` as RFC 3339. Returns what has come to be printed.
  std::string Add(const std::string& time, std::string lines);
  std::string Finish();

 private:
  std::multimap<std::string, std::string> held_;
  size_t bytes_ = 0;
};

}  // namespace athanor
