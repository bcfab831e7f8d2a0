// A history that a client reads page by page, between two pages: the series is read once, and its
// pages fit together though points come meanwhile. One at a time: the next one takes its place.
// Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "job/ids.h"
#include "record/series/series_store.h"

namespace athanor {

class OpenHistory {
 public:
  using Points = std::shared_ptr<const std::vector<SeriesPoint>>;

  // Null unless the page that begins at `offset` is the next one of this history.
  Points Take(JobId run, const std::string& key, size_t offset) {
    const std::lock_guard lock(mutex_);
    if (run != run_ || key != key_ || offset != next_) return nullptr;
    return std::exchange(points_, nullptr);
  }

  void Keep(JobId run, const std::string& key, size_t next, Points points) {
    if (points->size() > kMostPoints) return;
    const std::lock_guard lock(mutex_);
    run_ = run;
    key_ = key;
    next_ = next;
    points_ = std::move(points);
  }

 private:
  static constexpr size_t kMostPoints = 250'000;  // held until somebody reads another

  std::mutex mutex_;
  JobId run_;
  std::string key_;
  size_t next_ = 0;
  Points points_;
};

}  // namespace athanor
