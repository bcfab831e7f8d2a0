// Small text functions that more than one room needs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor {

std::vector<std::string> Split(std::string_view text, char separator);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view Trim(std::string_view text);
bool StartsWith(std::string_view text, std::string_view prefix);
bool EndsWith(std::string_view text, std::string_view suffix);
std::string ToLower(std::string_view text);
std::string ToUpper(std::string_view text);
std::string ReplaceAll(std::string text, std::string_view from, std::string_view to);

// "90s", "10m", "8h", "1h30m", "250ms", "2d"; a bare number means seconds.
Result<std::chrono::milliseconds> ParseDuration(std::string_view text);
// "512", "64KB", "1.5GiB", "2G"; powers of 1,000 for KB, of 1,024 for KiB and the bare letters.
Result<uint64_t> ParseBytes(std::string_view text);
std::string HumanBytes(uint64_t bytes);  // "1.2 MiB"
// "320 ms", "4.2 s", "41 s", "1 m 02 s", "2 h", "3 d 4 h"; as web/src/lib/format.ts does.
std::string HumanDuration(std::chrono::milliseconds duration);

// The candidate nearest to `word`, or one that contains it (trials: max_trials), as a suggestion.
std::optional<std::string> Nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

// Quoted for a POSIX shell: 'it'\''s'; unchanged if no quoting is needed.
std::string ShellQuote(std::string_view word);
// Control characters and invalid UTF-8 become \xNN, so that a name cannot control a terminal.
std::string Printable(std::string_view text);
bool IsUtf8(std::string_view text);
std::string Base64(std::string_view bytes);
std::optional<std::string> FromBase64(std::string_view text);
std::string UrlEncode(std::string_view text);  // everything except A-Z a-z 0-9 - _ . ~
std::optional<std::string> UrlDecode(std::string_view text);  // exactly once
std::string Hex(std::string_view bytes);
// Columns that it takes on a terminal (UTF-8 aware, wide characters count as two).
size_t DisplayWidth(std::string_view text);

}  // namespace athanor
