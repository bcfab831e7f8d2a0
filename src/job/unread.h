// Parameters that a job was given and that its script, by the end of an attempt, had not asked for:
// it trained with its own defaults while every list shows the parameter as if it had counted. The
// agent finds out (run/param_reads.h) and says it as a note in the job's history.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "job/event.h"
#include "job/record.h"

namespace athanor {

inline constexpr std::string_view kUnreadKind = "params_unread";

struct UnreadParam {
  std::string name;
  std::string value;
  // It was seen that the script did not read it. Else only no sign was seen that it did: a program
  // that is not Python reads SM_HP_LR unnoticed.
  bool sure = false;
  bool operator==(const UnreadParam&) const = default;
};

// The note about these parameters of the job, which are not none.
Cause UnreadNote(const JobSpec& spec, const std::vector<std::string>& names, bool sure);
// What such a note, among the last events of the job, says of the newest attempt that ended.
std::vector<UnreadParam> UnreadParams(const JobRecord& record, const std::vector<StoredEvent>& last);

// "lr=0.9, wd=0.1 were not read by the script", or, when that is not sure, "there is no sign that the
// script read lr=0.9 ...". Not for an empty list.
std::string UnreadText(const std::vector<UnreadParam>& params);
// The same of one, to stand beside its value: "not read by the script".
std::string UnreadMark(bool sure);
// What to do about it.
std::string UnreadHint(const std::vector<UnreadParam>& params);

}  // namespace athanor
