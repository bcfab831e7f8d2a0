#include "track/run_index.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "base/text/text.h"

namespace athanor {
namespace {

// So that buckets, which are chosen by the low bits, are alike in length: multiplied by 2^64 over
// the golden ratio (Knuth), which mixes the high bits best, and those moved to the low ones.
uint64_t Mixed(uint64_t value) {
  value *= 0x9E37'79B9'7F4A'7C15ull;
  return value ^ value >> 32;
}

uint64_t HashOfName(std::string_view name) { return Mixed(std::hash<std::string_view>()(name)); }

// The last kShortestPart digits of an id are its last 20 bits.
uint64_t HashOfTail(const Ulid& id) {
  return Mixed((id.bytes[13] & 0x0Fu) << 16 | id.bytes[14] << 8 | id.bytes[15]);
}

}  // namespace

// A bucket that was not split yet in this round still has what belongs to its second half.
size_t RunChains::BucketOf(uint64_t hash) const {
  const size_t at = hash & (2 * level_ - 1);
  return at < buckets_.size() ? at : hash & (level_ - 1);
}

void RunChains::Clear() {
  buckets_.assign(1, nullptr);
  level_ = 1;
  runs_ = 0;
}

void RunChains::Reserve(size_t runs) {
  if (runs_ > 0 || runs < buckets_.size()) return;
  buckets_.assign(runs, nullptr);
  level_ = std::bit_floor(runs);
}

// The next bucket of the round, in two; when all were split, a round of twice as many begins.
void RunChains::Split() {
  if (buckets_.size() == 2 * level_) level_ *= 2;
  const size_t from = buckets_.size() - level_;
  buckets_.push_back(nullptr);
  RunEntry* run = std::exchange(buckets_[from], nullptr);
  while (run != nullptr) {
    RunEntry* const next = run->*link_;
    auto& bucket = buckets_[BucketOf(hash_of_(*run))];
    run->*link_ = bucket;
    bucket = run;
    run = next;
  }
}

void RunChains::Add(RunEntry& run) {
  if (++runs_ > buckets_.size()) Split();
  auto& bucket = buckets_[BucketOf(hash_of_(run))];
  run.*link_ = bucket;
  bucket = &run;
}

void RunChains::Remove(RunEntry& run) {
  for (RunEntry** at = &buckets_[BucketOf(hash_of_(run))]; *at != nullptr; at = &((*at)->*link_)) {
    if (*at != &run) continue;
    *at = run.*link_;
    run.*link_ = nullptr;
    --runs_;
    return;
  }
}

RunIndex::RunIndex()
    : named_(&RunEntry::next_named, [](const RunEntry& run) { return HashOfName(run.name); }),
      tails_(&RunEntry::next_tail, [](const RunEntry& run) { return HashOfTail(run.id.value); }) {}

void RunIndex::Reserve(size_t runs) {
  named_.Reserve(runs);
  tails_.Reserve(runs);
}

void RunIndex::Add(RunEntry& run) {
  named_.Add(run);
  tails_.Add(run);
}

void RunIndex::Remove(RunEntry& run) {
  named_.Remove(run);
  tails_.Remove(run);
}

void RunIndex::Rename(RunEntry& run, std::string name) {
  named_.Remove(run);
  run.name = std::move(name);
  named_.Add(run);
}

void RunIndex::Clear() {
  named_.Clear();
  tails_.Clear();
}

const RunEntry* RunIndex::Named(std::string_view name) const {
  const RunEntry* found = nullptr;
  for (const RunEntry* run = named_.First(HashOfName(name)); run != nullptr;
       run = run->next_named) {
    if (run->deleted || run->name != name) continue;
    if (found == nullptr || run->started_ms > found->started_ms ||
        (run->started_ms == found->started_ms && run->id < found->id)) {
      found = run;
    }
  }
  return found;
}

std::vector<const RunEntry*> RunIndex::EndingWith(std::string_view digits, size_t most) const {
  std::vector<const RunEntry*> found;
  constexpr size_t kDigits = 26;
  if (digits.size() < kShortestPart || digits.size() > kDigits) return found;
  const auto id = Ulid::Parse(std::string(kDigits - digits.size(), '0') + std::string(digits));
  if (!id) return found;
  for (const RunEntry* run = tails_.First(HashOfTail(*id)); run != nullptr && found.size() < most;
       run = run->next_tail) {
    if (!run->deleted && EndsWith(run->id.ToString(), digits)) found.push_back(run);
  }
  return found;
}

}  // namespace athanor
