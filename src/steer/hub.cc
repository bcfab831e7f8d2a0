#include "steer/hub.h"

#include <vector>

namespace athanor {

Hub::Id Hub::Listen(JobId job, Listener listener) {
  auto id = next_++;
  by_id_[id] = {job, std::move(listener)};
  by_job_.emplace(job, id);
  return id;
}

Hub::Id Hub::ListenAll(Listener listener) {
  auto id = next_++;
  by_id_[id] = {std::nullopt, std::move(listener)};
  all_.insert(id);
  return id;
}

Hub::Id Hub::ListenNews(Listener listener) {
  auto id = next_++;
  by_id_[id] = {std::nullopt, std::move(listener)};
  news_.insert(id);
  return id;
}

void Hub::Forget(Id id) {
  auto it = by_id_.find(id);
  if (it == by_id_.end()) return;
  if (it->second.job) {
    auto [begin, end] = by_job_.equal_range(*it->second.job);
    for (auto entry = begin; entry != end; ++entry) {
      if (entry->second == id) {
        by_job_.erase(entry);
        break;
      }
    }
  }
  all_.erase(id);
  news_.erase(id);
  by_id_.erase(it);
}

void Hub::Tell(JobId job, News news) {
  std::vector<Id> told;
  auto [begin, end] = by_job_.equal_range(job);
  for (auto entry = begin; entry != end; ++entry) told.push_back(entry->second);
  if (news == News::kState) told.insert(told.end(), all_.begin(), all_.end());
  told.insert(told.end(), news_.begin(), news_.end());
  // A listener may remove itself or others while it is called.
  for (auto id : told) {
    auto it = by_id_.find(id);
    if (it == by_id_.end()) continue;
    auto listener = it->second.listener;
    listener(job, news);
  }
}

const LiveStats* Hub::FindStats(JobId job) const {
  auto it = stats_.find(job);
  return it == stats_.end() ? nullptr : &it->second;
}

}  // namespace athanor
