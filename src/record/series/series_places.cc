#include "record/series/series_places.h"

#include <string_view>

#include "base/io/files.h"

namespace athanor {
namespace {

constexpr size_t kDigits = 2;
constexpr size_t kOldDigits = 5;
constexpr std::string_view kEnding = ".series";

std::string FileIn(const std::string& dir, const std::string& folder, const std::string& id) {
  std::string path = JoinPath(dir, folder);
  path += '/';
  path += id;
  return path += kEnding;
}

}  // namespace

std::string SeriesPath(const std::string& dir, JobId job) {
  const std::string id = job.ToString();
  return FileIn(dir, id.substr(id.size() - kDigits), id);
}

std::string OldSeriesPath(const std::string& dir, JobId job) {
  const std::string id = job.ToString();
  return FileIn(dir, id.substr(0, kOldDigits), id);
}

std::string FindSeries(const std::string& dir, JobId job) {
  std::string path = SeriesPath(dir, job);
  if (Exists(path)) return path;
  std::string old = OldSeriesPath(dir, job);
  return Exists(old) ? old : path;
}

std::string IndexBeside(const std::string& series) {
  return series.substr(0, series.size() - kEnding.size()) + ".index";
}

}  // namespace athanor
