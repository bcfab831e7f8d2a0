#include "run/agent/blob_fetch.h"

#include <algorithm>

#include "base/exec/mutex.h"

namespace athanor {
namespace {

constexpr size_t kConnections = 8;
constexpr size_t kAhead = 64;  // files that wait for their turn

}  // namespace

BlobFetch::BlobFetch(JobFiles& files, const BlobCache& cache, const BundleManifest& manifest)
    : files_(files), cache_(cache) {
  for (const auto& entry : manifest.entries) {
    if (entry.kind != BundleEntry::Kind::kFile || numbers_.contains(entry.sha256)) continue;
    if (cache.Has(entry.sha256)) continue;
    numbers_.emplace(entry.sha256, wanted_.size());
    wanted_.push_back(entry.sha256);
  }
  come_.resize(wanted_.size());
  for (size_t i = 0; i < std::min(kConnections, wanted_.size()); ++i) {
    threads_.emplace_back([this] { Fetch(); });
  }
}

BlobFetch::~BlobFetch() {
  {
    const MutexLock lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  for (auto& thread : threads_) thread.join();
}

void BlobFetch::Fetch() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this]() REQUIRES(mutex_) {
      return over_ || next_ == wanted_.size() || next_ < asked_ + kAhead;
    });
    if (over_ || next_ == wanted_.size()) return;
    const size_t mine = next_++;
    lock.unlock();
    auto fd = files_.Get(Shelf::kBlobs, wanted_[mine]);
    if (fd) cache_.Keep(wanted_[mine], fd->get());
    lock.lock();
    come_[mine].emplace(std::move(fd));
    changed_.notify_all();
  }
}

Result<UniqueFd> BlobFetch::Open(const std::string& sha256) {
  if (const auto number = numbers_.find(sha256); number != numbers_.end()) {
    const size_t mine = number->second;
    numbers_.erase(number);  // the next file with these bytes takes them from the cache
    MutexLock lock(mutex_);
    asked_ = std::max(asked_, mine);
    changed_.notify_all();
    changed_.wait(lock, [&]() REQUIRES(mutex_) { return come_[mine].has_value(); });
    auto fd = std::move(*come_[mine]);
    come_[mine].reset();
    return fd;
  }
  if (auto fd = cache_.Take(sha256)) return fd;
  ATHANOR_TRY(auto fd, files_.Get(Shelf::kBlobs, sha256));
  cache_.Keep(sha256, fd.get());
  return fd;
}

}  // namespace athanor
