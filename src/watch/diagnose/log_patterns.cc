#include "watch/diagnose/log_patterns.h"

#include <re2/re2.h>

#include "base/text/text.h"

namespace athanor {

std::vector<std::string> MatchedPatterns(const RetrySpec& retry, std::string_view text) {
  constexpr std::string_view kPrefix = "log:";
  std::vector<std::string> matched;
  for (const auto& word : retry.on) {
    if (!StartsWith(word, kPrefix)) continue;
    const RE2 pattern(word.substr(kPrefix.size()), RE2::Quiet);
    if (pattern.ok() && RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern)) {
      matched.push_back(word);
    }
  }
  return matched;
}

}  // namespace athanor
