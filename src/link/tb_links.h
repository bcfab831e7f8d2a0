// One parent folder for the event files of all jobs: <home>/tb/<experiment>/<run> is a link to the
// folder in which a job's agent keeps its files, so that a TensorBoard pointed at <home>/tb shows
// them all. Made by agents on the server's machine, by the server for the others (when the first
// event file comes in), and removed by the server with the job.
#pragma once

#include <string>

#include "base/result.h"
#include "job/ids.h"
#include "job/spec.h"

namespace athanor {

// The path of the link. If another job already has that name, the end of this job's id is appended.
// For the same job: the same link.
Result<std::string> LinkEvents(const std::string& home, JobId job, const JobSpec& spec);
// Removes the job's link, if there is one, and the experiment's folder if it was the last.
void UnlinkEvents(const std::string& home, JobId job);

}  // namespace athanor
