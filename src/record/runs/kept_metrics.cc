#include "record/runs/kept_metrics.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/exec/mutex.h"
#include "base/io/crc32c.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kMark = "ATHKEPT1";
constexpr size_t kHead = 8;  // of a record: size, checksum
constexpr size_t kReadAtOnce = 1 << 20;
constexpr uint64_t kMostWaste = 1 << 20;  // bytes that do not count and are not worth a word

enum Kind : uint8_t { kName = 1, kMetrics, kTouched };
enum Form : uint8_t { kSame = 0, kWithRange = 1 };  // lowest and highest are the last value

void PutNumber(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void PutSigned(std::string& out, int64_t value) {
  PutNumber(out, static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

void PutDouble(std::string& out, double value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void PutId(std::string& out, JobId id) {
  out.append(reinterpret_cast<const char*>(id.value.bytes.data()), id.value.bytes.size());
}

// Reads one record; after anything invalid it reports failure and returns zeros.
class Taker {
 public:
  explicit Taker(std::string_view bytes) : rest_(bytes) {}

  uint64_t Number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(Bytes(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    good_ = false;
    return 0;
  }
  int64_t Signed() {
    const uint64_t value = Number();
    return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
  }
  double Double() {
    double value = 0;
    std::memcpy(&value, Bytes(sizeof value).data(), sizeof value);
    return value;
  }
  JobId Id() {
    JobId id;
    std::memcpy(id.value.bytes.data(), Bytes(id.value.bytes.size()).data(), id.value.bytes.size());
    return id;
  }
  std::string_view Rest() { return std::exchange(rest_, {}); }
  bool good() const { return good_; }
  bool done() const { return rest_.empty(); }

 private:
  // At least so many, of which the first `size` count.
  std::string_view Bytes(size_t size) {
    static constexpr char kZeros[16] = {};
    if (size > rest_.size()) {
      good_ = false;
      rest_ = {};
      return {kZeros, sizeof kZeros};
    }
    const auto bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  std::string_view rest_;
  bool good_ = true;
};

void PutRecord(std::string& out, std::string_view payload) {
  const auto size = static_cast<uint32_t>(payload.size());
  const uint32_t sum = Crc32c(payload);
  char head[kHead];
  std::memcpy(head, &size, 4);
  std::memcpy(head + 4, &sum, 4);
  out.append(head, kHead);
  out.append(payload);
}

bool Same(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

void PutMetric(std::string& out, uint32_t number, const RunMetric& metric) {
  const bool range = !Same(metric.min, metric.last) || !Same(metric.max, metric.last);
  PutNumber(out, number);
  out.push_back(static_cast<char>(range ? kWithRange : kSame));
  PutDouble(out, metric.last);
  if (range) {
    PutDouble(out, metric.min);
    PutDouble(out, metric.max);
  }
  PutSigned(out, metric.step);
  PutSigned(out, metric.wall_ms);
  PutNumber(out, metric.count);
}

// What the file must begin with to belong to this boot and these series.
std::string HeaderFor(const std::string& series) {
  struct stat info {};
  if (::stat(series.c_str(), &info) != 0) return "";
  const auto boot = ReadFile("/proc/sys/kernel/random/boot_id", 64);
  if (!boot) return "";
  return fmt::format("{} {} {} {}\n", kMark, Trim(*boot), info.st_dev, info.st_ino);
}

// The front of a file that is read once, from begin to end.
class Front {
 public:
  explicit Front(int fd) : fd_(fd) {}

  // The next `size` bytes, which stay there; none: there are fewer.
  std::string_view Look(size_t size) {
    if (bytes_.size() - at_ < size) Fill(size);
    return bytes_.size() - at_ < size ? std::string_view()
                                      : std::string_view(bytes_).substr(at_, size);
  }
  void Pass(size_t size) {
    at_ += size;
    passed_ += size;
  }
  uint64_t passed() const { return passed_; }

 private:
  void Fill(size_t wanted) {
    bytes_.erase(0, at_);
    at_ = 0;
    size_t have = bytes_.size();
    bytes_.resize(std::max(wanted, kReadAtOnce));
    while (have < bytes_.size()) {
      const ssize_t got = ::pread(fd_, bytes_.data() + have, bytes_.size() - have,
                                  static_cast<off_t>(passed_ + have));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      have += static_cast<size_t>(got);
    }
    bytes_.resize(have);
  }

  const int fd_;
  std::string bytes_;
  size_t at_ = 0;
  uint64_t passed_ = 0;
};

}  // namespace

bool KeptRecords::Take(std::string_view payload) {
  Taker from(payload);
  const uint64_t kind = from.Number();
  if (!from.good()) return false;
  if (kind == kName) {
    const auto name = from.Rest();
    if (!names_.try_emplace(std::string(name), static_cast<uint32_t>(keys_.size())).second) {
      return false;
    }
    keys_.push_back(reader_.KeyOf(name));
    return true;
  }
  const JobId run = from.Id();
  if (!from.good()) return false;
  if (kind == kTouched) {
    if (!from.done()) return false;
    waste_ += payload.size() + kHead;
    reader_.Touched(run);
    return true;
  }
  if (kind != kMetrics) return false;
  Resumes resumes;
  for (uint64_t left = from.Number(); left > 0 && from.good(); --left) {
    const auto attempt = static_cast<uint32_t>(from.Number());
    resumes[attempt] = from.Signed();
  }
  std::vector<RunMetric> metrics;
  // Do not allocate as many as it claims before they have been read.
  const uint64_t count = from.Number();
  if (from.good() && count <= payload.size()) metrics.reserve(count);
  for (uint64_t left = count; left > 0 && from.good(); --left) {
    const uint64_t number = from.Number();
    if (number >= keys_.size()) return false;
    RunMetric metric;
    metric.key = keys_[number];
    const uint64_t form = from.Number();
    metric.last = metric.min = metric.max = from.Double();
    if (form == kWithRange) {
      metric.min = from.Double();
      metric.max = from.Double();
    }
    metric.step = from.Signed();
    metric.wall_ms = from.Signed();
    metric.count = from.Number();
    metrics.push_back(metric);
  }
  if (!from.good() || !from.done()) return false;
  if (!reader_.Kept(run, std::move(resumes), std::move(metrics))) waste_ += payload.size() + kHead;
  return true;
}

KeptMetrics::KeptMetrics(std::string path, std::string series)
    : path_(std::move(path)), series_(std::move(series)) {}

bool KeptMetrics::IsBloated() const {
  const MutexLock lock(mutex_);
  return bloated_;
}

void KeptMetrics::BeginAnew() {
  const MutexLock lock(mutex_);
  Empty();
}

void KeptMetrics::Empty() {
  bloated_ = false;
  names_.clear();
  length_ = 0;
  file_.reset();
  (void)::unlink(path_.c_str());
  const std::string header = HeaderFor(series_);
  if (header.empty()) return;
  file_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
  Write(header);
}

// From now on, all or nothing is stored: a touch that is not written would let old metrics pass for
// new ones.
void KeptMetrics::Write(std::string_view records) {
  if (!file_) return;
  if (!WriteAll(file_.get(), records)) {
    file_.reset();
    (void)::unlink(path_.c_str());
    return;
  }
  length_ += records.size();
}

void KeptMetrics::Read(Reader& reader) {
  const MutexLock lock(mutex_);
  file_.reset(::open(path_.c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  const uint64_t good = file_ ? ReadRecords(reader) : 0;
  if (good == 0) return Empty();
  // What follows was being written when the server ended.
  if (::ftruncate(file_.get(), static_cast<off_t>(good)) != 0) return Empty();
  length_ = good;
}

// Returns the end of what can be read; 0: nothing.
uint64_t KeptMetrics::ReadRecords(Reader& reader) {
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0) return 0;
  const auto length = static_cast<uint64_t>(info.st_size);
  Front front(file_.get());
  const std::string header = HeaderFor(series_);
  if (header.empty() || front.Look(header.size()) != header) return 0;
  front.Pass(header.size());
  KeptRecords records(reader);
  while (true) {
    const auto head = front.Look(kHead);
    if (head.empty()) break;
    uint32_t size = 0, sum = 0;
    std::memcpy(&size, head.data(), 4);
    std::memcpy(&sum, head.data() + 4, 4);
    if (size > length - front.passed() - kHead) break;
    const auto record = front.Look(kHead + size);
    if (record.empty()) break;
    const auto payload = record.substr(kHead);
    if (Crc32c(payload) != sum || !records.Take(payload)) break;
    front.Pass(record.size());
  }
  const uint64_t at = front.passed();
  names_ = records.names();
  bloated_ = records.waste() > at / 2 + kMostWaste;
  return at;
}

bool KeptMetrics::Keep(JobId run, const Resumes& resumes, const std::vector<RunMetric>& metrics,
                       const NameOf& name_of) {
  const MutexLock lock(mutex_);
  if (!file_) return false;
  std::string records, payload;
  std::vector<uint32_t> numbers;
  for (const auto& metric : metrics) {
    const std::string& name = name_of(metric.key);
    const auto [at, fresh] = names_.try_emplace(name, static_cast<uint32_t>(names_.size()));
    numbers.push_back(at->second);
    if (!fresh) continue;
    payload.assign(1, static_cast<char>(kName));
    payload += name;
    PutRecord(records, payload);
  }
  payload.assign(1, static_cast<char>(kMetrics));
  PutId(payload, run);
  PutNumber(payload, resumes.size());
  for (const auto& [attempt, step] : resumes) {
    PutNumber(payload, attempt);
    PutSigned(payload, step);
  }
  PutNumber(payload, metrics.size());
  for (size_t i = 0; i < metrics.size(); ++i) PutMetric(payload, numbers[i], metrics[i]);
  PutRecord(records, payload);
  Write(records);
  return static_cast<bool>(file_);
}

void KeptMetrics::Touched(JobId run) {
  const MutexLock lock(mutex_);
  std::string record, payload(1, static_cast<char>(kTouched));
  PutId(payload, run);
  PutRecord(record, payload);
  Write(record);
}

}  // namespace athanor
