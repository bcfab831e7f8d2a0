// Any bytes as the index of a log with two streams: every stored byte is read exactly once, in its
// stream's order, and a second opening has nothing to repair.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "base/io/crc32c.h"
#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "record/logs/log_index.h"
#include "record/logs/log_store.h"

namespace {

using athanor::LogKey;
using athanor::LogStream;

void Check(bool good) {
  if (!good) std::abort();
}

// Corrects the checksums of entries, so that their fields are reached.
std::string WithChecksums(std::string bytes) {
  for (size_t at = 0; at + 40 <= bytes.size(); at += 40) {
    const uint32_t check = athanor::Crc32c(std::string_view(bytes).substr(at, 37));
    __builtin_memcpy(bytes.data() + at + 37, &check, 3);
  }
  return bytes;
}

void CheckExact(athanor::LogStore& store, athanor::JobId job,
                const std::map<LogKey, std::string>& text) {
  std::map<LogKey, std::string> found;
  athanor::LogCursor cursor;
  for (;;) {
    const auto entries = store.Read(job, cursor, 64).value();
    if (entries.empty()) break;
    for (const auto& entry : entries) {
      found[{entry.attempt, entry.host, entry.rank, entry.stream}] += entry.bytes;
    }
  }
  Check(found == text);
  Check(store.Tail(job, 2).has_value());
  Check(store.Since(job, 5).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  static const TestDir dir;
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 != 0) bytes = WithChecksums(std::move(bytes));
  const JobId job{};
  const std::string folder = dir / job.ToString();
  std::map<LogKey, std::string> text = {
      {LogKey{0, 0, 0, LogStream::kSetup}, "first line\nsecond\nand the third"},
      {LogKey{1, 0, 0, LogStream::kStdout}, std::string(300, '.')}};
  Check(MakeDirs(folder).ok());
  for (const auto& [key, content] : text) {
    Check(ReplaceFile(folder + "/" + key.FileName(), content).ok());
  }
  Check(ReplaceFile(folder + "/index", bytes).ok());
  CheckExact(*LogStore::Open(dir.path()).value(), job, text);
  bool repaired = false;
  auto store = LogStore::Open(dir.path(), [&](JobId, const Error& error) {
                 repaired |= error.what.find("repaired") != std::string::npos;
               }).value();
  const LogKey& key = text.rbegin()->first;
  Check(store->Append(job, {key.attempt, key.host, key.rank, key.stream, 300, 9, "end"})->added ==
        3);
  Check(!repaired);
  text.rbegin()->second += "end";
  CheckExact(*store, job, text);
  return 0;
}
