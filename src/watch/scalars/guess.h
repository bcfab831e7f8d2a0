// Guesses metrics from lines of jobs that define none: "loss=0.41", "val_acc: 0.9", "{'loss': 0.4,
// 'lr': 1e-4}", "Epoch 3/10 step 40/940 loss 0.4". Only well-known words count as names. One
// guesser per stream: it remembers the epoch of earlier lines. Guesses are shown as guesses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace athanor {

struct Guess {
  std::string name;  // lower case, blanks and hyphens as '_'
  double value = 0;
  std::optional<int64_t> step;
};

// A counter in a line: "step 340/940", "Epoch 3", "[640/60000", "36%|███ | 340/940 [".
struct Counter {
  std::string word;  // "epoch", "step" (also iter, iteration, batch), "" for a bare bar
  int64_t done = 0;
  std::optional<int64_t> total;
};

// Left to right, at most 8; `total`, if there is one, is at least `done`.
std::vector<Counter> CountersIn(std::string_view line);
// Name and value only, at most 16 per line.
std::vector<Guess> MetricsIn(std::string_view line);

class MetricGuesser {
 public:
  // With steps: that of the line ("step", "iter"; numbered across epochs if the line has both),
  // otherwise its epoch, unless the line shows that it is one of many within that epoch.
  std::vector<Guess> Line(std::string_view line);

 private:
  bool epoch_zero_ = false;  // epochs are counted from 0
};

}  // namespace athanor
