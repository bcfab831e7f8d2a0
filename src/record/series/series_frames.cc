#include "record/series/series_frames.h"

#include <algorithm>
#include <utility>

namespace athanor {

void FrameMaker::Add(uint64_t seq, std::string_view name, std::optional<int64_t> step,
                     int64_t wall_ns, double value) {
  block_.items.push_back({seq, NumberOf(name), step, wall_ns, value});
  ++points_;
  if (block_.items.size() == kMaxBlockItems) EndBlock();
}

// Scripts log their metrics in the same order every time: the name after the last one is tried
// first, which is cheaper than to look it up.
uint32_t FrameMaker::NumberOf(std::string_view name) {
  if (!names_.empty()) {
    if (++last_ >= names_.size()) last_ = 0;
    if (names_[last_] == name) return last_;
  }
  const auto [at, fresh] =
      numbers_.try_emplace(std::string(name), static_cast<uint32_t>(names_.size()));
  last_ = at->second;
  if (fresh) {
    names_.push_back(at->first);
    AddNameFrame(frames_, last_, name);
  }
  return last_;
}

void FrameMaker::EndBlock() {
  AddBlockFrame(frames_, block_);
  block_.items.clear();
}

std::string FrameMaker::Take() {
  if (!block_.items.empty()) EndBlock();
  return std::exchange(frames_, {});
}

Result<SentPoints> ReadSentPoints(std::string_view frames) {
  SentPoints sent;
  bool whole = true;
  SeriesVisitor visitor;
  visitor.header = [&](JobId) { whole = false; };
  visitor.name = [&](uint32_t number, std::string_view name) {
    if (number >= kMaxSentNames) {
      whole = false;
      return;
    }
    if (number >= sent.names.size()) sent.names.resize(number + 1);
    sent.names[number] = name;
  };
  visitor.block = [&](const SeriesBlock& block) {
    whole = whole && std::all_of(block.items.begin(), block.items.end(), [&](const auto& item) {
              return item.name < sent.names.size() && !sent.names[item.name].empty();
            });
    sent.blocks.push_back(block);
  };
  ATHANOR_TRY(const uint64_t read, ReadFrames(frames, visitor));
  if (whole && read == frames.size()) return sent;
  return Fail(ErrorCode::kInvalid, "the points that were sent are damaged", "send them again");
}

}  // namespace athanor
