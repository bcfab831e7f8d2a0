#include "record/series/series_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/io/crc32c.h"
#include "base/text/format.h"
#include "record/append_file.h"

namespace athanor {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint8_t kFormat = 1;
constexpr size_t kFrameHead = 8;
constexpr size_t kMaxPayload = 64 * 1024;  // no block is that long: a greater length is damage
constexpr size_t kWindowBytes = 256 * 1024;

enum class Kind : uint8_t { kHeader = 1, kName = 2, kBlock = 3 };

// Differences near 0, of either sign, become small numbers (as in Protocol Buffers).
uint64_t ZigZag(uint64_t difference) { return (difference << 1) ^ (0 - (difference >> 63)); }
uint64_t UnZigZag(uint64_t coded) { return (coded >> 1) ^ (0 - (coded & 1)); }

constexpr size_t kMostVarint = 10;
constexpr size_t kMostItem = 4 * kMostVarint + sizeof(double);

// Returns where the next byte goes.
char* PutVarint(char* to, uint64_t value) {
  while (value >= 0x80) {
    *to++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<char>(value);
  return to;
}

void AddVarint(std::string& out, uint64_t value) {
  char bytes[kMostVarint];
  out.append(bytes, static_cast<size_t>(PutVarint(bytes, value) - bytes));
}

// A frame is begun with room for its head and ended by filling it in.
size_t BeginFrame(std::string& out, Kind kind) {
  const size_t start = out.size();
  out.append(kFrameHead, '\0');
  out.push_back(static_cast<char>(kind));
  return start;
}

void EndFrame(std::string& out, size_t start) {
  const auto payload = std::string_view(out).substr(start + kFrameHead);
  const auto length = static_cast<uint32_t>(payload.size());
  const uint32_t crc = Crc32c(payload);
  std::memcpy(out.data() + start, &length, 4);
  std::memcpy(out.data() + start + 4, &crc, 4);
}

// Takes numbers off the front of a payload; after a failure everything fails.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : left_(bytes) {}

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (left_.empty()) break;
      const auto byte = static_cast<uint8_t>(left_.front());
      left_.remove_prefix(1);
      if (shift == 63 && byte > 1) break;  // the tenth byte has the last bit only
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    good_ = false;
    return 0;
  }
  uint32_t Varint32() {
    const uint64_t value = Varint();
    if (value > std::numeric_limits<uint32_t>::max()) good_ = false;
    return static_cast<uint32_t>(value);
  }
  std::string_view Bytes(size_t count) {
    if (left_.size() < count) {
      good_ = false;
      return {};
    }
    const auto bytes = left_.substr(0, count);
    left_.remove_prefix(count);
    return bytes;
  }
  double Double() {
    double value = 0;
    if (const auto bytes = Bytes(sizeof(value)); good_) {
      std::memcpy(&value, bytes.data(), sizeof(value));
    }
    return value;
  }
  std::string_view Rest() { return Bytes(left_.size()); }
  bool good() const { return good_; }
  bool done() const { return good_ && left_.empty(); }

 private:
  std::string_view left_;
  bool good_ = true;
};

bool DecodeBlock(Cursor cursor, SeriesBlock& block) {
  block.attempt = cursor.Varint32();
  const uint64_t where = cursor.Varint();
  block.rank = static_cast<uint32_t>(where);
  block.host = static_cast<uint32_t>(where >> 32);
  block.channel = cursor.Varint32();
  const uint64_t count = cursor.Varint();
  if (!cursor.good() || count == 0 || count > kMaxBlockItems) return false;
  block.items.clear();
  uint64_t seq = 0;
  uint64_t step = 0;
  uint64_t wall = 0;
  for (uint64_t i = 0; i < count; ++i) {
    SeriesBlock::Item item;
    const uint64_t seq_by = cursor.Varint();
    if (i > 0 && (seq_by == 0 || seq + seq_by < seq)) return false;
    item.seq = seq += seq_by;
    const uint64_t name = cursor.Varint();
    if (name >> 1 >= kMaxSeriesId) return false;
    item.name = static_cast<uint32_t>(name >> 1);
    if ((name & 1) != 0) {
      step += UnZigZag(cursor.Varint());
      item.step = static_cast<int64_t>(step);
    }
    wall += UnZigZag(cursor.Varint());
    item.wall_ns = static_cast<int64_t>(wall);
    item.value = cursor.Double();
    if (!cursor.good()) return false;
    block.items.push_back(item);
  }
  return cursor.done();
}

// A file seen through a buffer that moves forward, or bytes that are all there.
class Window {
 public:
  Window(int fd, uint64_t end) : fd_(fd), end_(end) {}
  explicit Window(std::string_view all) : end_(all.size()), seen_(all) {}

  // `size` bytes at `at`, or fewer at the end.
  Result<std::string_view> At(uint64_t at, size_t size) {
    size = static_cast<size_t>(std::min<uint64_t>(size, end_ - std::min(at, end_)));
    if (size == 0) return std::string_view();
    if (at < start_ || at + size > start_ + seen_.size()) {
      const auto want =
          static_cast<size_t>(std::min<uint64_t>(std::max(size, kWindowBytes), end_ - at));
      ATHANOR_TRY(bytes_, ReadAt(fd_, at, want));
      seen_ = bytes_;
      start_ = at;
    }
    return seen_.substr(static_cast<size_t>(at - start_)).substr(0, size);
  }

 private:
  int fd_ = -1;
  uint64_t end_;
  uint64_t start_ = 0;  // of what is seen
  std::string bytes_;
  std::string_view seen_;
};

class Scanner {
 public:
  Scanner(Window window, uint64_t end, const SeriesVisitor& visitor)
      : window_(std::move(window)), end_(end), visitor_(visitor) {}

  Result<SeriesScan> Run(uint64_t from) {
    SeriesScan scan;
    scan.end = from;
    uint64_t at = from;
    while (at < end_) {
      ATHANOR_TRY(const size_t size, Visit(at));
      if (size == 0) {
        ATHANOR_TRY(at, NextCandidate(at, scan.end));
        continue;
      }
      if (at > scan.end) scan.damage.push_back({scan.end, at - scan.end});
      at += size;
      scan.end = at;
    }
    return scan;
  }

  // From the start to the first frame that is not valid.
  Result<uint64_t> RunWhole() {
    uint64_t at = 0;
    for (size_t size = 1; at < end_ && size > 0; at += size) {
      ATHANOR_TRY(size, Visit(at));
    }
    return at;
  }

 private:
  // The payload of the frame at `at`; empty when there is no valid one.
  Result<std::string_view> PayloadAt(uint64_t at) {
    ATHANOR_TRY(const std::string_view head, window_.At(at, kFrameHead + 1));
    if (head.size() <= kFrameHead) return std::string_view();
    uint32_t length = 0;
    uint32_t crc = 0;
    std::memcpy(&length, head.data(), 4);
    std::memcpy(&crc, head.data() + 4, 4);
    const auto kind = static_cast<uint8_t>(head[kFrameHead]);
    if (length == 0 || length > kMaxPayload || kind < 1 || kind > 3) return std::string_view();
    ATHANOR_TRY(const std::string_view frame, window_.At(at, kFrameHead + length));
    if (frame.size() < kFrameHead + length) return std::string_view();
    const auto payload = frame.substr(kFrameHead);
    return Crc32c(payload) == crc ? payload : std::string_view();
  }

  // Visits the frame at `at`; its size, or 0 when it is not valid.
  Result<size_t> Visit(uint64_t at) {
    ATHANOR_TRY(const std::string_view payload, PayloadAt(at));
    if (payload.empty()) return size_t{0};
    Cursor cursor(payload.substr(1));
    bool good = false;
    switch (static_cast<Kind>(payload.front())) {
      case Kind::kHeader: {
        const auto format = cursor.Varint();
        // The checksum is right, so this is no damage, and must not be cut off as if it were.
        if (cursor.good() && format != kFormat) return UnknownFormat(format);
        JobId job;
        const auto bytes = cursor.Bytes(job.value.bytes.size());
        good = cursor.done();
        if (good) std::memcpy(job.value.bytes.data(), bytes.data(), bytes.size());
        if (good && visitor_.header) visitor_.header(job);
        break;
      }
      case Kind::kName: {
        const uint32_t id = cursor.Varint32();
        const auto name = cursor.Rest();
        good = cursor.done() && id < kMaxSeriesId && !name.empty() && name.size() <= kMaxSeriesName;
        if (good && visitor_.name) visitor_.name(id, name);
        break;
      }
      case Kind::kBlock:
        good = DecodeBlock(cursor, block_);
        block_.from = at;
        block_.to = at + kFrameHead + payload.size();
        if (good && visitor_.block) visitor_.block(block_);
        break;
    }
    return good ? kFrameHead + payload.size() : 0;
  }

  // Where to look after the invalid frame at `bad`. First where its length points: if only the
  // payload is damaged, the next frame is there, and bytes between that look like a frame (a name
  // may be any bytes) are passed over. If there is none, byte by byte.
  Result<uint64_t> NextCandidate(uint64_t bad, uint64_t last_good) {
    if (bad != last_good) return bad + 1;
    ATHANOR_TRY(const std::string_view head, window_.At(bad, kFrameHead));
    uint32_t length = 0;
    if (head.size() < kFrameHead) return bad + 1;
    std::memcpy(&length, head.data(), 4);
    if (length == 0 || length > kMaxPayload) return bad + 1;
    const uint64_t next = bad + kFrameHead + length;
    ATHANOR_TRY(const std::string_view payload, PayloadAt(next));
    return payload.empty() ? bad + 1 : next;
  }

  static tl::unexpected<Error> UnknownFormat(uint64_t format) {
    return Fail(Error{ErrorCode::kInvalid, fmt::format("metrics are stored in format {}", format),
                      "run the athanor that wrote them, or a newer one"}
                    .Why(fmt::format("this program knows format {}", kFormat)));
  }

  Window window_;
  uint64_t end_;
  const SeriesVisitor& visitor_;
  SeriesBlock block_;
};

}  // namespace

void AddHeaderFrame(std::string& out, JobId job) {
  const size_t start = BeginFrame(out, Kind::kHeader);
  AddVarint(out, kFormat);
  out.append(reinterpret_cast<const char*>(job.value.bytes.data()), job.value.bytes.size());
  EndFrame(out, start);
}

void AddNameFrame(std::string& out, uint32_t id, std::string_view name) {
  const size_t start = BeginFrame(out, Kind::kName);
  AddVarint(out, id);
  out += name;
  EndFrame(out, start);
}

void AddBlockFrame(std::string& out, const SeriesBlock& block) {
  const size_t start = BeginFrame(out, Kind::kBlock);
  AddVarint(out, block.attempt);
  // Files of before there were several hosts have only the rank here.
  AddVarint(out, uint64_t{block.host} << 32 | block.rank);
  AddVarint(out, block.channel);
  AddVarint(out, block.items.size());
  uint64_t seq = 0;
  uint64_t step = 0;
  uint64_t wall = 0;
  for (const auto& item : block.items) {
    // Into a separate buffer first: growing `out` byte by byte costs more than all the rest.
    char bytes[kMostItem];
    char* at = PutVarint(bytes, item.seq - seq);
    seq = item.seq;
    at = PutVarint(at, uint64_t{item.name} << 1 | (item.step ? 1 : 0));
    if (item.step) {
      at = PutVarint(at, ZigZag(static_cast<uint64_t>(*item.step) - step));
      step = static_cast<uint64_t>(*item.step);
    }
    at = PutVarint(at, ZigZag(static_cast<uint64_t>(item.wall_ns) - wall));
    wall = static_cast<uint64_t>(item.wall_ns);
    std::memcpy(at, &item.value, sizeof(item.value));
    at += sizeof(item.value);
    out.append(bytes, static_cast<size_t>(at - bytes));
  }
  EndFrame(out, start);
}

Result<SeriesScan> ScanSeries(int fd, uint64_t from, uint64_t to, const SeriesVisitor& visitor) {
  return Scanner(Window(fd, to), to, visitor).Run(from);
}

Result<uint64_t> ReadFrames(std::string_view bytes, const SeriesVisitor& visitor) {
  return Scanner(Window(bytes), bytes.size(), visitor).RunWhole();
}

}  // namespace athanor
