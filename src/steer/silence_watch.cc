#include "steer/silence_watch.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "job/shown.h"

namespace athanor {
namespace {

constexpr Millis kEvery{5'000};

}  // namespace

void SilenceWatch::Start() {
  parts_.executor.After(kEvery, [this] { Look(); });
}

void SilenceWatch::Look() {
  std::set<JobId> silent;
  for (const auto* record : parts_.holding()) {
    if (SilentSince(*record, parts_.clock.Wall())) silent.insert(record->id);
  }
  std::vector<JobId> changed;
  std::ranges::set_symmetric_difference(silent, silent_, std::back_inserter(changed));
  silent_ = std::move(silent);
  for (const JobId id : changed) parts_.changed(id);
  Start();
}

}  // namespace athanor
