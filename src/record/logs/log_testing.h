// For tests only: the content of a log, stream by stream.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "record/fault_testing.h"
#include "record/logs/log_index.h"
#include "record/logs/log_store.h"

namespace athanor {

struct OpenedLog {
  std::vector<std::string> reports;
  std::unique_ptr<LogStore> store;

  explicit OpenedLog(const std::string& dir) {
    store = LogStore::Open(dir, [this](JobId, const Error& error) {
              EXPECT_EQ(error.code, ErrorCode::kCorrupt);
              reports.push_back(error.what);
            }).value();
  }

  // Everything, by reads of at most `max_bytes`.
  std::map<LogKey, std::string> Streams(JobId job, size_t max_bytes = 1 << 20) {
    std::map<LogKey, std::string> streams;
    LogCursor cursor;
    for (;;) {
      const auto entries = store->Read(job, cursor, max_bytes);
      if (!entries) {
        EXPECT_EQ(entries.error().code, ErrorCode::kNotFound);
        return streams;
      }
      if (entries->empty()) return streams;
      size_t sum = 0;
      for (const auto& entry : *entries) {
        EXPECT_FALSE(entry.bytes.empty());
        streams[{entry.attempt, entry.host, entry.rank, entry.stream}] += entry.bytes;
        sum += entry.bytes.size();
      }
      EXPECT_TRUE(sum <= max_bytes || entries->size() == 1);
    }
  }
  std::string Stream(JobId job, const LogKey& key = {}) { return Streams(job)[key]; }

  Result<LogStore::Appended> Append(JobId job, const LogKey& key, uint64_t offset,
                                    std::string_view bytes, int64_t wall_ms = 1) {
    return store->Append(job,
                         {key.attempt, key.host, key.rank, key.stream, offset, wall_ms, bytes});
  }
  uint64_t Length(JobId job, const LogKey& key = {}) {
    return store->Length(job, key.attempt, key.host, key.rank, key.stream).value();
  }
};

// Text that is different at every position: line numbers.
inline std::string Lines(size_t first, size_t count) {
  std::string text;
  for (size_t i = first; i < first + count; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

}  // namespace athanor
