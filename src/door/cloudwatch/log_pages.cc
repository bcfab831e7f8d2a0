#include "door/cloudwatch/log_pages.h"

#include <algorithm>
#include <deque>
#include <iterator>

namespace athanor {
namespace {

constexpr size_t kPiece = 256 << 10;
constexpr size_t kEventOverhead = 26;

size_t CostOf(const LogEvent& event) { return event.text.size() + kEventOverhead; }

// The greatest time of the entries before `before`, or `at_least` when that is later. Clocks
// hardly ever go back, so one look is the rule.
Result<int64_t> FloorBefore(const LogStore& logs, JobId job, uint64_t before, int64_t at_least) {
  const auto reached = [&](int64_t wall_ms) -> Result<bool> {
    ATHANOR_TRY(const auto cursor, logs.Since(job, wall_ms));
    return cursor.entry < before;
  };
  int64_t low = std::clamp<int64_t>(at_least, 0, kLatestTime);
  if (before == 0 || low == kLatestTime) return low;
  ATHANOR_TRY(const bool later, reached(low + 1));
  if (!later) return low;
  int64_t high = kLatestTime + 1;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    ATHANOR_TRY(const bool is_low, reached(middle));
    (is_low ? low : high) = middle;
  }
  return low;
}

// The last events of a page that is filled from the end.
class LastEvents {
 public:
  explicit LastEvents(const LogPageWant& want) : want_(want) {}

  void Push(LogEvent event) {
    bytes_ += CostOf(event);
    events_.push_back(std::move(event));
    while (events_.size() > want_.limit || bytes_ > want_.bytes) {
      bytes_ -= CostOf(events_.front());
      events_.pop_front();
      full_ = true;
    }
  }
  // Before all that this one has; nothing more fits once one was dropped.
  void Prepend(LastEvents earlier) {
    full_ = full_ || earlier.full_;
    while (!earlier.events_.empty()) {
      auto& event = earlier.events_.back();
      if (events_.size() >= want_.limit || bytes_ + CostOf(event) > want_.bytes) {
        full_ = true;
        return;
      }
      bytes_ += CostOf(event);
      events_.push_front(std::move(event));
      earlier.events_.pop_back();
    }
  }
  bool full() const { return full_ || events_.size() >= want_.limit; }
  size_t bytes() const { return bytes_; }
  std::vector<LogEvent> Take() {
    return {std::make_move_iterator(events_.begin()), std::make_move_iterator(events_.end())};
  }

 private:
  const LogPageWant& want_;
  std::deque<LogEvent> events_;
  size_t bytes_ = 0;
  bool full_ = false;
};

struct Block {
  uint64_t first = 0;
  int64_t latest_ms = 0;  // of its entries
};

// The events of a block that end at `from` or later and are before `end`; their times are as if
// nothing had been before the block.
Result<LastEvents> EventsOfBlock(const LogStore& logs, const LogPageWant& want, Block& block,
                                 uint64_t from, const LogPosition& end) {
  const uint64_t behind = block.first + kEventBlock;
  LogCursor cursor{block.first};
  LogEvents made(want.host);
  std::vector<LogEvent> events;
  LastEvents last(want);
  for (bool more = true; more;) {
    ATHANOR_TRY(const auto entries, logs.Read(want.job, cursor, kPiece));
    for (const auto& entry : entries) {
      if (entry.after.entry <= behind) made.Add(entry, events);
    }
    more = !entries.empty() && cursor.entry < behind;
    // No line stays open where a block ends, even if its last entry is void.
    if (cursor.entry >= behind || (!more && want.over)) made.Finish(events);
    for (auto& event : events) {
      if (event.entry >= from && end.Passed(event)) last.Push(std::move(event));
    }
    events.clear();
  }
  block.latest_ms = made.Position().floor_ms;
  return last;
}

// Times never go back, over all that was before.
Status RaiseTimes(const LogStore& logs, JobId job, const std::vector<Block>& newest_first,
                  std::vector<LogEvent>& events) {
  if (events.empty()) return Ok();
  const uint64_t first = FirstOfBlock(events.front().entry);
  ATHANOR_TRY(int64_t floor, FloorBefore(logs, job, first, events.front().time_ms));
  auto block = newest_first.rbegin();
  for (auto& event : events) {
    for (; block != newest_first.rend() && block->first < FirstOfBlock(event.entry); ++block) {
      if (block->first >= first) floor = std::max(floor, block->latest_ms);
    }
    event.time_ms = floor = std::max(floor, event.time_ms);
  }
  return Ok();
}

}  // namespace

Result<LogPosition> PositionSince(const LogStore& logs, JobId job, int64_t wall_ms) {
  if (wall_ms <= 0) return LogPosition{};
  ATHANOR_TRY(const auto cursor, logs.Since(job, wall_ms));
  return LogPosition::At(cursor.entry);
}

Result<LogPage> PageFrom(const LogStore& logs, const LogPageWant& want, const LogPosition& start) {
  LogPage page;
  page.before = page.after = start;
  LogCursor cursor{start.from};
  LogEvents made(want.host, start.floor_ms);
  std::vector<LogEvent> events;
  // False once the page is full; then `after` is set.
  const auto take = [&] {
    for (auto& event : events) {
      if (start.Passed(event) || event.time_ms < want.start_ms) continue;
      const size_t cost = CostOf(event);
      const bool late = event.time_ms >= want.end_ms;
      const bool full = page.events.size() >= want.limit || page.bytes + cost > want.bytes;
      if (late || full) {
        page.after = {event.entry, event.number, FirstOfBlock(event.entry), event.time_ms};
        if (made.Position().entry == event.entry) page.after.from = made.Position().from;
        page.more = full && !late;
        return false;
      }
      if (want.wanted && !want.wanted(event.text)) continue;
      page.bytes += cost;
      page.events.push_back(std::move(event));
    }
    events.clear();
    return true;
  };
  for (;;) {
    ATHANOR_TRY(const auto entries, logs.Read(want.job, cursor, kPiece));
    for (const auto& entry : entries) {
      // Reading again up to `start` is not progress.
      if (entry.after.entry > start.entry) page.read += entry.bytes.size();
      made.Add(entry, events);
      if (!take()) return page;
    }
    if (entries.empty()) break;
    if (page.read >= want.most_read) {
      page.after = std::max(start, made.Position());
      page.more = true;
      return page;
    }
  }
  if (want.over) made.Finish(events);
  if (!take()) return page;
  page.after = std::max(start, made.Position());
  return page;
}

Result<LogPage> PageBefore(const LogStore& logs, const LogPageWant& want,
                           std::optional<LogPosition> end) {
  ATHANOR_TRY(const auto size, logs.Tail(want.job, 0));
  // What the end of the job may still complete ends in the last entry there is.
  const uint64_t last_entry = size.entry == 0 ? 0 : size.entry - 1;
  LogPosition behind{size.entry, 0, FirstOfBlock(size.entry), 0};
  if (end) behind = std::min(behind, *end);
  if (want.end_ms != std::numeric_limits<int64_t>::max()) {
    ATHANOR_TRY(const auto late, PositionSince(logs, want.job, want.end_ms));
    behind = std::min(behind, late);
  }
  ATHANOR_TRY(const auto from, PositionSince(logs, want.job, want.start_ms));
  LastEvents last(want);
  std::vector<Block> blocks;
  for (uint64_t first = FirstOfBlock(std::min(last_entry, behind.entry));; first -= kEventBlock) {
    blocks.push_back({first, 0});
    ATHANOR_TRY(auto events, EventsOfBlock(logs, want, blocks.back(), from.entry, behind));
    last.Prepend(std::move(events));
    if (first <= from.entry || last.full()) break;
  }
  LogPage page;
  page.bytes = last.bytes();
  page.more = last.full();
  page.events = last.Take();
  ATHANOR_CHECK_OK(RaiseTimes(logs, want.job, blocks, page.events));
  page.before = page.after = end.value_or(LogPosition::At(last_entry));
  if (!page.events.empty()) {
    const auto& first = page.events.front();
    page.before = {first.entry, first.number, FirstOfBlock(first.entry), first.time_ms};
    page.after = LogPosition::After(page.events.back());
  }
  return page;
}

}  // namespace athanor
