// The index next to a series file: what the store would find by reading the file up to a length, so
// that a job with a million points opens at once. It is a copy, and is discarded if it does not
// match: it has the length of the file at that time and a checksum of the bytes before it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "job/ids.h"
#include "record/series/series_merge.h"
#include "record/series/series_pyramid.h"

namespace athanor {

inline constexpr size_t kIndexTail = 4096;  // bytes of the file that are checked
// At its start. It changes with the content of the index, or with its meaning.
inline constexpr std::string_view kIndexMark = "ATHSIDX4";

struct SeriesIndex {
  JobId job;
  uint64_t length = 0;    // of the file, up to which this is valid
  uint32_t tail_crc = 0;  // crc32c of the last kIndexTail bytes before that, or of all
  uint32_t next_id = 0;
  // by attempt, host, rank, channel
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>, uint64_t> last_seq;
  Resumes resumes;
  struct Series {
    std::string name;
    std::vector<uint32_t> ids;  // the first is the one new points are stored under
    RunningSummary::State summary;
    std::vector<SeriesChunk> chunks;
  };
  std::vector<Series> series;
};

std::string EncodeIndex(const SeriesIndex& index);
// None if the bytes are not complete, or of another format.
std::optional<SeriesIndex> DecodeIndex(std::string_view bytes);

}  // namespace athanor
