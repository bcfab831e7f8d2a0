#include "record/series/series_index.h"

#include <bit>
#include <cstring>
#include <type_traits>

#include "base/io/crc32c.h"

namespace athanor {
namespace {

static_assert(std::endian::native == std::endian::little);

class IndexWriter {
 public:
  template <class T>
  void operator()(const T& value) {
    static_assert(std::is_arithmetic_v<T>);
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void operator()(const std::string& text) {
    (*this)(static_cast<uint32_t>(text.size()));
    out += text;
  }
  void operator()(const std::optional<int64_t>& value) {
    (*this)(value.has_value());
    (*this)(value.value_or(0));
  }
  void operator()(const SeriesChunk::Spot& spot) {
    (*this)(spot.step);
    (*this)(spot.wall_ns);
    (*this)(spot.value);
  }
  std::string out;
};

// After a failure all that follows fails, so that one look at the end is enough.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  template <class T>
  void operator()(T& value) {
    static_assert(std::is_arithmetic_v<T>);
    if constexpr (std::is_same_v<T, bool>) {
      uint8_t byte = 0;
      (*this)(byte);
      good_ = good_ && byte <= 1;
      value = byte == 1;
    } else if (left_.size() < sizeof(value)) {
      good_ = false;
      left_ = {};
    } else {
      std::memcpy(&value, left_.data(), sizeof(value));
      left_.remove_prefix(sizeof(value));
    }
  }
  void operator()(std::string& text) {
    const size_t size = Count(1);
    text = left_.substr(0, size);
    left_.remove_prefix(size);
  }
  void operator()(std::optional<int64_t>& value) {
    bool has = false;
    int64_t number = 0;
    (*this)(has);
    (*this)(number);
    value = has ? std::optional(number) : std::nullopt;
  }
  void operator()(SeriesChunk::Spot& spot) {
    (*this)(spot.step);
    (*this)(spot.wall_ns);
    (*this)(spot.value);
  }
  // How many things of at least `size` bytes follow; never more than there can be.
  size_t Count(size_t size) {
    uint32_t count = 0;
    (*this)(count);
    if (count > left_.size() / size) good_ = false;
    return good_ ? count : 0;
  }
  bool good() const { return good_; }
  bool done() const { return good_ && left_.empty(); }

 private:
  std::string_view left_;
  bool good_ = true;
};

template <class Stream, class Chunk>
void PassChunk(Stream& pass, Chunk& chunk) {
  pass(chunk.attempt);
  pass(chunk.rank);
  pass(chunk.count);
  pass(chunk.guessed);
  pass(chunk.ordered);
  pass(chunk.by_time);
  pass(chunk.only_zero);
  pass(chunk.has_stepless);
  pass(chunk.has_extremes);
  pass(chunk.has_odd);
  pass(chunk.from);
  pass(chunk.to);
  pass(chunk.first_step);
  pass(chunk.last_step);
  for (auto* moment : {&chunk.earliest, &chunk.latest}) {
    pass(moment->wall_ns);
    pass(moment->step);
  }
  for (auto* spot : {&chunk.first, &chunk.last, &chunk.min, &chunk.max, &chunk.odd}) pass(*spot);
}

template <class Stream, class State>
void PassSummary(Stream& pass, State& state) {
  pass(state.value.count);
  pass(state.value.last);
  pass(state.value.last_step);
  pass(state.value.last_wall_ns);
  pass(state.value.min);
  pass(state.value.max);
  pass(state.last.step);
  pass(state.last.wall_ns);
  pass(state.last.value);
  pass(state.last.attempt);
  pass(state.last.rank);
  pass(state.last.guessed);
  pass(state.stale);
  pass(state.any);
  pass(state.logged);
  pass(state.rank_zero);
  pass(state.zeros);
  pass(state.only_zero);
  pass(state.first_step);
}

void WriteSeries(IndexWriter& write, const SeriesIndex::Series& series) {
  write(series.name);
  write(static_cast<uint32_t>(series.ids.size()));
  for (const uint32_t id : series.ids) write(id);
  PassSummary(write, series.summary);
  write(series.summary.attempt.has_value());
  write(series.summary.attempt.value_or(0));
  write(static_cast<uint32_t>(series.summary.last_step.size()));
  for (const auto& [rank, step] : series.summary.last_step) {
    write(rank);
    write(step);
  }
  write(static_cast<uint32_t>(series.chunks.size()));
  for (const auto& chunk : series.chunks) PassChunk(write, chunk);
}

SeriesIndex::Series ReadSeries(Reader& read) {
  SeriesIndex::Series series;
  read(series.name);
  series.ids.resize(read.Count(4));
  for (auto& id : series.ids) read(id);
  PassSummary(read, series.summary);
  bool has_attempt = false;
  uint32_t attempt = 0;
  read(has_attempt);
  read(attempt);
  if (has_attempt) series.summary.attempt = attempt;
  for (size_t left = read.Count(12); left > 0; --left) {
    uint32_t rank = 0;
    int64_t step = 0;
    read(rank);
    read(step);
    series.summary.last_step[rank] = step;
  }
  series.chunks.resize(read.Count(100));
  for (auto& chunk : series.chunks) PassChunk(read, chunk);
  return series;
}

}  // namespace

std::string EncodeIndex(const SeriesIndex& index) {
  IndexWriter write;
  for (const uint8_t byte : index.job.value.bytes) write(byte);
  write(index.length);
  write(index.tail_crc);
  write(index.next_id);
  write(static_cast<uint32_t>(index.last_seq.size()));
  for (const auto& [channel, seq] : index.last_seq) {
    write(std::get<0>(channel));
    write(std::get<1>(channel));
    write(std::get<2>(channel));
    write(std::get<3>(channel));
    write(seq);
  }
  write(static_cast<uint32_t>(index.resumes.size()));
  for (const auto& [attempt, step] : index.resumes) {
    write(attempt);
    write(step);
  }
  write(static_cast<uint32_t>(index.series.size()));
  for (const auto& series : index.series) WriteSeries(write, series);
  std::string bytes(kIndexMark);
  const uint32_t crc = Crc32c(write.out);
  bytes.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  return bytes + write.out;
}

std::optional<SeriesIndex> DecodeIndex(std::string_view bytes) {
  if (bytes.size() < kIndexMark.size() + 4 || bytes.substr(0, kIndexMark.size()) != kIndexMark) {
    return std::nullopt;
  }
  uint32_t crc = 0;
  std::memcpy(&crc, bytes.data() + kIndexMark.size(), sizeof(crc));
  const auto payload = bytes.substr(kIndexMark.size() + 4);
  if (Crc32c(payload) != crc) return std::nullopt;
  Reader read(payload);
  SeriesIndex index;
  for (uint8_t& byte : index.job.value.bytes) read(byte);
  read(index.length);
  read(index.tail_crc);
  read(index.next_id);
  for (size_t left = read.Count(24); left > 0; --left) {
    uint32_t attempt = 0;
    uint32_t host = 0;
    uint32_t rank = 0;
    uint32_t channel = 0;
    uint64_t seq = 0;
    read(attempt);
    read(host);
    read(rank);
    read(channel);
    read(seq);
    index.last_seq[{attempt, host, rank, channel}] = seq;
  }
  for (size_t left = read.Count(12); left > 0; --left) {
    uint32_t attempt = 0;
    int64_t step = 0;
    read(attempt);
    read(step);
    index.resumes[attempt] = step;
  }
  for (size_t left = read.Count(100); left > 0 && read.good(); --left) {
    index.series.push_back(ReadSeries(read));
    if (index.series.back().ids.empty() || index.series.back().name.empty()) return std::nullopt;
  }
  if (!read.done()) return std::nullopt;
  return index;
}

}  // namespace athanor
