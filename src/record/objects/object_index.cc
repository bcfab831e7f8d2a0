#include "record/objects/object_index.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/exec/mutex.h"
#include "base/ids.h"
#include "base/io/files.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "record/append_file.h"
#include "record/objects/directory_object_store.h"

namespace athanor {
namespace {

constexpr size_t kLargestBatch = 256;

// A migration that has been released is never edited: add the next one.
//
// `shared` holds only contents that more than one object names; `segments` only those made
// of several files: most objects have neither, and their file is named as their content.
constexpr Migration kMigrations[] = {
    {1, R"sql(
CREATE TABLE buckets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  created INTEGER NOT NULL
) STRICT;

CREATE TABLE objects (
  bucket INTEGER NOT NULL,
  key TEXT NOT NULL,
  content TEXT NOT NULL,
  size INTEGER NOT NULL,
  etag TEXT NOT NULL,
  modified INTEGER NOT NULL,
  parts INTEGER NOT NULL,
  meta TEXT NOT NULL,
  PRIMARY KEY (bucket, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE shared (
  content TEXT PRIMARY KEY,
  names INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE segments (
  content TEXT NOT NULL,
  at INTEGER NOT NULL,
  number INTEGER NOT NULL,
  size INTEGER NOT NULL,
  file TEXT NOT NULL,
  PRIMARY KEY (content, at, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE uploads (
  id TEXT PRIMARY KEY,
  bucket INTEGER NOT NULL,
  key TEXT NOT NULL,
  started INTEGER NOT NULL,
  checksum TEXT NOT NULL,
  full_object INTEGER NOT NULL,
  meta TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX uploads_key ON uploads (bucket, key, id);

CREATE TABLE parts (
  upload TEXT NOT NULL,
  number INTEGER NOT NULL,
  file TEXT NOT NULL,
  size INTEGER NOT NULL,
  etag TEXT NOT NULL,
  modified INTEGER NOT NULL,
  checksum TEXT NOT NULL,
  PRIMARY KEY (upload, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE trash (
  file TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
)sql"},
    {2, R"sql(
CREATE TABLE unsure (
  file TEXT NOT NULL,
  bucket INTEGER NOT NULL,
  key TEXT NOT NULL,
  PRIMARY KEY (file, bucket, key)
) STRICT, WITHOUT ROWID;
)sql"},
};

Json ToJson(const std::map<std::string, std::string>& map) {
  Json out = Json::object();
  for (const auto& [key, value] : map) out[key] = value;
  return out;
}

std::map<std::string, std::string> MapIn(const Json& json, const char* key) {
  std::map<std::string, std::string> out;
  if (!json.contains(key) || !json[key].is_object()) return out;
  for (const auto& [name, value] : json[key].items()) {
    if (value.is_string()) out[name] = value.get<std::string>();
  }
  return out;
}

}  // namespace

std::span<const Migration> ObjectMigrations() { return kMigrations; }

std::string ObjectFilePath(std::string_view dir, std::string_view file) {
  return std::string(dir) + "/data/" + std::string(file.substr(file.size() - 2)) + "/" +
         std::string(file);
}

tl::unexpected<Error> ObjectFail(ErrorCode code, const char* id, std::string what,
                                 std::string hint) {
  return Fail(Error{code, std::move(what), std::move(hint)}.Id(id));
}

std::string MetaText(const StoredMeta& stored) {
  Json json = Json::object();
  if (!stored.meta.headers.empty()) json["headers"] = ToJson(stored.meta.headers);
  if (!stored.meta.user.empty()) json["user"] = ToJson(stored.meta.user);
  if (!stored.meta.tags.empty()) json["tags"] = ToJson(stored.meta.tags);
  if (stored.checksum) {
    json["checksum"] = {{"kind", std::string(NameOf(stored.checksum->kind))},
                        {"value", stored.checksum->value},
                        {"full", stored.checksum->full_object}};
  }
  if (!stored.upload.empty()) json["upload"] = stored.upload;
  return json.empty() ? std::string() : DumpJson(json);
}

StoredMeta MetaFrom(std::string_view text) {
  StoredMeta stored;
  if (text.empty()) return stored;
  const auto json = ParseJson(text);
  if (!json || !json->is_object()) return stored;
  stored.meta = {MapIn(*json, "headers"), MapIn(*json, "user"), MapIn(*json, "tags")};
  if (json->contains("checksum")) {
    const auto& sum = (*json)["checksum"];
    if (const auto kind = ChecksumNamed(sum.value("kind", ""))) {
      stored.checksum = ObjectChecksum{*kind, sum.value("value", ""), sum.value("full", true)};
    }
  }
  stored.upload = json->value("upload", "");
  return stored;
}

ObjectInfo ObjectRow::Info(std::string_view key) const {
  ObjectInfo info;
  info.key = key;
  info.size = size;
  info.etag = etag;
  info.modified = modified;
  info.meta = stored.meta;
  info.checksum = stored.checksum;
  info.parts = parts;
  return info;
}

ObjectIndex::ObjectIndex(std::string dir, const Clock& clock, Pool* hashers,
                         std::unique_ptr<Database> database)
    : dir_(std::move(dir)),
      clock_(clock),
      hashers_(hashers),
      database_(std::move(database)),
      leader_([this] { LeadWhileAsked(); }) {}

ObjectIndex::~ObjectIndex() {
  {
    MutexLock lock(turns_mutex_);
    ending_ = true;
  }
  asked_.notify_one();
  leader_.join();
}

Result<std::unique_ptr<ObjectIndex>> ObjectIndex::Open(std::string dir, const Clock& clock,
                                                       Pool* hashers) {
  ATHANOR_CHECK_OK(MakeDirs(dir + "/tmp"));
  ATHANOR_CHECK_OK(MakeDirs(dir + "/data"));
  ATHANOR_TRY(auto database, Database::Open(dir + "/index.db", ObjectMigrations()));
  std::unique_ptr<ObjectIndex> index(
      new ObjectIndex(std::move(dir), clock, hashers, std::move(database)));
  ATHANOR_CHECK_OK(index->ClearStage());
  ATHANOR_CHECK_OK(index->LookAtUnsure());
  ATHANOR_CHECK_OK(index->EmptyTrash());
  return index;
}

// A power cut may have undone the move of a file whose row is stored; the others were never
// complete.
Status ObjectIndex::ClearStage() {
  ATHANOR_TRY(const auto staged, ListDir(dir_ + "/tmp"));
  if (staged.empty()) return Ok();
  std::set<std::string, std::less<>> left(staged.begin(), staged.end());
  ATHANOR_CHECK_OK(database_->Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* named, connection.Prepare("SELECT content FROM objects UNION ALL "
                                                "SELECT file FROM segments UNION ALL "
                                                "SELECT file FROM parts"));
    while (true) {
      ATHANOR_TRY(const bool row, named->Step());
      if (!row) return Ok();
      const auto found = left.find(named->Text(0));
      if (found == left.end()) continue;
      const std::string target = ObjectFilePath(dir_, *found);
      ATHANOR_CHECK_OK(MakeDirs(DirName(target)));
      if (::rename((dir_ + "/tmp/" + *found).c_str(), target.c_str()) != 0) {
        return FailErrno("move an object into place", errno);
      }
      ATHANOR_CHECK_OK(SyncFolder(DirName(target)));
      left.erase(found);
    }
  }));
  for (const auto& name : left) ATHANOR_CHECK_OK(RemoveTree(dir_ + "/tmp/" + name));
  return Ok();
}

Status ObjectIndex::LookAtUnsure() {
  struct Named {
    int64_t bucket;
    std::string key;
    std::string content;
  };
  std::vector<Named> torn;
  bool any = false;
  ATHANOR_CHECK_OK(database_->Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* rows,
                connection.Prepare("SELECT u.bucket, u.key, u.file, o.etag FROM unsure u LEFT JOIN "
                                   "objects o ON o.bucket = u.bucket AND o.key = u.key "
                                   "AND o.content = u.file"));
    while (true) {
      ATHANOR_TRY(const bool row, rows->Step());
      if (!row) return Ok();
      any = true;
      if (rows->IsNull(3)) continue;  // replaced or deleted since
      const auto bytes = ReadFile(ObjectFilePath(dir_, rows->Text(2)));
      if (bytes && Hex(Md5(*bytes)) == rows->Text(3)) continue;
      torn.push_back({rows->Int(0), std::string(rows->Text(1)), std::string(rows->Text(2))});
    }
  }));
  if (!any) return Ok();
  return Write([&](Connection& connection) -> Status {
    for (const auto& named : torn) {
      ATHANOR_CHECK_OK(DropRow(connection, named.bucket, named.key, named.content));
    }
    return connection.Execute("DELETE FROM unsure");
  });
}

Status ObjectIndex::NoteUnsure(Connection& connection, const std::string& file, int64_t bucket,
                               std::string_view key) {
  ATHANOR_TRY(auto* note, connection.Prepare("INSERT OR IGNORE INTO unsure (file, bucket, key) "
                                             "VALUES (?1, ?2, ?3)"));
  note->Bind(1, file);
  note->Bind(2, bucket);
  note->Bind(3, key);
  ATHANOR_CHECK_OK(note->Step());
  MutexLock lock(pins_mutex_);
  unsure_.insert(file);
  return Ok();
}

void ObjectIndex::Sure(const std::string& file) {
  MutexLock lock(pins_mutex_);
  unsure_.erase(file);
  sure_.push_back(file);
}

bool ObjectIndex::IsUnsure(const std::string& file) const {
  MutexLock lock(pins_mutex_);
  return unsure_.contains(file);
}

Status ObjectIndex::EmptyTrash() {
  bool any = false;
  ATHANOR_CHECK_OK(database_->Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* rows, connection.Prepare("SELECT file FROM trash"));
    while (true) {
      ATHANOR_TRY(const bool row, rows->Step());
      if (!row) return Ok();
      ::unlink(ObjectFilePath(dir_, rows->Text(0)).c_str());
      any = true;
    }
  }));
  if (!any) return Ok();
  return database_->Write(
      [](Connection& connection) { return connection.Execute("DELETE FROM trash"); });
}

std::string ObjectIndex::NewId() const { return NewUlid(clock_.Wall().ms).ToString(); }

Status ObjectIndex::Read(const std::function<Status(Connection&)>& body) const {
  return database_->Read(body);
}

Status ObjectIndex::Write(const std::function<Status(Connection&)>& body) {
  Turn turn{body, {}, false};
  {
    MutexLock lock(turns_mutex_);
    turns_.push_back(&turn);
  }
  return Await(turn);
}

std::unique_ptr<ObjectIndex::Writing> ObjectIndex::BeginWrite(
    std::function<Status(Connection&)> body) {
  auto writing = std::make_unique<Writing>(*this, std::move(body));
  {
    MutexLock lock(turns_mutex_);
    turns_.push_back(&writing->turn_);
    ++begun_;
  }
  asked_.notify_one();
  return writing;
}

// A thread that comes while there is no leader leads until its own turn is done.
Status ObjectIndex::Await(Turn& turn) {
  MutexLock lock(turns_mutex_);
  turns_done_.wait(lock, [&]() REQUIRES(turns_mutex_) { return turn.done || !leading_; });
  if (!turn.done) Lead(lock, [&] { return turn.done; });
  return turn.result;
}

void ObjectIndex::LeadWhileAsked() {
  MutexLock lock(turns_mutex_);
  while (true) {
    asked_.wait(lock, [&]() REQUIRES(turns_mutex_) { return begun_ > 0 || ending_; });
    if (ending_) return;
    begun_ = 0;
    // The current leader takes these turns, too, or leaves them to those who wait.
    if (!leading_ && !turns_.empty())
      Lead(lock, [&]() REQUIRES(turns_mutex_) { return turns_.empty(); });
  }
}

// The caller's lock is let go of and taken again, which the analysis does not follow.
void ObjectIndex::Lead(MutexLock& lock, const std::function<bool()>& enough) UNCHECKED_LOCKS {
  leading_ = true;
  while (!enough()) {
    std::vector<Turn*> batch;
    while (!turns_.empty() && batch.size() < kLargestBatch) {
      batch.push_back(turns_.front());
      turns_.pop_front();
    }
    lock.unlock();
    const Status written = RunBatch(batch);
    lock.lock();
    for (Turn* done : batch) {
      done->result = written;
      done->done = true;
    }
    turns_done_.notify_all();
  }
  leading_ = false;
  turns_done_.notify_all();
  if (turns_.empty()) return;
  begun_ = 1;  // their callers may be busy elsewhere
  asked_.notify_one();
}

Status ObjectIndex::RunBatch(const std::vector<Turn*>& batch) {
  std::vector<std::string> unlinked;
  std::vector<std::string> sure;
  {
    MutexLock lock(pins_mutex_);
    unlinked.swap(unlinked_);
    sure.swap(sure_);
  }
  doomed_.clear();
  Status written = database_->Write([&](Connection& connection) -> Status {
    for (Turn* turn : batch) ATHANOR_CHECK_OK(turn->body(connection));
    for (const auto& file : unlinked) {
      ATHANOR_TRY(auto* gone, connection.Prepare("DELETE FROM trash WHERE file = ?1"));
      gone->Bind(1, file);
      ATHANOR_CHECK_OK(gone->Step());
    }
    for (const auto& file : sure) {
      ATHANOR_TRY(auto* gone, connection.Prepare("DELETE FROM unsure WHERE file = ?1"));
      gone->Bind(1, file);
      ATHANOR_CHECK_OK(gone->Step());
    }
    return Ok();
  });
  if (written.ok()) Collect(std::exchange(doomed_, {}));
  return written;
}

void ObjectIndex::Unlink(const std::string& file) {
  ::unlink(ObjectFilePath(dir_, file).c_str());
  unlinked_.push_back(file);
}

void ObjectIndex::Collect(std::vector<Doomed> doomed) {
  MutexLock lock(pins_mutex_);
  for (auto& [content, file] : doomed) {
    if (pins_.contains(content)) {
      parked_[content].push_back(file);
    } else {
      Unlink(file);
    }
  }
}

void ObjectIndex::Pin(const std::string& content) {
  MutexLock lock(pins_mutex_);
  ++pins_[content];
}

void ObjectIndex::Unpin(const std::string& content) {
  MutexLock lock(pins_mutex_);
  const auto pin = pins_.find(content);
  if (pin == pins_.end() || --pin->second > 0) return;
  pins_.erase(pin);
  const auto parked = parked_.find(content);
  if (parked == parked_.end()) return;
  for (const auto& file : parked->second) Unlink(file);
  parked_.erase(parked);
}

Result<std::optional<int64_t>> ObjectIndex::BucketId(Connection& connection,
                                                     std::string_view name) {
  ATHANOR_TRY(auto* statement, connection.Prepare("SELECT id FROM buckets WHERE name = ?1"));
  statement->Bind(1, name);
  ATHANOR_TRY(const bool row, statement->Step());
  if (!row) return std::optional<int64_t>();
  const int64_t id = statement->Int(0);
  statement->Reset();
  return std::optional<int64_t>(id);
}

Result<std::optional<ObjectRow>> ObjectIndex::FindRow(Connection& connection, int64_t bucket,
                                                      std::string_view key) {
  ATHANOR_TRY(auto* statement,
              connection.Prepare("SELECT content, size, etag, modified, parts, meta FROM objects "
                                 "WHERE bucket = ?1 AND key = ?2"));
  statement->Bind(1, bucket);
  statement->Bind(2, key);
  ATHANOR_TRY(const bool found, statement->Step());
  if (!found) return std::optional<ObjectRow>();
  ObjectRow row;
  row.content = statement->Text(0);
  row.size = static_cast<uint64_t>(statement->Int(1));
  row.etag = statement->Text(2);
  row.modified = WallTime{statement->Int(3)};
  row.parts = static_cast<uint32_t>(statement->Int(4));
  row.stored = MetaFrom(statement->Text(5));
  statement->Reset();
  return std::optional<ObjectRow>(std::move(row));
}

Status ObjectIndex::PutRow(Connection& connection, int64_t bucket, std::string_view key,
                           const ObjectRow& row) {
  ATHANOR_TRY(auto* old, connection.Prepare("SELECT content FROM objects "
                                            "WHERE bucket = ?1 AND key = ?2"));
  old->Bind(1, bucket);
  old->Bind(2, key);
  ATHANOR_TRY(const bool replaces, old->Step());
  const std::string replaced = replaces ? std::string(old->Text(0)) : std::string();
  old->Reset();
  ATHANOR_TRY(auto* put,
              connection.Prepare("INSERT OR REPLACE INTO objects (bucket, key, content, size, "
                                 "etag, modified, parts, meta) "
                                 "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"));
  put->Bind(1, bucket);
  put->Bind(2, key);
  put->Bind(3, row.content);
  put->Bind(4, static_cast<int64_t>(row.size));
  put->Bind(5, row.etag);
  put->Bind(6, row.modified.ms);
  put->Bind(7, static_cast<int64_t>(row.parts));
  put->Bind(8, MetaText(row.stored));
  ATHANOR_CHECK_OK(put->Step());
  return replaces ? Release(connection, replaced) : Ok();
}

Status ObjectIndex::DropRow(Connection& connection, int64_t bucket, std::string_view key,
                            std::string_view content) {
  ATHANOR_TRY(auto* gone, connection.Prepare("DELETE FROM objects WHERE bucket = ?1 AND key = ?2"));
  gone->Bind(1, bucket);
  gone->Bind(2, key);
  ATHANOR_CHECK_OK(gone->Step());
  return Release(connection, content);
}

Status ObjectIndex::AddReference(Connection& connection, std::string_view content) {
  ATHANOR_TRY(auto* add, connection.Prepare("INSERT INTO shared (content, names) VALUES (?1, 2) "
                                            "ON CONFLICT (content) DO UPDATE "
                                            "SET names = names + 1"));
  add->Bind(1, content);
  ATHANOR_CHECK_OK(add->Step());
  return Ok();
}

Status ObjectIndex::Release(Connection& connection, std::string_view content) {
  ATHANOR_TRY(auto* names, connection.Prepare("SELECT names FROM shared WHERE content = ?1"));
  names->Bind(1, content);
  ATHANOR_TRY(const bool shared, names->Step());
  if (shared) {
    const bool still = names->Int(0) > 2;
    names->Reset();
    ATHANOR_TRY(auto* less,
                connection.Prepare(still ? "UPDATE shared SET names = names - 1 WHERE content = ?1"
                                         : "DELETE FROM shared WHERE content = ?1"));
    less->Bind(1, content);
    ATHANOR_CHECK_OK(less->Step());
    return Ok();
  }
  std::vector<std::string> files;
  ATHANOR_TRY(auto* rows, connection.Prepare("SELECT file FROM segments WHERE content = ?1"));
  rows->Bind(1, content);
  while (true) {
    ATHANOR_TRY(const bool row, rows->Step());
    if (!row) break;
    files.emplace_back(rows->Text(0));
  }
  if (files.empty()) return Trash(connection, content, content);
  for (const auto& file : files) ATHANOR_CHECK_OK(Trash(connection, content, file));
  ATHANOR_TRY(auto* gone, connection.Prepare("DELETE FROM segments WHERE content = ?1"));
  gone->Bind(1, content);
  ATHANOR_CHECK_OK(gone->Step());
  return Ok();
}

Status ObjectIndex::Trash(Connection& connection, std::string_view content, std::string_view file) {
  ATHANOR_TRY(auto* trash, connection.Prepare("INSERT OR IGNORE INTO trash (file) VALUES (?1)"));
  trash->Bind(1, file);
  ATHANOR_CHECK_OK(trash->Step());
  doomed_.push_back({std::string(content), std::string(file)});
  return Ok();
}

}  // namespace athanor
