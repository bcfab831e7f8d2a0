// What the parts of the embedded object store share: the index file, writes that are
// committed together, and files that wait for their last reader. Private to this folder.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/exec/clock.h"
#include "base/exec/mutex.h"
#include "base/exec/pool.h"
#include "base/io/fd.h"
#include "record/db/database.h"
#include "record/objects/object_store.h"

namespace athanor {

tl::unexpected<Error> ObjectFail(ErrorCode code, const char* id, std::string what,
                                 std::string hint = {});

// What `objects.meta` holds: JSON.
struct StoredMeta {
  ObjectMeta meta;
  std::optional<ObjectChecksum> checksum;
  std::string upload;  // that made it
};
std::string MetaText(const StoredMeta& stored);
StoredMeta MetaFrom(std::string_view text);

struct ObjectRow {
  std::string content;
  uint64_t size = 0;
  std::string etag;
  WallTime modified;
  uint32_t parts = 0;
  StoredMeta stored;

  ObjectInfo Info(std::string_view key) const;
};

// `etag`: of the existing object; null: none.
Status CheckCondition(const WriteCondition& condition, const std::string* etag,
                      std::string_view key);

class ObjectIndex {
 public:
  // Opens or creates the folder, empties tmp and trash.
  static Result<std::unique_ptr<ObjectIndex>> Open(std::string dir, const Clock& clock,
                                                   Pool* hashers);
  const std::string& notice() const { return database_->notice(); }

  // One transaction, shared with what other threads write at the same time. `body` returns only
  // errors of the database, which fail all of them. It stores its decision in its captures, and
  // changes nothing before it has decided.
  Status Write(const std::function<Status(Connection&)>& body);
  // The same, started on another thread while the caller does something else.
  class Writing;
  std::unique_ptr<Writing> BeginWrite(std::function<Status(Connection&)> body);
  Status Read(const std::function<Status(Connection&)>& body) const;

  // In a transaction. No bucket or row: no value.
  static Result<std::optional<int64_t>> BucketId(Connection& connection, std::string_view name);
  static Result<std::optional<ObjectRow>> FindRow(Connection& connection, int64_t bucket,
                                                  std::string_view key);
  // Writes the row and releases what it replaces.
  Status PutRow(Connection& connection, int64_t bucket, std::string_view key, const ObjectRow& row);
  // Removes the row, and releases what it names.
  Status DropRow(Connection& connection, int64_t bucket, std::string_view key,
                 std::string_view content);
  static Status AddReference(Connection& connection, std::string_view content);
  // One reference less to `content`; after the last one its files become trash.
  Status Release(Connection& connection, std::string_view content);
  Status Trash(Connection& connection, std::string_view content, std::string_view file);

  // A file that a row names before its bytes are synced. This is recorded in the row's transaction,
  // and removed with a later one when they are synced. After a crash between the two, Open checks
  // the bytes, and removes the rows of those that are not complete.
  Status NoteUnsure(Connection& connection, const std::string& file, int64_t bucket,
                    std::string_view key);
  void Sure(const std::string& file);
  bool IsUnsure(const std::string& file) const;

  // While pinned, the files of `content` stay even if nothing names them any more.
  void Pin(const std::string& content);
  void Unpin(const std::string& content);

  std::string NewId() const;
  WallTime Now() const { return clock_.Wall(); }
  const std::string& dir() const { return dir_; }
  Pool* hashers() const { return hashers_; }
  ~ObjectIndex();

 private:
  struct Turn {
    const std::function<Status(Connection&)>& body;
    Status result;
    bool done = false;
  };
  struct Doomed {
    std::string content;
    std::string file;
  };
  ObjectIndex(std::string dir, const Clock& clock, Pool* hashers,
              std::unique_ptr<Database> database);
  Status ClearStage();
  Status EmptyTrash();
  Status LookAtUnsure();
  Status Await(Turn& turn);
  void LeadWhileAsked();
  // Runs batches until `enough`, which is called under the lock.
  void Lead(MutexLock& lock, const std::function<bool()>& enough) REQUIRES(turns_mutex_);
  Status RunBatch(const std::vector<Turn*>& batch);
  void Collect(std::vector<Doomed> doomed);
  void Unlink(const std::string& file) REQUIRES(pins_mutex_);

  const std::string dir_;
  const Clock& clock_;
  Pool* const hashers_;
  const std::unique_ptr<Database> database_;

  Mutex turns_mutex_;
  CondVar turns_done_;
  std::deque<Turn*> turns_ GUARDED_BY(turns_mutex_);
  bool leading_ GUARDED_BY(turns_mutex_) = false;
  CondVar asked_;
  size_t begun_ GUARDED_BY(turns_mutex_) = 0;  // turns without a waiter yet
  bool ending_ GUARDED_BY(turns_mutex_) = false;
  std::vector<Doomed> doomed_;  // of the batch; only its leader uses it

  mutable Mutex pins_mutex_;
  std::map<std::string, int> pins_ GUARDED_BY(pins_mutex_);
  std::map<std::string, std::vector<std::string>> parked_ GUARDED_BY(pins_mutex_);
  std::vector<std::string> unlinked_ GUARDED_BY(pins_mutex_);  // leave `trash` with the next batch
  std::set<std::string> unsure_ GUARDED_BY(pins_mutex_);
  std::vector<std::string> sure_ GUARDED_BY(pins_mutex_);  // leave `unsure` with the next batch
  std::thread leader_;                                     // of the writes that were begun
};

// Waits for its end when it is destroyed.
class ObjectIndex::Writing {
 public:
  Writing(ObjectIndex& index, std::function<Status(Connection&)> body)
      : index_(index), body_(std::move(body)), turn_{body_, {}, false} {}
  ~Writing() { (void)Wait().ok(); }
  Status Wait() { return index_.Await(turn_); }

 private:
  friend class ObjectIndex;
  ObjectIndex& index_;
  const std::function<Status(Connection&)> body_;
  Turn turn_;
};

// A writer into <dir>/tmp.
class StagedFile final : public ObjectWriter {
 public:
  static Result<std::unique_ptr<StagedFile>> Make(ObjectIndex& index, const DigestPlan& plan);
  ~StagedFile() override;
  Status Write(std::string_view bytes) override;
  uint64_t size() const override;
  Result<Digests> Finish() override;

  // Moves it into data/ and syncs it; the index may name it when both are done.
  Status Move();
  Status Sync();
  void Keep() { kept_ = true; }  // the index names it now
  const std::string& id() const { return id_; }

 private:
  struct Hashing;
  StagedFile(std::string dir, std::string id, std::shared_ptr<Hashing> hashing, Pool* hashers);

  const std::string dir_;
  const std::string id_;
  const std::shared_ptr<Hashing> hashing_;  // shared with a hashing task that may outlive this
  Pool* const hashers_;
  bool placed_ = false;
  bool kept_ = false;
};

std::unique_ptr<MultipartUploads> MakeDirectoryUploads(ObjectIndex& index);

}  // namespace athanor
