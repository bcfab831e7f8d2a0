// BlobStore is the directory object store's lower half: immutable blobs named by
// their sha256, at <dir>/ab/<sha256>. Several processes may use one directory: a
// blob appears whole, by rename, after fsync, and has been synced with its folder
// when a Put or Commit returns. Never key = path: names are checked to be 64 hex digits.
//
// Threads: safe from any; a Writer belongs to one thread at a time. Copies share
// one directory. No space is kExhausted, and leaves nothing behind.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace athanor {

struct BlobRef {
  std::string sha256;
  uint64_t bytes = 0;
  bool operator==(const BlobRef&) const = default;
};

class BlobStore {
 public:
  // Creates the folder if need be, and removes what writers left in it that died
  // more than a day ago.
  static Result<BlobStore> Open(std::string dir);

  bool Has(std::string_view sha256) const;
  // Has(), by someone who is going to name it: from now on RemoveUnused leaves it for a while.
  // Put and Commit of what is there already do the same.
  bool Use(std::string_view sha256) const;
  // kInvalid: not a name. kNotFound. The bytes are not checked: Verify does that.
  Result<UniqueFd> Read(std::string_view sha256) const;
  Result<UniqueFd> Read(const BlobRef& ref) const;  // also kCorrupt if its size is another
  Status Verify(std::string_view sha256) const;     // kCorrupt if the bytes are not as named
  Result<BlobRef> Put(std::string_view bytes) const;
  Result<BlobRef> PutFd(int fd) const;  // from the current offset to the end

  // For what is produced as a stream (an archive, an upload).
  class Writer {
   public:
    Writer(Writer&&) noexcept;
    ~Writer();  // an unfinished blob leaves nothing behind
    Status Write(std::string_view bytes);
    int fd() const;  // write here directly instead; Commit then hashes the file
    // Once. `expected` empty, or the sha256 that the bytes must have (kCorrupt otherwise).
    Result<BlobRef> Commit(std::string_view expected = {});

   private:
    friend class BlobStore;
    struct State;
    explicit Writer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  Result<Writer> NewBlob() const;

  Status Remove(std::string_view sha256) const;  // succeeds when there is nothing to remove
  // Removes it if it was neither written nor used since; whether it was. With `dry_run`,
  // whether it would be. `since` must lie an hour back or more: uses are noted coarsely.
  Result<bool> RemoveUnused(std::string_view sha256, WallTime since, bool dry_run = false) const;
  Status ForEach(const std::function<void(const BlobRef&)>& visit) const;  // by name
  const std::string& dir() const { return dir_; }

 private:
  struct Shards;
  BlobStore(std::string dir, std::shared_ptr<Shards> shards)
      : dir_(std::move(dir)), shards_(std::move(shards)) {}
  std::string PathOf(std::string_view sha256) const;
  Result<BlobRef> Settle(Writer::State& state, const std::string& sha256, uint64_t bytes) const;
  Status SyncShard(std::string_view sha256) const;
  Result<UniqueFd> LockUses(int kind) const;

  std::string dir_;
  std::shared_ptr<Shards> shards_;  // copies learn together which folders are on disk
};

}  // namespace athanor
