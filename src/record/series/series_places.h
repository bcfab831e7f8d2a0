// Where the series of jobs are beneath a store's folder: <last 2 digits of the id>/<id>.series,
// with the index next to it. The first digits of an id are its time, so all runs of a month would
// share a folder; the last are random. Older versions used the first five: their files stay there.
#pragma once

#include <string>

#include "job/ids.h"

namespace athanor {

// The file of the job, at the older place if it is there. It may not exist.
std::string FindSeries(const std::string& dir, JobId job);
// Where a new file goes, and where older versions put theirs.
std::string SeriesPath(const std::string& dir, JobId job);
std::string OldSeriesPath(const std::string& dir, JobId job);
// The index that belongs to a file.
std::string IndexBeside(const std::string& series);

}  // namespace athanor
