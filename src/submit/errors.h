// The errors of this room: one table from which `ath explain` and docs/errors.md
// are made. An Error's `id` names its row.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace athanor {

struct SubmitErrorRow {
  std::string_view id;       // "ATH-S0105"
  std::string_view title;    // "unknown key"
  std::string_view explain;  // a paragraph
};
std::span<const SubmitErrorRow> SubmitErrors();
const SubmitErrorRow* FindSubmitError(std::string_view id);

// An Error of code kInvalid with all its texts; the code that knows `where` adds it.
tl::unexpected<Error> Refuse(std::string_view id, std::string what, std::string why,
                             std::string hint);
// A value from outside, short and safe enough for a message: 'text', or the beginning of it and its
// length.
std::string Quoted(std::string_view text);

}  // namespace athanor
