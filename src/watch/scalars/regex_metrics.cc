#include "watch/scalars/regex_metrics.h"

#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kSampleBytes = 200;
constexpr int kMaxMatches = 256;  // of one definition in one line, numbers or not

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

std::unique_ptr<RE2> Compile(const std::string& pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(4 << 20);
  return std::make_unique<RE2>(pattern, options);
}

tl::unexpected<Error> BadRegex(const MetricSpec& spec, const std::string& pattern, std::string why,
                               std::string hint) {
  return Fail(
      Error{ErrorCode::kInvalid,
            fmt::format("the expression of metric '{}' cannot be used", Printable(spec.name)),
            std::move(hint)}
          .Why(fmt::format("{}: {}", Printable(pattern.substr(0, 120)), Printable(why))));
}

Result<std::unique_ptr<RE2>> CompileFor(const MetricSpec& spec, const std::string& pattern) {
  auto regex = Compile(pattern);
  if (!regex->ok()) {
    return BadRegex(spec, pattern, regex->error(),
                    "use RE2 syntax: no look-around and no back-references");
  }
  if (regex->NumberOfCapturingGroups() < 1) {
    return BadRegex(spec, pattern, "it has no group",
                    "put the number in parentheses, as in loss=([0-9.]+)");
  }
  return regex;
}

// Calls `found(begin, group1)` for each match from left to right while it returns true.
template <class Found>
void EachMatch(const RE2& regex, std::string_view line, Found&& found) {
  const re2::StringPiece text = Piece(line);
  size_t from = 0;
  for (int n = 0; n < kMaxMatches && from <= line.size(); ++n) {
    re2::StringPiece groups[2];
    if (!regex.Match(text, from, line.size(), RE2::UNANCHORED, groups, 2)) return;
    const size_t begin = static_cast<size_t>(groups[0].data() - line.data());
    const size_t end = begin + groups[0].size();
    // An optional group that took no part has no data.
    const std::string_view value = groups[1].data() == nullptr
                                       ? std::string_view()
                                       : std::string_view(groups[1].data(), groups[1].size());
    if (!found(begin, value)) return;
    from = end > begin ? end : end + 1;
  }
}

std::optional<int64_t> ParseStep(std::string_view text) {
  text = Trim(text);
  int64_t step = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (error == std::errc() && end == text.data() + text.size()) return step;
  const auto value = ParseMetricValue(text);  // "3.0", "1e3"
  if (!value || std::abs(*value) > 9e15 || *value != std::trunc(*value)) return std::nullopt;
  return static_cast<int64_t>(*value);
}

std::optional<int64_t> StepFor(const RE2& regex, std::string_view line, size_t value_begin) {
  std::optional<int64_t> step;
  EachMatch(regex, line, [&](size_t begin, std::string_view text) {
    if (begin > value_begin && step) return false;
    if (auto parsed = ParseStep(text)) step = parsed;
    return begin <= value_begin || !step;
  });
  return step;
}

// "train:val_loss" is most likely printed as some "loss".
std::string KeywordOf(const std::string& name) {
  const size_t cut = name.find_last_of(":/_-. ");
  return ToLower(cut == std::string::npos ? name : name.substr(cut + 1));
}

}  // namespace

std::optional<double> ParseMetricValue(std::string_view text) {
  text = Trim(text);
  if (EndsWith(text, "%")) text = Trim(text.substr(0, text.size() - 1));
  if (StartsWith(text, "+") && !StartsWith(text, "+-")) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc()) return value;
  if (error != std::errc::result_out_of_range) return std::nullopt;
  // from_chars leaves the value alone; strtod tells 1e999 (inf) from 1e-999 (0).
  return std::strtod(std::string(text).c_str(), nullptr);
}

struct RegexMetrics::Definition {
  std::string name;
  std::string keyword;
  std::unique_ptr<RE2> value;
  std::unique_ptr<RE2> step;  // may be null
  uint64_t points = 0;
  uint64_t not_numbers = 0;
  std::string bad_value;  // the first group 1 that was no number
  std::string sample;
  bool sample_has_keyword = false;
  bool warned = false;

  void Consider(std::string_view line) {
    if (points > 0 || warned || sample_has_keyword) return;
    const bool has_keyword =
        !keyword.empty() && ToLower(line.substr(0, 4096)).find(keyword) != std::string::npos;
    if (!has_keyword && line.find_first_of("0123456789") == std::string_view::npos &&
        !sample.empty()) {
      return;
    }
    sample_has_keyword = has_keyword;
    sample = line.substr(0, kSampleBytes);
  }
};

RegexMetrics::RegexMetrics() = default;
RegexMetrics::RegexMetrics(RegexMetrics&&) noexcept = default;
RegexMetrics& RegexMetrics::operator=(RegexMetrics&&) noexcept = default;
RegexMetrics::~RegexMetrics() = default;

Status RegexMetrics::Check(const MetricSpec& spec) {
  ATHANOR_CHECK_OK(CompileFor(spec, spec.regex));
  if (!spec.step_regex.empty()) ATHANOR_CHECK_OK(CompileFor(spec, spec.step_regex));
  return Ok();
}

Result<RegexMetrics> RegexMetrics::Make(const std::vector<MetricSpec>& specs, bool guess) {
  RegexMetrics metrics;
  metrics.guess_ = guess && specs.empty();
  for (const MetricSpec& spec : specs) {
    auto definition = std::make_unique<Definition>();
    definition->name = spec.name;
    definition->keyword = KeywordOf(spec.name);
    ATHANOR_TRY(definition->value, CompileFor(spec, spec.regex));
    if (!spec.step_regex.empty()) {
      ATHANOR_TRY(definition->step, CompileFor(spec, spec.step_regex));
    }
    metrics.definitions_.push_back(std::move(definition));
  }
  return metrics;
}

void RegexMetrics::StartAt(Rank rank, uint32_t stream, uint64_t offset) {
  sources_[{rank, stream}].splitter = LineSplitter(offset);
}

uint64_t RegexMetrics::LineStart(Rank rank, uint32_t stream) const {
  const auto source = sources_.find({rank, stream});
  return source == sources_.end() ? 0 : source->second.splitter.line_start();
}

void RegexMetrics::Feed(Rank rank, uint32_t stream, std::string_view bytes,
                        std::vector<MetricPoint>& out) {
  if (definitions_.empty() && !guess_) return;
  const SourceKey key{rank, stream};
  Source& source = sources_[key];
  source.splitter.Feed(
      bytes, [&](std::string_view line, uint64_t end) { Line(key, source, line, end, out); });
}

void RegexMetrics::Finish(std::vector<MetricPoint>& out) {
  for (auto& [key, source] : sources_) {
    source.splitter.Finish([&, &key = key, &source = source](std::string_view line, uint64_t end) {
      Line(key, source, line, end, out);
    });
  }
  finished_ = true;
}

void RegexMetrics::Line(SourceKey key, Source& source, std::string_view line, uint64_t end,
                        std::vector<MetricPoint>& out) {
  ++lines_;
  MetricPoint point;
  point.rank = key.first;
  point.stream = key.second;
  uint32_t count = 0;
  const uint64_t base = end * kMaxPerLine;
  if (guess_) {
    for (Guess& guess : source.guesser.Line(line)) {
      if (count == kMaxPerLine) break;
      point.seq = base + count++;
      point.name = std::move(guess.name);
      point.step = guess.step;
      point.value = guess.value;
      point.guessed = true;
      out.push_back(point);
    }
    return;
  }
  for (auto& definition : definitions_) {
    point.seq = base;
    Search(*definition, line, point, count, out);
    definition->Consider(line);
  }
}

void RegexMetrics::Search(Definition& definition, std::string_view line, MetricPoint& point,
                          uint32_t& count, std::vector<MetricPoint>& out) {
  const uint64_t base = point.seq;
  EachMatch(*definition.value, line, [&](size_t begin, std::string_view text) {
    const auto value = ParseMetricValue(text);
    if (!value) {
      if (definition.not_numbers++ == 0) definition.bad_value = text.substr(0, kSampleBytes);
      return true;
    }
    // Counted as found even when the line has no room left: it does match.
    ++definition.points;
    if (count == kMaxPerLine) return false;
    point.seq = base + count++;
    point.name = definition.name;
    point.value = *value;
    point.step.reset();
    if (definition.step) point.step = StepFor(*definition.step, line, begin);
    out.push_back(point);
    return true;
  });
}

std::vector<MetricWarning> RegexMetrics::TakeWarnings() {
  std::vector<MetricWarning> warnings;
  if (lines_ < kWarnAfterLines && !finished_) return warnings;
  for (auto& definition : definitions_) {
    if (definition->points > 0 || definition->warned) continue;
    definition->warned = true;
    MetricWarning warning;
    warning.name = definition->name;
    warning.sample = Printable(definition->sample);
    warning.text =
        definition->not_numbers > 0
            ? fmt::format("matched {} times in {} lines, but group 1 was not a number: '{}'",
                          definition->not_numbers, lines_, Printable(definition->bad_value))
            : fmt::format("matched none of {} lines", lines_);
    warnings.push_back(std::move(warning));
  }
  return warnings;
}

}  // namespace athanor
