// `ath ui`: the page in a browser.
#pragma once

#include <string>

#include "cli/verbs/verbs.h"

namespace athanor {

// Prints the page's address, with `link` one that works once for anyone; opens it if there is a
// screen, unless `print`.
int UiVerb(const Common& common, const std::string& job, bool link, bool print);

}  // namespace athanor
