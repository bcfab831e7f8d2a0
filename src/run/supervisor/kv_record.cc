#include "run/supervisor/kv_record.h"

#include <charconv>

namespace athanor {
namespace {

constexpr std::string_view kEnd = "end";

bool IsKey(std::string_view key) {
  if (key.empty() || key.size() > 64) return false;
  for (char c : key) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.')) return false;
  }
  return true;
}

// Takes one NUL-ended field off the front of `rest`.
bool TakeField(std::string_view& rest, std::string_view& field) {
  const size_t end = rest.find('\0');
  if (end == std::string_view::npos) return false;
  field = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return true;
}

tl::unexpected<Error> Corrupt(std::string_view kind, std::string why) {
  return Fail(
      Error{ErrorCode::kCorrupt, std::string(kind) + ": not a whole record"}.Why(std::move(why)));
}

}  // namespace

KvWriter::KvWriter(std::string_view kind, int version) {
  bytes_.append(kind).push_back('\0');
  bytes_.append(std::to_string(version)).push_back('\0');
}

void KvWriter::Text(std::string_view key, std::string_view value) {
  if (bad_key_.empty() && (!IsKey(key) || key == kEnd || value.find('\0') != value.npos)) {
    bad_key_ = key;
  }
  bytes_.append(key).push_back('\0');
  bytes_.append(value).push_back('\0');
  ++count_;
}

void KvWriter::Number(std::string_view key, int64_t value) { Text(key, std::to_string(value)); }

Result<std::string> KvWriter::Finish() && {
  if (!bad_key_.empty()) {
    return Fail(ErrorCode::kInvalid, "a value of '" + bad_key_ + "' holds a NUL byte");
  }
  bytes_.append(kEnd).push_back('\0');
  bytes_.append(std::to_string(count_)).push_back('\0');
  if (bytes_.size() > kKvLimit) {
    return Fail(ErrorCode::kInvalid, "the record is larger than 16 MiB");
  }
  return std::move(bytes_);
}

Result<std::vector<KvEntry>> ParseKv(std::string_view kind, int version, std::string_view bytes) {
  if (bytes.size() > kKvLimit) return Corrupt(kind, "larger than 16 MiB");
  std::string_view rest = bytes;
  KvEntry entry;
  if (!TakeField(rest, entry.key) || entry.key != kind) return Corrupt(kind, "another kind");
  if (!TakeField(rest, entry.value) || entry.value != std::to_string(version)) {
    return Corrupt(kind, "another version");
  }
  std::vector<KvEntry> entries;
  while (TakeField(rest, entry.key)) {
    if (!TakeField(rest, entry.value)) return Corrupt(kind, "ends within a value");
    if (entry.key == kEnd) {
      if (entry.value != std::to_string(entries.size())) return Corrupt(kind, "wrong count");
      if (!rest.empty()) return Corrupt(kind, "bytes after the end");
      return entries;
    }
    if (!IsKey(entry.key)) return Corrupt(kind, "a key is not a name");
    entries.push_back(entry);
  }
  return Corrupt(kind, "no end");
}

Result<int64_t> KvNumber(const KvEntry& entry) {
  int64_t number = 0;
  const char* first = entry.value.data();
  const char* last = first + entry.value.size();
  const auto [end, error] = std::from_chars(first, last, number);
  if (error != std::errc() || end != last) return KvFail(entry, "not a whole number");
  return number;
}

Result<int64_t> KvNumberIn(const KvEntry& entry, int64_t low, int64_t high) {
  ATHANOR_TRY(const int64_t number, KvNumber(entry));
  if (number < low || number > high) return KvFail(entry, "out of range");
  return number;
}

Result<bool> KvFlag(const KvEntry& entry) {
  ATHANOR_TRY(const int64_t number, KvNumberIn(entry, 0, 1));
  return number == 1;
}

tl::unexpected<Error> KvFail(const KvEntry& entry, std::string_view why) {
  return Fail(
      Error{ErrorCode::kCorrupt, "key '" + std::string(entry.key) + "': " + std::string(why)}.Why(
          std::string(entry.value.substr(0, 200))));
}

}  // namespace athanor
