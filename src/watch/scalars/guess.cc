#include "watch/scalars/guess.h"

#include <re2/re2.h>

#include <charconv>

#include "base/text/text.h"
#include "watch/scalars/regex_metrics.h"

namespace athanor {
namespace {

constexpr size_t kMaxGuesses = 16;
constexpr size_t kMaxCounters = 8;
constexpr size_t kMaxName = 64;
constexpr int64_t kMaxCount = 1'000'000'000'000'000;
// No one reads a metric after this; a binary line must not cost more.
constexpr size_t kLookedAt = 2'048;

#define ATHANOR_NUMBER R"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|[-+]?inf(?:inity)?)"

const RE2& MetricRegex() {
  // No counted repetitions: they make RE2's automata large, and lines are short.
  static const RE2 regex(
      R"((?i)(?:^|[^\w./]))"
      R"(((?:(?:train|training|val|valid|validation|test|eval)[_/ .-])?)"
      R"((?:avg_|mean_|average )?)"
      R"((?:loss|accuracy|acc1?|top1|top5|f1|auc|auroc|mse|mae|rmse|r2|perplexity|ppl|bleu|iou|)"
      R"(miou|map|precision|recall|reward|learning[_ ]rate|lr|grad_norm)(?:_\w+)?|)"
      R"((?:val|valid|train|test|eval)_\w+))"
      R"(['"]?\s*(?:[:=]\s*|\s))"
      R"(()" ATHANOR_NUMBER R"()%?(?:[\s,;)\]}|'"]|\.\s|\.?$))");
  return regex;
}

const RE2& CounterRegex() {
  static const RE2 regex(
      R"((?i)(?:\b(epoch|global_step|step|iteration|iter|it|batch)s?['"]?\s*[:=#]?\s*[\[(]?\s*)"
      R"((\d+)(?:\s*(?:/|of)\s*(\d+))?(?:[^\w.]|\.\s|\.0\b|$)))"
      R"(|(?:(?:\d%\|[^|]*\|\s*|\[\s*|^\s*)(\d+)/(\d+)(?:\s*\[|\s+\(\s*\d|\s*\])))");
  return regex;
}
#undef ATHANOR_NUMBER

std::optional<int64_t> Number(const re2::StringPiece& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || text.empty() || value > kMaxCount) return std::nullopt;
  return value;
}

std::string NameFrom(const re2::StringPiece& text) {
  std::string name = ToLower({text.data(), text.size()});
  for (char& c : name) {
    if (c == ' ' || c == '-') c = '_';
  }
  return name;
}

// A match may need the separator before it, which the last one used up: go back one.
bool NextMatch(const RE2& regex, std::string_view line, size_t& from, re2::StringPiece* groups,
               int count) {
  if (from > line.size()) return false;
  if (!regex.Match({line.data(), line.size()}, from, line.size(), RE2::UNANCHORED, groups, count)) {
    return false;
  }
  const size_t end = static_cast<size_t>(groups[0].data() - line.data()) + groups[0].size();
  from = end > from + 1 ? end - 1 : from + 1;
  return true;
}

}  // namespace

std::vector<Counter> CountersIn(std::string_view line) {
  line = line.substr(0, kLookedAt);
  std::vector<Counter> counters;
  re2::StringPiece groups[6];
  for (size_t from = 0; counters.size() < kMaxCounters;) {
    if (!NextMatch(CounterRegex(), line, from, groups, 6)) break;
    const bool bar = groups[1].data() == nullptr;
    const auto done = Number(groups[bar ? 4 : 2]);
    if (!done) continue;
    Counter counter;
    counter.done = *done;
    counter.total = Number(groups[bar ? 5 : 3]);
    if (counter.total && (*counter.total == 0 || *counter.total < *done)) continue;
    if (!bar) counter.word = NameFrom(groups[1]) == "epoch" ? "epoch" : "step";
    counters.push_back(std::move(counter));
  }
  return counters;
}

std::vector<Guess> MetricsIn(std::string_view line) {
  line = line.substr(0, kLookedAt);
  std::vector<Guess> guesses;
  re2::StringPiece groups[3];
  for (size_t from = 0; guesses.size() < kMaxGuesses;) {
    if (!NextMatch(MetricRegex(), line, from, groups, 3)) break;
    if (groups[1].size() > kMaxName) continue;
    const auto value = ParseMetricValue({groups[2].data(), groups[2].size()});
    if (!value) continue;
    guesses.push_back({NameFrom(groups[1]), *value, std::nullopt});
  }
  return guesses;
}

std::vector<Guess> MetricGuesser::Line(std::string_view line) {
  std::vector<Guess> guesses = MetricsIn(line);
  if (guesses.empty()) return guesses;
  const Counter* epoch = nullptr;
  const Counter* inner = nullptr;  // a step, or a bar
  const std::vector<Counter> counters = CountersIn(line);
  for (const Counter& counter : counters) {
    if (counter.word == "epoch") {
      if (epoch == nullptr) epoch = &counter;
    } else if (inner == nullptr || (inner->word.empty() && !counter.word.empty())) {
      inner = &counter;
    }
  }
  if (epoch != nullptr && epoch->done == 0) epoch_zero_ = true;

  std::optional<int64_t> step;
  constexpr int64_t kMost = int64_t{1} << 31;  // products stay in range
  if (epoch != nullptr && inner != nullptr && inner->total && epoch->done < kMost &&
      *inner->total < kMost) {
    const int64_t epochs_before = epoch_zero_ ? epoch->done : epoch->done - 1;
    step = epochs_before * *inner->total + inner->done;
  } else if (inner != nullptr && !inner->word.empty()) {
    step = inner->done;
  } else if (epoch != nullptr && inner == nullptr) {
    step = epoch->done;
  }
  for (Guess& guess : guesses) guess.step = step;
  return guesses;
}

}  // namespace athanor
