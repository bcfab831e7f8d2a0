// The classes of causes: one table from which `ath why`, `ath explain`,
// docs/errors.md and the exit statuses are made.
#pragma once

#include <span>
#include <string_view>

#include "job/cause_kind.h"

namespace athanor {

struct CauseRow {
  CauseKind kind;
  std::string_view code;     // "ATH-J0137"
  std::string_view title;    // "killed by the kernel: out of memory"
  std::string_view explain;  // a paragraph for `ath explain`
  bool infrastructure;       // not the script's fault; retried without being counted
  int exit_status;           // of `ath run` when the script never started; 0: the script's own
  // A failure of the script itself, named more precisely than python_exception or nonzero_exit. In
  // retry.on, those two names include it.
  bool refined = false;

  std::string_view name() const { return NameOf(kind); }  // "out_of_memory"
};
std::span<const CauseRow> Causes();  // one of each kind, in order
const CauseRow& RowOf(CauseKind kind);
const CauseRow* FindCause(std::string_view name_or_code);  // null: this version does not know it

}  // namespace athanor
