#include "record/db/log_walk.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace athanor {
namespace {

// Of the format, see https://sqlite.org/fileformat2.html#the_write_ahead_log. Numbers are big
// endian; the words that are summed are as the magic number says.
constexpr uint32_t kMagic = 0x377f0682;  // and | 1: words are summed as big endian
constexpr uint32_t kVersion = 3007000;
constexpr size_t kSummedOfHeader = 24;
constexpr size_t kSummedOfFrame = 8;
constexpr size_t kUsualPage = 4096;
constexpr int kMostLooks = 64;  // for a flipped bit: after real damage there may be many frames
constexpr size_t kBlockBytes = 1 << 20;

uint32_t BigAt(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return std::endian::native == std::endian::little ? __builtin_bswap32(value) : value;
}

struct Sum {
  uint32_t a = 0;
  uint32_t b = 0;
  bool operator==(const Sum&) const = default;
};

Sum SumAt(std::string_view bytes, size_t at) { return {BigAt(bytes, at), BigAt(bytes, at + 4)}; }

uint32_t Word(const char* at, bool swap) {
  uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return swap ? __builtin_bswap32(value) : value;
}

bool Swapped(uint32_t magic) {
  const bool big = (magic & 1) != 0;
  return big == (std::endian::native == std::endian::little);
}

Sum Add(Sum sum, std::string_view bytes, bool swap) {
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    sum.a += Word(bytes.data() + i, swap) + sum.b;
    sum.b += Word(bytes.data() + i + 4, swap) + sum.a;
  }
  return sum;
}

Sum SumOfFrame(Sum before, std::string_view frame, bool swap) {
  return Add(Add(before, frame.substr(0, kSummedOfFrame), swap), frame.substr(kLogFrameHeaderBytes),
             swap);
}

// Whether the checksum of `summed`, wrong by `off`, would be right if one bit were different. A
// word's part in the sum is its value times a factor that only depends on how many words follow.
bool OneBitIsWrong(std::string_view summed, bool swap, Sum off) {
  Sum first{1, 1};   // what one more in the first word of a pair adds to the sum
  Sum second{0, 1};  // and in the second
  for (size_t pair = summed.size() / 8; pair-- > 0;) {
    for (const auto& [factor, half] : {std::pair(first, size_t{0}), std::pair(second, size_t{4})}) {
      const uint32_t value = Word(summed.data() + pair * 8 + half, swap);
      for (int bit = 0; bit < 32; ++bit) {
        const uint32_t one = uint32_t{1} << bit;
        const uint32_t change = (value & one) != 0 ? 0 - one : one;
        if (factor.a * change == off.a && factor.b * change == off.b) return true;
      }
    }
    for (Sum* factor : {&first, &second}) {
      const uint32_t a = factor->a + factor->b;
      *factor = {a, a + factor->b};
    }
  }
  return false;
}

void PutSum(std::string& bytes, size_t at, Sum sum) {
  for (const uint32_t value : {sum.a, sum.b}) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes[at++] = static_cast<char>(value >> shift);
  }
}

class Walker {
 public:
  explicit Walker(const LogReader& read) : read_(read) {}

  Result<LogWalk> Run() {
    ATHANOR_TRY(header_, read_(0, kLogHeaderBytes));
    if (header_.size() < kLogHeaderBytes) return std::move(walk_);
    ATHANOR_CHECK_OK(ReadHeader());
    before_ = SumAt(header_, 24);
    const size_t size = walk_.page_size + kLogFrameHeaderBytes;
    const size_t at_once = std::max<size_t>(1, kBlockBytes / size);
    for (uint64_t number = 1;; number += at_once) {
      ATHANOR_TRY(std::string block, read_(walk_.FrameAt(number), at_once * size));
      const size_t whole = block.size() / size;
      for (size_t i = 0; i < whole; ++i) {
        Next(number + i, std::string_view(block).substr(i * size, size));
      }
      if (whole < at_once) break;
    }
    Judge();
    return std::move(walk_);
  }

 private:
  static bool HeaderFits(std::string_view header) {
    const uint32_t magic = BigAt(header, 0);
    const size_t size = BigAt(header, 8);
    return (magic & ~1u) == kMagic && BigAt(header, 4) == kVersion && size >= 512 &&
           size <= 65536 && (size & (size - 1)) == 0 &&
           Add({}, header.substr(0, kSummedOfHeader), Swapped(magic)) == SumAt(header, 24);
  }

  Status ReadHeader() {
    ATHANOR_TRY(const std::string first, read_(kLogHeaderBytes, kLogFrameHeaderBytes + kUsualPage));
    walk_.header_sound = HeaderFits(header_);
    for (size_t bit = 0; !walk_.header_sound && bit < kLogHeaderBytes * 8; ++bit) {
      std::string tried = header_;
      tried[bit / 8] = static_cast<char>(tried[bit / 8] ^ (1 << bit % 8));
      // Several may be right; the first frame tells which, except for a number that nothing depends
      // on.
      if (!HeaderFits(tried) || BigAt(tried, 8) != kUsualPage ||
          first.size() < kLogFrameHeaderBytes + kUsualPage ||
          !LogFrameFits(tried, "", first.substr(0, kLogFrameHeaderBytes),
                        first.substr(kLogFrameHeaderBytes))) {
        continue;
      }
      header_ = tried;
      walk_.header_sound = true;
      walk_.patches.push_back({0, tried});
      walk_.patched.push_back(0);
    }
    if (walk_.header_sound) {
      walk_.page_size = BigAt(header_, 8);
      swap_ = Swapped(BigAt(header_, 0));
      return Ok();
    }
    // Its frames identify themselves: one follows the other, whatever comes before them.
    walk_.page_size = kUsualPage;
    swap_ = Swapped(std::endian::native == std::endian::little ? 0 : 1);
    if (first.size() >= kLogFrameHeaderBytes) header_.replace(16, 8, first, 8, 8);
    return Ok();
  }

  std::string_view Salts() const { return std::string_view(header_).substr(16, 8); }

  void Patch(uint64_t number, std::string_view frame_header) {
    walk_.patches.push_back({walk_.FrameAt(number), std::string(frame_header)});
    walk_.patched.push_back(number);
  }

  bool IsFlipped(std::string_view frame, Sum right) {
    if (frame.substr(8, 8) != Salts() || looks_ == kMostLooks) return false;
    ++looks_;
    const Sum stored = SumAt(frame, 16);
    if (std::popcount(stored.a ^ right.a) + std::popcount(stored.b ^ right.b) == 1) return true;
    std::string summed(frame.substr(0, kSummedOfFrame));
    summed += frame.substr(kLogFrameHeaderBytes);
    return OneBitIsWrong(summed, swap_, {stored.a - right.a, stored.b - right.b});
  }

  void Next(uint64_t number, std::string_view frame) {
    Sum right = SumOfFrame(before_, frame, swap_);
    const Sum stored = SumAt(frame, 16);
    // This frame does not follow what the frame before says, but it does follow its bytes: then
    // what the frame before says is wrong, not its bytes.
    if (doubted_ && !(right == stored)) {
      const Sum after_doubted = SumOfFrame(doubted_->right, frame, swap_);
      if (after_doubted == stored && frame.substr(8, 8) == Salts()) {
        PutSum(doubted_->header, 16, doubted_->right);
        Patch(number - 1, doubted_->header);
        walk_.frames.back().sound = true;
        walk_.frames.back().flipped = false;
        right = after_doubted;
      }
    }
    doubted_.reset();
    LogFrameSeen seen{BigAt(frame, 0), BigAt(frame, 4), frame.substr(8, 8) == Salts(), false,
                      false};
    seen.sound = right == stored && seen.page != 0;
    // Salts are not in the sum. Frames left from an earlier log follow each other, but not a frame
    // of this one.
    const bool follows = walk_.frames.empty() ? walk_.header_sound : walk_.frames.back().sound;
    if (seen.sound && !seen.of_this_log && follows) {
      std::string header(frame.substr(0, kLogFrameHeaderBytes));
      Patch(number, header.replace(8, 8, Salts()));
      seen.of_this_log = true;
    }
    seen.sound = seen.sound && seen.of_this_log;
    if (!seen.sound && seen.of_this_log && walk_.header_sound) {
      seen.flipped = IsFlipped(frame, right);
      doubted_ = Doubted{std::string(frame.substr(0, kLogFrameHeaderBytes)), right};
    }
    walk_.frames.push_back(seen);
    before_ = stored;
  }

  void Judge() {
    bool cut = !walk_.header_sound;
    bool commit_before = false;  // in what is cut off
    uint64_t commits = 0;
    for (size_t i = 0; i < walk_.frames.size(); ++i) {
      const LogFrameSeen& frame = walk_.frames[i];
      const bool commit = frame.of_this_log && frame.pages_then != 0;
      cut |= !frame.sound;
      if (!cut && commit) {
        walk_.kept = i + 1;
        walk_.kept_commits = ++commits;
      }
      if (!cut) continue;
      // Only directly after it: remains of transactions that failed or were torn are there, too.
      walk_.damaged |= commit_before && frame.sound;
      walk_.damaged |= frame.flipped;
      if ((frame.sound || frame.flipped) && commit) ++walk_.cut_off;
      commit_before = commit;
    }
    // A header is on the disk before the first frame is written.
    if (!walk_.header_sound) walk_.damaged = walk_.cut_off > 0;
  }

  // An invalid frame, until the next one has been seen.
  struct Doubted {
    std::string header;
    Sum right;  // of its bytes
  };

  const LogReader& read_;
  LogWalk walk_;
  std::string header_;
  bool swap_ = false;
  Sum before_;  // what the frame before says of itself
  std::optional<Doubted> doubted_;
  int looks_ = 0;
};

}  // namespace

bool LogFrameFits(std::string_view log_header, std::string_view before, std::string_view header,
                  std::string_view page) {
  const bool swap = Swapped(BigAt(log_header, 0));
  const Sum from = before.empty() ? SumAt(log_header, 24) : SumAt(before, 16);
  return header.substr(8, 8) == log_header.substr(16, 8) &&
         Add(Add(from, header.substr(0, kSummedOfFrame), swap), page, swap) == SumAt(header, 16);
}

Result<LogWalk> WalkLog(const LogReader& read) { return Walker(read).Run(); }

}  // namespace athanor
