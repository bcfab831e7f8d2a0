// BlobStore is the directory object store's lower half: immutable blobs named by their sha256, at
// <dir>/ab/<sha256>. Several processes may use one directory: a blob appears complete, by rename,
// after fsync, and is synced with its folder when a Put or Commit returns. A name is never used as
// a path unchecked: it must be 64 hex digits.
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

#include "base/exec/clock.h"
#include "base/io/fd.h"
#include "base/result.h"

namespace athanor {

struct BlobRef {
  std::string sha256;
  uint64_t bytes = 0;
  bool operator==(const BlobRef&) const = default;
};

class BlobStore {
 public:
  // Creates the folder if needed, and removes what writers left in it that died more than a day
  // ago.
  static Result<BlobStore> Open(std::string dir);

  bool Has(std::string_view sha256) const;
  // Has(), for a caller that is going to name it: from now on RemoveUnused keeps it for a while.
  // Put and Commit of an existing blob do the same.
  bool Use(std::string_view sha256) const;
  // kInvalid: not a name. kNotFound. The bytes are not checked: Verify does that.
  Result<UniqueFd> Read(std::string_view sha256) const;
  Result<UniqueFd> Read(const BlobRef& ref) const;  // also kCorrupt if its size is another
  Status Verify(std::string_view sha256) const;     // kCorrupt if the bytes do not match the name
  Result<BlobRef> Put(std::string_view bytes) const;
  Result<BlobRef> PutFd(int fd) const;  // from the current offset to the end

  // For data that is produced as a stream (an archive, an upload).
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
  // Of a file that was begun by someone else: an upload that came in pieces. `path` is on the same
  // file system, such as in unfinished_dir(). Commit hashes it; whatever comes of it, nothing has
  // that path afterwards.
  Result<Writer> Continue(std::string path) const;
  // Files in it that nobody has written to for a day are removed when the store is opened.
  std::string unfinished_dir() const { return dir_ + "/tmp"; }

  Status Remove(std::string_view sha256) const;  // succeeds if there is nothing to remove
  // Removes it if it was neither written nor used since; returns whether it was removed. With
  // `dry_run`, whether it would be. `since` must be an hour ago or more, because the times of uses
  // are coarse.
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
  std::shared_ptr<Shards> shards_;  // copies share the knowledge of which folders are on disk
};

}  // namespace athanor
