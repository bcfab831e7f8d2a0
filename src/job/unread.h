// Parameters that a job was given and that its script, by the end of an attempt, had not read: it
// trained with its own defaults, while every list shows the parameter as if it had been used. The
// agent finds out (run/agent/param_reads.h) and adds a note to the job's history.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "job/event.h"
#include "job/record.h"

namespace athanor {

struct UnreadParam {
  std::string name;
  std::string value;
  // True: the script certainly did not read it. False: there was only no sign that it did; a
  // program that is not Python can read SM_HP_LR without being noticed.
  bool sure = false;
  bool operator==(const UnreadParam&) const = default;
};

// The note about these parameters of the job; the list is not empty.
Cause UnreadNote(const JobSpec& spec, const std::vector<std::string>& names, bool sure);
// What such a note, among the last events of the job, says about the newest attempt that ended.
std::vector<UnreadParam> UnreadParams(const JobRecord& record,
                                      const std::vector<StoredEvent>& last);

// "lr=0.9, wd=0.1 were not read by the script", or, if that is not certain, "there is no sign that
// the script read lr=0.9 ...". Not for an empty list.
std::string UnreadText(const std::vector<UnreadParam>& params);
// The same for one parameter, to show next to its value: "not read by the script".
std::string UnreadMark(bool sure);
// What to do about it.
std::string UnreadHint(const std::vector<UnreadParam>& params);

}  // namespace athanor
