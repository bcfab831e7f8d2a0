// The bytes of a series file, independent of where the file is: frames of [u32 length][u32 crc32c
// of the payload][payload], little endian. A payload is the file's header (format, job), the
// definition of a name, or a block of points of one (attempt, host, rank, channel). Numbers are
// varints as in Protocol Buffers, in a block as differences to the item before; values are the
// eight bytes of the double, of which every bit is kept. A damaged frame is skipped without the
// others.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/ids.h"

namespace athanor {

inline constexpr size_t kMaxBlockItems = 512;
inline constexpr size_t kMaxSeriesName = 1024;
inline constexpr uint32_t kMaxSeriesId = 1u << 31;

struct SeriesBlock {
  uint32_t attempt = 1;
  uint32_t rank = 0;
  uint32_t channel = 0;
  struct Item {
    uint64_t seq = 0;  // strictly increasing within a block
    uint32_t name = 0;
    std::optional<int64_t> step;
    int64_t wall_ns = 0;
    double value = 0;
  };
  std::vector<Item> items;  // 1 to kMaxBlockItems
  uint32_t host = 0;
  uint64_t from = 0;  // the position of its frame in the file; set by ScanSeries
  uint64_t to = 0;
};

void AddHeaderFrame(std::string& out, JobId job);
void AddNameFrame(std::string& out, uint32_t id, std::string_view name);
void AddBlockFrame(std::string& out, const SeriesBlock& block);

// Called in the order of the file; null ones are skipped.
struct SeriesVisitor {
  std::function<void(JobId)> header;
  std::function<void(uint32_t id, std::string_view name)> name;
  std::function<void(const SeriesBlock&)> block;
};

struct SeriesScan {
  uint64_t end = 0;  // of the last valid frame; what follows is a torn tail
  struct Damage {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  std::vector<Damage> damage;  // unreadable, with valid frames after it
};

// Reads [from, to) of the file in pieces, `from` being the start of a frame. A frame with a wrong
// checksum or form is skipped and reported, never visited. Errors: only those of reading, and
// kInvalid for a format this program does not know.
Result<SeriesScan> ScanSeries(int fd, uint64_t from, uint64_t to, const SeriesVisitor& visitor);
// Frames in memory, up to the first that is not valid: returns how many bytes that is.
Result<uint64_t> ReadFrames(std::string_view bytes, const SeriesVisitor& visitor);

}  // namespace athanor
