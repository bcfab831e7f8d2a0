#include "record/logs/log_index.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>

#include "base/io/crc32c.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kChecked = 37;
constexpr uint32_t kCheckMask = 0xFFFFFF;
constexpr std::string_view kSuffix = ".log";

template <class T>
void Add(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

template <class T>
T Take(std::string_view& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return value;
}

uint32_t CheckOf(std::string_view entry) { return Crc32c(entry.substr(0, kChecked)) & kCheckMask; }

// Digits after `prefix`, as they are written: no sign, no leading zero.
std::optional<uint32_t> TakeNumber(std::string_view& text, std::string_view prefix) {
  if (!StartsWith(text, prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const auto digits = static_cast<size_t>(end - text.data());
  if (digits > 1 && text.front() == '0') return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

}  // namespace

std::string LogKey::FileName() const {
  return fmt::format("a{}-h{}-r{}-{}{}", attempt, host, rank, NameOf(stream), kSuffix);
}

std::optional<LogKey> LogKey::Parse(std::string_view file_name) {
  const auto attempt = TakeNumber(file_name, "a");
  const auto host = attempt ? TakeNumber(file_name, "-h") : std::nullopt;
  const auto rank = host ? TakeNumber(file_name, "-r") : std::nullopt;
  if (!rank || !StartsWith(file_name, "-") || !EndsWith(file_name, kSuffix)) return std::nullopt;
  const auto name = file_name.substr(1, file_name.size() - 1 - kSuffix.size());
  for (const auto stream : {LogStream::kSetup, LogStream::kStdout, LogStream::kStderr}) {
    if (name == NameOf(stream)) return LogKey{*attempt, *host, *rank, stream};
  }
  return std::nullopt;
}

void AddLogIndexEntry(std::string& out, const LogIndexEntry& entry) {
  const size_t start = out.size();
  Add(out, entry.wall_ms);
  Add(out, entry.offset);
  Add(out, entry.key.attempt);
  Add(out, entry.key.host);
  Add(out, entry.key.rank);
  Add(out, entry.length);
  Add(out, entry.bytes_crc);
  Add(out, static_cast<uint8_t>(entry.key.stream));
  const uint32_t check = CheckOf(std::string_view(out).substr(start));
  out.push_back(static_cast<char>(check));
  out.push_back(static_cast<char>(check >> 8));
  out.push_back(static_cast<char>(check >> 16));
}

std::optional<LogIndexEntry> DecodeLogIndexEntry(std::string_view bytes) {
  uint32_t check = 0;
  std::memcpy(&check, bytes.data() + kChecked, 3);
  if (check != CheckOf(bytes)) return std::nullopt;
  LogIndexEntry entry;
  entry.wall_ms = Take<int64_t>(bytes);
  entry.offset = Take<uint64_t>(bytes);
  entry.key.attempt = Take<uint32_t>(bytes);
  entry.key.host = Take<uint32_t>(bytes);
  entry.key.rank = Take<uint32_t>(bytes);
  entry.length = Take<uint32_t>(bytes);
  entry.bytes_crc = Take<uint32_t>(bytes);
  const auto stream = Take<uint8_t>(bytes);
  if (stream > static_cast<uint8_t>(LogStream::kStderr)) return std::nullopt;
  entry.key.stream = static_cast<LogStream>(stream);
  return entry;
}

LogIndexCheck::LogIndexCheck(std::map<LogKey, File> files) {
  for (const auto& [key, file] : files) streams_[key] = {file, 0};
}

std::optional<LogIndexEntry> LogIndexCheck::Next(std::string_view forty_bytes) {
  const auto entry = DecodeLogIndexEntry(forty_bytes);
  if (!entry) return LogIndexEntry{};
  if (entry->length == 0) return std::nullopt;
  const auto at = streams_.find(entry->key);
  if (at == streams_.end()) return LogIndexEntry{};
  Stream& stream = at->second;
  // Beyond the file: a power cut kept the index and lost the bytes. Before the covered part: the
  // bytes have their entry.
  if (entry->offset >= stream.file.bytes || entry->offset < stream.covered) {
    return LogIndexEntry{};
  }
  const uint64_t whole = std::min<uint64_t>(entry->length, stream.file.bytes - entry->offset);
  LogIndexEntry right = *entry;
  right.offset = stream.covered;
  right.length = static_cast<uint32_t>(std::min<uint64_t>(whole + (entry->offset - stream.covered),
                                                          std::numeric_limits<uint32_t>::max()));
  stream.covered += right.length;
  if (right == *entry) return std::nullopt;
  return right;
}

std::vector<LogIndexEntry> LogIndexCheck::Missing() const {
  std::vector<LogIndexEntry> entries;
  for (const auto& [key, stream] : streams_) {
    for (uint64_t at = stream.covered; at < stream.file.bytes;) {
      const auto length =
          static_cast<uint32_t>(std::min<uint64_t>(stream.file.bytes - at, kMaxLogChunk));
      entries.push_back({key, stream.file.wall_ms, at, length, 0});
      at += length;
    }
  }
  return entries;
}

}  // namespace athanor
