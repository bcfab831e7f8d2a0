#include "run/checkpoint/save_signs.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>
#include <vector>

#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kRemembered = 7;

struct NumberAt {
  std::string word;  // letters before it, lower case
  bool apart;        // something is between word and number, or there is no word
  bool last;         // only an extension follows it in its component
  int64_t value;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// Numbers of one path component, each with the word it belongs to.
std::vector<NumberAt> NumbersIn(std::string_view part) {
  std::vector<NumberAt> found;
  std::string word;
  bool apart = true;
  for (size_t i = 0; i < part.size();) {
    if (IsLetter(part[i])) {
      word.clear();
      for (; i < part.size() && IsLetter(part[i]); ++i) word += part[i];
      word = ToLower(word);
      apart = false;
    } else if (IsDigit(part[i])) {
      const size_t begin = i;
      while (i < part.size() && IsDigit(part[i])) ++i;
      NumberAt number{word, apart, i == part.size() || part[i] == '.', 0};
      const auto [end, error] = std::from_chars(part.data() + begin, part.data() + i, number.value);
      // A version or a decimal: 1.5, v2.0.
      const bool decimal = i + 1 < part.size() && part[i] == '.' && IsDigit(part[i + 1]);
      if (error == std::errc() && end == part.data() + i && !decimal) found.push_back(number);
      word.clear();
      apart = true;
    } else {
      apart = true;
      ++i;
    }
  }
  return found;
}

bool OneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// 0: no step. A higher one is believed before a lower one.
int Belief(const NumberAt& number) {
  if (OneOf(number.word, {"step", "steps", "globalstep"})) return 4;
  if (OneOf(number.word, {"iter", "iters", "iteration"})) return 3;
  if (OneOf(number.word, {"ckpt", "chkpt", "checkpoint"})) return 2;
  if (!number.apart || !number.last) return 0;
  if (OneOf(number.word, {"", "model", "weights", "state", "snapshot", "save"})) return 1;
  return 0;
}

}  // namespace

std::optional<int64_t> StepInName(std::string_view path) {
  std::optional<int64_t> step;
  int best = 0;
  for (const auto& part : Split(path, '/')) {
    const auto numbers = NumbersIn(part);
    for (size_t i = 0; i < numbers.size(); ++i) {
      int belief = Belief(numbers[i]);
      // A number without a word counts only if it is the whole name: 120.pt. Next to a second such
      // number it is unclear which is which: checkpoint_3_5000.pt.
      if (belief == 1 && numbers[i].word.empty() && !IsDigit(part[0])) belief = 0;
      const bool told = belief > 2 || std::none_of(numbers.begin(), numbers.end(), [&](auto& n) {
                          return &n != &numbers[i] && n.word.empty();
                        });
      if (!told) belief = 0;
      if (belief > 0 && belief >= best) {
        best = belief;
        step = numbers[i].value;
      }
    }
  }
  return step;
}

void SaveCost::Add(int64_t save_ms) {
  if (save_ms <= 0) return;
  last_.push_back(save_ms);
  if (last_.size() > kRemembered) last_.pop_front();
  ++total_;
}

int64_t SaveCost::ms() const {
  if (last_.empty()) return 0;
  std::vector<int64_t> sorted(last_.begin(), last_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace athanor
