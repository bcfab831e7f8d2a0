#include "link/plain_batch.h"

#include <charconv>
#include <cmath>
#include <cstdint>

namespace athanor {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Reads forward; each function is false where the text is not what it reads.
class Reader {
 public:
  explicit Reader(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  const char* at() const { return at_; }
  bool AtEnd() {
    Blank();
    return at_ == end_;
  }

  bool Take(char c) {
    Blank();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  // Plain characters between quotes.
  bool Text(std::string_view& text) {
    if (!Take('"')) return false;
    const char* begin = at_;
    while (at_ != end_ && *at_ >= 0x20 && *at_ != '"' && *at_ != '\\' && *at_ != 0x7f) ++at_;
    if (at_ == end_ || *at_ != '"') return false;
    text = {begin, static_cast<size_t>(at_ - begin)};
    ++at_;
    return true;
  }

  bool Int(int64_t& number) {
    if (!Digits(number)) return false;
    return at_ == end_ || (*at_ != '.' && *at_ != 'e' && *at_ != 'E');
  }

  bool Double(double& number) {
    Blank();
    const char* begin = at_;
    int64_t whole = 0;
    if (!Digits(whole)) return false;
    if (at_ != end_ && *at_ == '.') {
      ++at_;
      if (!SomeDigits()) return false;
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!SomeDigits()) return false;
    }
    const auto read = std::from_chars(begin, at_, number);
    return read.ec == std::errc() && read.ptr == at_ && std::isfinite(number);
  }

  // Any value, by its brackets and quotes alone.
  bool Skip() {
    Blank();
    size_t depth = 0;
    do {
      if (at_ == end_) return false;
      const char c = *at_++;
      if (c == '"') {
        if (!SkipText()) return false;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (depth == 0) return false;
        --depth;
      } else if (depth == 0) {
        while (at_ != end_ && *at_ != ',' && *at_ != '}' && *at_ != ']') ++at_;
      }
    } while (depth > 0);
    return true;
  }

 private:
  void Blank() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  // The rest of a text whose first quote was read.
  bool SkipText() {
    for (; at_ != end_ && *at_ != '"'; ++at_) {
      if (*at_ == '\\' && ++at_ == end_) return false;
    }
    if (at_ == end_) return false;
    ++at_;
    return true;
  }

  bool SomeDigits() {
    const char* begin = at_;
    while (at_ != end_ && IsDigit(*at_)) ++at_;
    return at_ != begin;
  }

  // A whole number as JSON writes it, without a zero in front.
  bool Digits(int64_t& number) {
    Blank();
    const char* begin = at_;
    if (at_ != end_ && *at_ == '-') ++at_;
    const char* first = at_;
    if (!SomeDigits() || (*first == '0' && at_ - first > 1)) return false;
    const auto read = std::from_chars(begin, at_, number);
    return read.ec == std::errc() && read.ptr == at_;
  }

  const char* at_;
  const char* end_;
};

// One metric; with `run` also the members that name its run.
bool ReadMetric(Reader& reader, Point& point, std::string_view* run = nullptr) {
  enum : unsigned { kKey = 1, kValue = 2, kTime = 4, kStep = 8, kRun = 16, kOldRun = 32 };
  constexpr unsigned kNeeded = kKey | kValue | kTime;
  if (!reader.Take('{')) return false;
  unsigned seen = 0;
  do {
    std::string_view name;
    if (!reader.Text(name) || !reader.Take(':')) return false;
    unsigned member = 0;
    bool good = false;
    if (name == "key") {
      member = kKey;
      std::string_view key;
      good = reader.Text(key);
      point.name = key;
    } else if (name == "value") {
      member = kValue;
      good = reader.Double(point.value);
    } else if (name == "timestamp") {
      member = kTime;
      int64_t millis = 0;
      good = reader.Int(millis) && millis >= 0 && millis <= kMostMillis;
      if (good) point.wall_ns = millis * 1'000'000;
    } else if (name == "step") {
      member = kStep;
      int64_t step = 0;
      good = reader.Int(step);
      point.step = step;
    } else if (run != nullptr && (name == "run_id" || name == "run_uuid")) {
      member = name == "run_id" ? kRun : kOldRun;
      std::string_view id;
      good = reader.Text(id) && !id.empty() && (run->empty() || *run == id);
      *run = id;
    }
    if (!good || (seen & member) != 0) return false;
    seen |= member;
  } while (reader.Take(','));
  return (seen & kNeeded) == kNeeded && reader.Take('}');
}

bool ReadMetrics(Reader& reader, std::vector<Point>& metrics) {
  if (!reader.Take('[')) return false;
  if (reader.Take(']')) return true;
  do {
    if (!ReadMetric(reader, metrics.emplace_back())) return false;
  } while (reader.Take(','));
  return reader.Take(']');
}

}  // namespace

std::optional<PlainBatch> ReadPlainBatch(std::string_view body) {
  Reader reader(body);
  if (!reader.Take('{')) return std::nullopt;
  do {
    std::string_view name;
    if (!reader.Text(name) || !reader.Take(':')) return std::nullopt;
    if (name != "metrics") {
      if (!reader.Skip()) return std::nullopt;
      continue;
    }
    PlainBatch batch;
    const auto begin = static_cast<size_t>(reader.at() - body.data());
    if (!ReadMetrics(reader, batch.metrics)) return std::nullopt;
    const auto behind = body.substr(static_cast<size_t>(reader.at() - body.data()));
    // Perhaps a second list: which one counts is not for us to say.
    if (behind.find("metrics") != std::string_view::npos) return std::nullopt;
    batch.rest = body.substr(0, begin);
    batch.rest += "null";
    batch.rest += behind;
    return batch;
  } while (reader.Take(','));
  return std::nullopt;
}

std::optional<PlainMetric> ReadPlainMetric(std::string_view body) {
  Reader reader(body);
  PlainMetric metric;
  if (!ReadMetric(reader, metric.point, &metric.run) || metric.run.empty() || !reader.AtEnd()) {
    return std::nullopt;
  }
  return metric;
}

}  // namespace athanor
