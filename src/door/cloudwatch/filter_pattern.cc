#include "door/cloudwatch/filter_pattern.h"

#include <algorithm>

#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kLongestPattern = 1024;
constexpr std::string_view kSpace = " \t\r\n";

// Others need quotes, as with AWS: a script that works here works there.
bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

tl::unexpected<Error> Wrong(std::string what) {
  return Fail(ErrorCode::kInvalid, "Invalid filter pattern: " + std::move(what));
}

// A quoted phrase at the start of `rest`, which is moved past it.
Result<std::string> TakePhrase(std::string_view& rest) {
  std::string phrase;
  for (size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      return phrase;
    }
    if (rest[i] == '\\' && i + 1 < rest.size()) ++i;
    phrase += rest[i];
  }
  return Wrong("a quotation mark is not closed");
}

Result<std::string> TakeWord(std::string_view& rest) {
  const auto end = std::min(rest.find_first_of(kSpace), rest.size());
  std::string word(rest.substr(0, end));
  rest.remove_prefix(end);
  if (!std::all_of(word.begin(), word.end(), IsPlain)) {
    return Wrong("Invalid character(s) in term '" + Printable(word.substr(0, 80)) +
                 "'; put it in double quotes");
  }
  return word;
}

}  // namespace

Result<FilterPattern> FilterPattern::Parse(std::string_view text) {
  FilterPattern pattern;
  if (text.size() > kLongestPattern) return Wrong("longer than 1024 characters");
  std::string_view rest = Trim(text);
  if (!rest.empty() && std::string_view("{[%").find(rest.front()) != std::string_view::npos) {
    return Wrong(
        "patterns for JSON, columns and regular expressions are not done here; use terms "
        "and \"exact phrases\", or: ath logs JOB --grep PATTERN");
  }
  while (!rest.empty()) {
    auto* terms = &pattern.all_;
    if (rest.front() == '?') terms = &pattern.any_;
    if (rest.front() == '-') terms = &pattern.none_;
    if (terms != &pattern.all_) rest.remove_prefix(1);
    if (rest.empty()) return Wrong("a term is missing at the end");
    ATHANOR_TRY(std::string term, rest.front() == '"' ? TakePhrase(rest) : TakeWord(rest));
    if (term.empty()) return Wrong("a term is empty");
    if (!rest.empty() && kSpace.find(rest.front()) == std::string_view::npos) {
      return Wrong("a space is missing between two terms");
    }
    terms->push_back(std::move(term));
    rest = Trim(rest);
  }
  // As AWS documents it: next to other terms, those with a question mark do not count.
  if (!pattern.all_.empty() || !pattern.none_.empty()) pattern.any_.clear();
  return pattern;
}

bool FilterPattern::Matches(std::string_view message) const {
  const auto there = [&](const std::string& term) {
    return message.find(term) != std::string_view::npos;
  };
  return std::all_of(all_.begin(), all_.end(), there) &&
         std::none_of(none_.begin(), none_.end(), there) &&
         (any_.empty() || std::any_of(any_.begin(), any_.end(), there));
}

}  // namespace athanor
