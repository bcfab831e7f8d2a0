// The part of Unicode that names on a terminal need. Not a text library: no normalisation, no
// grapheme clusters, no locale.
#pragma once

#include <cstddef>
#include <string_view>

namespace athanor {

// Bytes of the code point at the start of `text`; 0 if there is none (empty, cut short, overlong, a
// surrogate, beyond U+10FFFF).
size_t Utf8Length(std::string_view text);
// The code point in the first `length` bytes, as counted by Utf8Length.
char32_t Utf8Decode(std::string_view text, size_t length);

// Control characters of both sets, and the marks that change writing direction.
bool DrivesTerminal(char32_t code_point);
// 0 for controls and combining marks, 2 for East Asian wide and emoji, else 1.
int CodePointWidth(char32_t code_point);

}  // namespace athanor
