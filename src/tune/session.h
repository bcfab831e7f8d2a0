// One search: its space, settings and trials, with a journal that can be stored and replayed. Used
// by `ath tune --stdio`, the Python package and tuning jobs. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text/json.h"
#include "tune/journal.h"
#include "tune/strategy.h"

namespace athanor::tune {

struct SessionOptions {
  Settings settings;
  bool maximize = false;
};

class Session {
 public:
  // Gets each line of the journal as it is made; if it fails, the call that made the line fails,
  // too, and nothing has happened.
  using Sink = std::function<Status(std::string_view line)>;

  // `space` in the form of Space::Parse.
  static Result<std::unique_ptr<Session>> Create(const Json& space, const SessionOptions& options,
                                                 Sink sink = nullptr);
  // The same search again, from its journal; the sink gets what follows. kCorrupt if the journal is
  // invalid or its events contradict each other.
  static Result<std::unique_ptr<Session>> Replay(const JournalText& journal, Sink sink = nullptr);

  struct Asked {
    int64_t id = 0;
    Assignment values;
    bool repeated = false;  // the space is used up
  };
  Result<Asked> Ask();
  // An empty value is a failed trial, as is one that is not finite.
  Status Tell(int64_t id, std::optional<double> value);
  // A trial made elsewhere; parameters may be outside the ranges. Returns its id.
  Result<int64_t> Import(const Json& params, std::optional<double> value);

  // A trial that someone else runs; it is told by its id like our own.
  Result<int64_t> ImportRunning(const Json& params);

  // New ranges from the next ask on (see WithRanges); earlier trials stay in the model.
  Status ChangeRanges(const Json& ranges);

  struct BestTrial {
    int64_t id = 0;
    Assignment values;
    double value = 0;
  };
  std::optional<BestTrial> Best() const;
  const History& history() const { return *history_; }
  const Space& space() const { return space_; }
  const SessionOptions& options() const { return options_; }
  const std::string& space_json() const { return space_json_; }  // with the current ranges

 private:
  Session(Space space, const SessionOptions& options, Sink sink);
  Status Write(const Json& event);
  Status Apply(const Json& event);
  Status Take(const Json& ranges);

  Space space_;
  SessionOptions options_;
  Sink sink_;
  JournalWriter writer_;
  std::string space_json_;
  std::unique_ptr<History> history_;  // points to space_
  Memory memory_;
};

}  // namespace athanor::tune
