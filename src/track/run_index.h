// Finds runs by name and by the last digits of their ids. Runs are linked through their own
// members, so that a run costs two pointers here; it grows bucket by bucket, so that adding one run
// is never slow.
//
// Threads: its owner guards it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "track/run_entry.h"

namespace athanor {

// A hash table that splits one bucket each time a run is added (linear hashing, Litwin 1980).
class RunChains {
 public:
  using Link = RunEntry* RunEntry::*;
  using HashOf = uint64_t (*)(const RunEntry& run);

  RunChains(Link link, HashOf hash_of) : link_(link), hash_of_(hash_of) { Clear(); }
  void Add(RunEntry& run);
  void Remove(RunEntry& run);  // before what it is hashed by changes
  void Clear();
  void Reserve(size_t runs);  // when it is empty and so many come
  // The bucket of that hash, which may have runs of other hashes, too.
  RunEntry* First(uint64_t hash) const { return buckets_[BucketOf(hash)]; }

 private:
  size_t BucketOf(uint64_t hash) const;
  void Split();

  const Link link_;
  const HashOf hash_of_;
  std::vector<RunEntry*> buckets_;
  size_t level_ = 1;  // a power of two: buckets of this round that are there from the start
  size_t runs_ = 0;
};

class RunIndex {
 public:
  static constexpr size_t kShortestPart = 4;  // digits of an id

  RunIndex();
  void Add(RunEntry& run);
  void Remove(RunEntry& run);
  void Rename(RunEntry& run, std::string name);
  void Clear();
  void Reserve(size_t runs);  // when it is empty and so many come

  // The one of that name that began last, without deleted ones; null: there is none.
  const RunEntry* Named(std::string_view name) const;
  // Those whose id, in either of its forms and not deleted, ends with these digits (in lower
  // case): at most `most` of them. None for fewer digits than kShortestPart.
  std::vector<const RunEntry*> EndingWith(std::string_view digits, size_t most) const;

 private:
  RunChains named_;
  RunChains tails_;
};

}  // namespace athanor
