// How a check of the stores is shown: by `ath fsck`, and by a restore, which ends with one.
#pragma once

#include <cstdint>
#include <string>

#include "base/text/json.h"
#include "record/fsck/fsck.h"

namespace athanor {

void PrintFindings(const FsckReport& report);  // a line each on stdout, then a sum
Json ReportView(const FsckReport& report);

}  // namespace athanor
