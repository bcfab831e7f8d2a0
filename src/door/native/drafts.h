// What the native routes that make jobs share: submit, retry and resume.
#pragma once

#include <string>

#include "base/result.h"
#include "door/doors.h"
#include "job/record.h"

namespace athanor {

// A job file that came as text, from a page: its spec, with the source and the shell's variables of
// the job `like`; without one it has no files. kInvalid with the position in the text, and for what
// only makes sense in a shell: a source folder, a path that is not absolute, a search (`tune`).
Result<JobSpec> SpecFromText(const std::string& text, const JobRecord* like);

// Submits the draft and answers the call when it is durable; refuses what steer/admission.h
// refused.
void SubmitDraft(DoorContext& context, Result<JobRecord> draft, const Call& call);

}  // namespace athanor
