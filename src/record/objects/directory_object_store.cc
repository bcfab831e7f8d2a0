#include "record/objects/directory_object_store.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "record/append_file.h"
#include "record/objects/object_index.h"

namespace athanor {
namespace {

constexpr size_t kLongestKey = 1024;
constexpr uint64_t kSyncedBeside = 1 << 20;  // Open reads as much of what a crash left unsure
constexpr int kMostTries = 100;              // to catch an object that is being replaced

tl::unexpected<Error> NoBucket(std::string_view name) {
  return ObjectFail(ErrorCode::kNotFound, kNoSuchBucket,
                    "there is no bucket " + Printable(name.substr(0, 80)),
                    "aws s3 mb s3://" + Printable(name.substr(0, 80)));
}

tl::unexpected<Error> NoKey(std::string_view key) {
  return ObjectFail(ErrorCode::kNotFound, kNoSuchKey,
                    "there is no object " + Printable(key.substr(0, 200)));
}

// The smallest text that is greater than every text with this prefix.
std::string Successor(std::string_view prefix) {
  std::string next(prefix);
  while (!next.empty() && next.back() == '\xff') next.pop_back();
  if (next.empty()) return "\xff";  // no UTF-8 text begins with it
  next.back() = static_cast<char>(static_cast<unsigned char>(next.back()) + 1);
  return next;
}

struct Segment {
  uint64_t at;
  uint64_t size;
  std::string file;
};

Result<std::vector<Segment>> SegmentsOf(Connection& connection, std::string_view content) {
  ATHANOR_TRY(auto* rows, connection.Prepare("SELECT at, size, file FROM segments "
                                             "WHERE content = ?1 ORDER BY at, number"));
  rows->Bind(1, content);
  std::vector<Segment> segments;
  while (true) {
    ATHANOR_TRY(const bool row, rows->Step());
    if (!row) return segments;
    segments.push_back({static_cast<uint64_t>(rows->Int(0)), static_cast<uint64_t>(rows->Int(1)),
                        std::string(rows->Text(2))});
  }
}

class DirectoryReader final : public ObjectReader {
 public:
  // Either `fd` is the whole object, or its content is pinned and in `segments`.
  DirectoryReader(std::shared_ptr<ObjectIndex> index, ObjectInfo info, std::string content,
                  UniqueFd fd, std::vector<Segment> segments)
      : index_(std::move(index)),
        info_(std::move(info)),
        content_(std::move(content)),
        fd_(std::move(fd)),
        segments_(std::move(segments)) {}
  ~DirectoryReader() override {
    if (!fd_) index_->Unpin(content_);
  }

  const ObjectInfo& info() const override { return info_; }

  Result<std::pair<uint64_t, uint64_t>> Part(uint32_t number) const override {
    if (fd_ && number == 1) return std::pair<uint64_t, uint64_t>(0, info_.size);
    if (number >= 1 && number <= segments_.size()) {
      return std::pair(segments_[number - 1].at, segments_[number - 1].size);
    }
    return ObjectFail(ErrorCode::kInvalid, kInvalidPart,
                      fmt::format("the object has no part {}", number));
  }

  Status Seek(uint64_t offset, uint64_t length) override {
    at_ = offset;
    end_ = offset + length;
    next_ = 0;
    return Ok();
  }

  Result<std::optional<FileRange>> Next() override {
    if (at_ >= end_) return std::optional<FileRange>();
    FileRange range;
    if (fd_) {
      range.fd.reset(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
      if (!range.fd) return FailErrno("duplicate a descriptor", errno);
      range.offset = std::exchange(at_, end_);
      range.length = end_ - range.offset;
      return std::optional<FileRange>(std::move(range));
    }
    while (next_ < segments_.size()) {
      const Segment& segment = segments_[next_++];
      if (segment.at + segment.size <= at_) continue;
      if (segment.at > at_) break;
      const std::string path = ObjectFilePath(index_->dir(), segment.file);
      range.fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (!range.fd) return FailErrno("open " + path, errno, ErrorCode::kCorrupt);
      range.offset = at_ - segment.at;
      range.length = std::min(segment.at + segment.size, end_) - at_;
      at_ += range.length;
      return std::optional<FileRange>(std::move(range));
    }
    return Fail(ErrorCode::kCorrupt, "bytes of an object are missing", "ath server stop\nath fsck");
  }

 private:
  const std::shared_ptr<ObjectIndex> index_;  // an answer on its way may outlive the store
  const ObjectInfo info_;
  const std::string content_;
  const UniqueFd fd_;
  const std::vector<Segment> segments_;
  uint64_t at_ = 0;
  uint64_t end_ = 0;
  size_t next_ = 0;
};

// Goes through the keys of one bucket in order and rolls up common prefixes.
class Lister {
 public:
  Lister(Connection& connection, int64_t bucket, const ListQuery& query)
      : connection_(connection), bucket_(bucket), query_(query) {}

  Result<ListPage> Run() {
    if (query_.most == 0) return std::move(page_);
    ATHANOR_CHECK_OK(Start());
    while (true) {
      ATHANOR_TRY(const bool row, rows_->Step());
      if (!row) break;
      const std::string_view key = rows_->Text(0);
      const auto common = CommonPrefix(key);
      if (Full()) break;
      if (common) {
        ATHANOR_CHECK_OK(TakePrefix(std::string(*common)));
      } else {
        TakeObject(key);
      }
    }
    rows_->Reset();
    return std::move(page_);
  }

 private:
  // Up to and including the first delimiter after the prefix.
  std::optional<std::string_view> CommonPrefix(std::string_view key) const {
    if (query_.delimiter.empty()) return std::nullopt;
    const size_t found = key.find(query_.delimiter, query_.prefix.size());
    if (found == std::string_view::npos) return std::nullopt;
    return key.substr(0, found + query_.delimiter.size());
  }

  bool Full() {
    page_.truncated = page_.objects.size() + page_.prefixes.size() >= query_.most;
    return page_.truncated;
  }

  Status Start() {
    const std::string& after = query_.after;
    if (after.empty() || after < query_.prefix) return SeekTo(query_.prefix);
    // After a rolled-up prefix comes the first key without it.
    if (CommonPrefix(after) == std::optional<std::string_view>(after) &&
        StartsWith(after, query_.prefix)) {
      return SeekTo(Successor(after));
    }
    return SeekTo(after + '\0');
  }

  Status SeekTo(const std::string& from) {
    ATHANOR_TRY(rows_, connection_.Prepare("SELECT key, size, etag, modified FROM objects WHERE "
                                           "bucket = ?1 AND key >= ?2 AND key < ?3 ORDER BY key"));
    rows_->Bind(1, bucket_);
    rows_->Bind(2, from);
    rows_->Bind(3, Successor(query_.prefix));
    return Ok();
  }

  Status TakePrefix(std::string common) {
    const std::string next = Successor(common);
    page_.last = common;
    page_.prefixes.push_back(std::move(common));
    return SeekTo(next);
  }

  void TakeObject(std::string_view key) {
    ObjectInfo info;
    info.key = key;
    info.size = static_cast<uint64_t>(rows_->Int(1));
    info.etag = rows_->Text(2);
    info.modified = WallTime{rows_->Int(3)};
    page_.last = info.key;
    page_.objects.push_back(std::move(info));
  }

  Connection& connection_;
  const int64_t bucket_;
  const ListQuery& query_;
  Statement* rows_ = nullptr;
  ListPage page_;
};

class DirectoryObjectStore final : public ObjectStore {
 public:
  explicit DirectoryObjectStore(std::unique_ptr<ObjectIndex> index)
      : index_(std::move(index)), uploads_(MakeDirectoryUploads(*index_)) {}

  Status CreateBucket(std::string_view name) override;
  Status DeleteBucket(std::string_view name) override;
  Result<std::vector<BucketInfo>> Buckets() override;
  Result<BucketInfo> Bucket(std::string_view name) override;
  Result<std::unique_ptr<ObjectWriter>> NewObject(const DigestPlan& plan) override;
  Result<ObjectInfo> Put(std::string_view bucket, std::string_view key,
                         std::unique_ptr<ObjectWriter> bytes, const Digests& digests,
                         ObjectMeta meta, std::optional<ChecksumKind> checksum,
                         const WriteCondition& condition) override;
  Result<std::unique_ptr<ObjectReader>> Open(std::string_view bucket,
                                             std::string_view key) override;
  Result<ObjectInfo> Copy(std::string_view from_bucket, std::string_view from_key,
                          std::string_view if_etag, std::string_view bucket, std::string_view key,
                          std::optional<ObjectMeta> meta, const WriteCondition& condition) override;
  Status SetTags(std::string_view bucket, std::string_view key,
                 std::map<std::string, std::string> tags) override;
  Status Delete(std::string_view bucket, const std::vector<std::string>& keys,
                const WriteCondition& condition) override;
  Result<ListPage> List(std::string_view bucket, const ListQuery& query) override;
  MultipartUploads& uploads() override { return *uploads_; }

 private:
  // Runs `body` in a transaction with the bucket's number; what it returns is the outcome,
  // except for errors of the database, which it returns as such.
  using InBucket = std::function<Status(Connection&, int64_t bucket, Status& outcome)>;
  Status Change(std::string_view bucket, const InBucket& body);
  Result<ObjectRow> FindObject(std::string_view bucket, std::string_view key) const;
  Result<bool> PutBeside(std::string_view bucket, std::string_view key, StagedFile& staged,
                         ObjectRow& row, const WriteCondition& condition);
  Status TakeBack(std::string_view bucket, std::string_view key, const std::string& content);

  const std::shared_ptr<ObjectIndex> index_;  // shared with readers
  const std::unique_ptr<MultipartUploads> uploads_;
};

Status DirectoryObjectStore::Change(std::string_view bucket, const InBucket& body) {
  Status outcome;
  ATHANOR_CHECK_OK(index_->Write([&](Connection& connection) -> Status {
    outcome = Ok();
    ATHANOR_TRY(const auto id, ObjectIndex::BucketId(connection, bucket));
    if (!id) {
      outcome = NoBucket(bucket);
      return Ok();
    }
    return body(connection, *id, outcome);
  }));
  return outcome;
}

Status DirectoryObjectStore::CreateBucket(std::string_view name) {
  ATHANOR_CHECK_OK(CheckBucketName(name));
  Status outcome;
  ATHANOR_CHECK_OK(index_->Write([&](Connection& connection) -> Status {
    outcome = Ok();
    ATHANOR_TRY(const auto taken, ObjectIndex::BucketId(connection, name));
    if (taken) {
      outcome = ObjectFail(ErrorCode::kConflict, kBucketTaken,
                           "the bucket " + std::string(name) + " is there already");
      return Ok();
    }
    ATHANOR_TRY(auto* add,
                connection.Prepare("INSERT INTO buckets (name, created) VALUES (?1, ?2)"));
    add->Bind(1, name);
    add->Bind(2, index_->Now().ms);
    ATHANOR_CHECK_OK(add->Step());
    return Ok();
  }));
  return outcome;
}

Status DirectoryObjectStore::DeleteBucket(std::string_view name) {
  return Change(name, [&](Connection& connection, int64_t bucket, Status& outcome) -> Status {
    ATHANOR_TRY(auto* any, connection.Prepare("SELECT 1 FROM objects WHERE bucket = ?1 LIMIT 1"));
    any->Bind(1, bucket);
    ATHANOR_TRY(const bool used, any->Step());
    any->Reset();
    if (used) {
      outcome = ObjectFail(ErrorCode::kConflict, kBucketNotEmpty,
                           "the bucket " + std::string(name) + " is not empty",
                           "aws s3 rb --force s3://" + std::string(name));
      return Ok();
    }
    ATHANOR_TRY(auto* parts, connection.Prepare("SELECT file FROM parts WHERE upload IN "
                                                "(SELECT id FROM uploads WHERE bucket = ?1)"));
    parts->Bind(1, bucket);
    std::vector<std::string> files;
    while (true) {
      ATHANOR_TRY(const bool row, parts->Step());
      if (!row) break;
      files.emplace_back(parts->Text(0));
    }
    for (const auto& file : files) ATHANOR_CHECK_OK(index_->Trash(connection, file, file));
    for (const char* sql :
         {"DELETE FROM parts WHERE upload IN (SELECT id FROM uploads WHERE bucket = ?1)",
          "DELETE FROM uploads WHERE bucket = ?1", "DELETE FROM buckets WHERE id = ?1"}) {
      ATHANOR_TRY(auto* gone, connection.Prepare(sql));
      gone->Bind(1, bucket);
      ATHANOR_CHECK_OK(gone->Step());
    }
    return Ok();
  });
}

Result<std::vector<BucketInfo>> DirectoryObjectStore::Buckets() {
  std::vector<BucketInfo> buckets;
  ATHANOR_CHECK_OK(index_->Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* rows, connection.Prepare("SELECT name, created FROM buckets ORDER BY name"));
    while (true) {
      ATHANOR_TRY(const bool row, rows->Step());
      if (!row) return Ok();
      buckets.push_back({std::string(rows->Text(0)), WallTime{rows->Int(1)}});
    }
  }));
  return buckets;
}

Result<BucketInfo> DirectoryObjectStore::Bucket(std::string_view name) {
  std::optional<BucketInfo> found;
  ATHANOR_CHECK_OK(index_->Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* row, connection.Prepare("SELECT created FROM buckets WHERE name = ?1"));
    row->Bind(1, name);
    ATHANOR_TRY(const bool there, row->Step());
    if (there) found = BucketInfo{std::string(name), WallTime{row->Int(0)}};
    row->Reset();
    return Ok();
  }));
  if (!found) return NoBucket(name);
  return *found;
}

Result<std::unique_ptr<ObjectWriter>> DirectoryObjectStore::NewObject(const DigestPlan& plan) {
  ATHANOR_TRY(auto staged, StagedFile::Make(*index_, plan));
  return std::unique_ptr<ObjectWriter>(std::move(staged));
}

Result<ObjectInfo> DirectoryObjectStore::Put(std::string_view bucket, std::string_view key,
                                             std::unique_ptr<ObjectWriter> bytes,
                                             const Digests& digests, ObjectMeta meta,
                                             std::optional<ChecksumKind> checksum,
                                             const WriteCondition& condition) {
  ATHANOR_CHECK_OK(CheckObjectKey(key));
  auto& staged = static_cast<StagedFile&>(*bytes);
  const auto there = FindObject(bucket, key);
  if (!there && there.error().id != kNoSuchKey) return tl::unexpected(there.error());
  ATHANOR_CHECK_OK(staged.Move());
  ObjectRow row;
  row.content = staged.id();
  row.size = staged.size();
  row.etag = Hex(digests.md5);
  row.stored.meta = std::move(meta);
  if (checksum) row.stored.checksum = ObjectChecksum{*checksum, Base64(digests.checksum), true};
  // A small object under a new key: its bytes and its row are written to the disk at the same time.
  // One that replaces another must be complete first, because the old one could not be brought
  // back.
  bool beside = !there && row.size <= kSyncedBeside;
  if (beside) {
    ATHANOR_TRY(beside, PutBeside(bucket, key, staged, row, condition));
  } else {
    ATHANOR_CHECK_OK(staged.Sync());
  }
  if (!beside) {
    ATHANOR_CHECK_OK(
        Change(bucket, [&](Connection& connection, int64_t id, Status& outcome) -> Status {
          ATHANOR_TRY(const auto old, ObjectIndex::FindRow(connection, id, key));
          outcome = CheckCondition(condition, old ? &old->etag : nullptr, key);
          if (!outcome.ok()) return Ok();
          row.modified = index_->Now();
          return index_->PutRow(connection, id, key, row);
        }));
  }
  staged.Keep();
  return row.Info(key);
}

// False: another took the key meanwhile, and nothing was put; the bytes are synced.
Result<bool> DirectoryObjectStore::PutBeside(std::string_view bucket, std::string_view key,
                                             StagedFile& staged, ObjectRow& row,
                                             const WriteCondition& condition) {
  Status outcome;
  bool taken = false;
  auto writing = index_->BeginWrite([&](Connection& connection) -> Status {
    outcome = Ok();
    ATHANOR_TRY(const auto id, ObjectIndex::BucketId(connection, bucket));
    if (!id) {
      outcome = NoBucket(bucket);
      return Ok();
    }
    ATHANOR_TRY(const auto old, ObjectIndex::FindRow(connection, *id, key));
    taken = old.has_value();
    if (taken) return Ok();
    outcome = CheckCondition(condition, nullptr, key);
    if (!outcome.ok()) return Ok();
    row.modified = index_->Now();
    ATHANOR_CHECK_OK(index_->NoteUnsure(connection, staged.id(), *id, key));
    return index_->PutRow(connection, *id, key, row);
  });
  const Status synced = staged.Sync();
  Status written = writing->Wait();
  if (written.ok()) written = outcome;
  const bool put = written.ok() && !taken;
  // If even this fails, the next Open removes it.
  if (put && !synced.ok()) ATHANOR_CHECK_OK(TakeBack(bucket, key, staged.id()));
  index_->Sure(staged.id());
  ATHANOR_CHECK_OK(written);
  ATHANOR_CHECK_OK(synced);
  return put;
}

Status DirectoryObjectStore::TakeBack(std::string_view bucket, std::string_view key,
                                      const std::string& content) {
  return Change(bucket, [&](Connection& connection, int64_t id, Status&) -> Status {
    ATHANOR_TRY(const auto row, ObjectIndex::FindRow(connection, id, key));
    if (!row || row->content != content) return Ok();
    return index_->DropRow(connection, id, key, content);
  });
}

Result<ObjectRow> DirectoryObjectStore::FindObject(std::string_view bucket,
                                                   std::string_view key) const {
  std::optional<ObjectRow> row;
  bool known = false;
  ATHANOR_CHECK_OK(index_->Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(const auto id, ObjectIndex::BucketId(connection, bucket));
    known = id.has_value();
    if (known) {
      ATHANOR_TRY(row, ObjectIndex::FindRow(connection, *id, key));
    }
    return Ok();
  }));
  if (!known) return NoBucket(bucket);
  if (!row) return NoKey(key);
  return std::move(*row);
}

Result<std::unique_ptr<ObjectReader>> DirectoryObjectStore::Open(std::string_view bucket,
                                                                 std::string_view key) {
  ATHANOR_CHECK_OK(CheckObjectKey(key));
  for (int tries = 0; tries < kMostTries; ++tries) {
    ATHANOR_TRY(auto row, FindObject(bucket, key));
    UniqueFd fd;
    std::vector<Segment> segments;
    if (row.parts > 1) {
      // The name of the bytes may have been removed between the lookup and the pin: look up again
      // under the pin.
      index_->Pin(row.content);
      const Status looked = index_->Read([&](Connection& connection) -> Status {
        ATHANOR_TRY(segments, SegmentsOf(connection, row.content));
        return Ok();
      });
      if (!looked.ok() || segments.size() != row.parts) {
        index_->Unpin(row.content);
        if (!looked.ok()) return tl::unexpected(looked.error());
        continue;
      }
    } else {
      const std::string path = ObjectFilePath(index_->dir(), row.content);
      fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (!fd && errno == ENOENT) continue;  // replaced meanwhile
      if (!fd) return FailErrno("open " + path, errno);
    }
    auto info = row.Info(key);
    return std::unique_ptr<ObjectReader>(std::make_unique<DirectoryReader>(
        index_, std::move(info), std::move(row.content), std::move(fd), std::move(segments)));
  }
  return Fail(ErrorCode::kCorrupt, "the bytes of an object are missing",
              "ath server stop\nath fsck");
}

Result<ObjectInfo> DirectoryObjectStore::Copy(std::string_view from_bucket,
                                              std::string_view from_key, std::string_view if_etag,
                                              std::string_view bucket, std::string_view key,
                                              std::optional<ObjectMeta> meta,
                                              const WriteCondition& condition) {
  ATHANOR_CHECK_OK(CheckObjectKey(key));
  ObjectRow made;
  ATHANOR_CHECK_OK(
      Change(bucket, [&](Connection& connection, int64_t id, Status& outcome) -> Status {
        ATHANOR_TRY(const auto from, ObjectIndex::BucketId(connection, from_bucket));
        std::optional<ObjectRow> source;
        if (from) {
          ATHANOR_TRY(source, ObjectIndex::FindRow(connection, *from, from_key));
        }
        if (!from || !source) {
          outcome = from ? Status(NoKey(from_key)) : Status(NoBucket(from_bucket));
          return Ok();
        }
        if (!if_etag.empty() && source->etag != if_etag) {
          outcome = ObjectFail(ErrorCode::kConflict, kPreconditionFailed,
                               "the object to copy was replaced meanwhile", "try again");
          return Ok();
        }
        ATHANOR_TRY(const auto old, ObjectIndex::FindRow(connection, id, key));
        outcome = CheckCondition(condition, old ? &old->etag : nullptr, key);
        if (!outcome.ok()) return Ok();
        made = std::move(*source);
        made.modified = index_->Now();
        made.stored.upload.clear();
        if (meta) made.stored.meta = *meta;
        ATHANOR_CHECK_OK(ObjectIndex::AddReference(connection, made.content));
        if (index_->IsUnsure(made.content)) {
          ATHANOR_CHECK_OK(index_->NoteUnsure(connection, made.content, id, key));
        }
        return index_->PutRow(connection, id, key, made);
      }));
  // Its writer has not been answered yet; the copier will be.
  if (index_->IsUnsure(made.content)) {
    ATHANOR_CHECK_OK(SyncFileData(ObjectFilePath(index_->dir(), made.content)));
  }
  return made.Info(key);
}

Status DirectoryObjectStore::SetTags(std::string_view bucket, std::string_view key,
                                     std::map<std::string, std::string> tags) {
  return Change(bucket, [&](Connection& connection, int64_t id, Status& outcome) -> Status {
    ATHANOR_TRY(auto row, ObjectIndex::FindRow(connection, id, key));
    if (!row) {
      outcome = NoKey(key);
      return Ok();
    }
    row->stored.meta.tags = tags;
    ATHANOR_TRY(auto* set, connection.Prepare("UPDATE objects SET meta = ?3 "
                                              "WHERE bucket = ?1 AND key = ?2"));
    set->Bind(1, id);
    set->Bind(2, key);
    set->Bind(3, MetaText(row->stored));
    ATHANOR_CHECK_OK(set->Step());
    return Ok();
  });
}

Status DirectoryObjectStore::Delete(std::string_view bucket, const std::vector<std::string>& keys,
                                    const WriteCondition& condition) {
  return Change(bucket, [&](Connection& connection, int64_t id, Status& outcome) -> Status {
    for (const auto& key : keys) {
      ATHANOR_TRY(const auto row, ObjectIndex::FindRow(connection, id, key));
      if (condition.if_match) {
        outcome = CheckCondition(condition, row ? &row->etag : nullptr, key);
        if (!outcome.ok()) return Ok();
      }
      if (!row) continue;
      ATHANOR_CHECK_OK(index_->DropRow(connection, id, key, row->content));
    }
    return Ok();
  });
}

Result<ListPage> DirectoryObjectStore::List(std::string_view bucket, const ListQuery& query) {
  std::optional<ListPage> page;
  ATHANOR_CHECK_OK(index_->Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(const auto id, ObjectIndex::BucketId(connection, bucket));
    if (!id) return Ok();
    ATHANOR_TRY(page, Lister(connection, *id, query).Run());
    return Ok();
  }));
  if (!page) return NoBucket(bucket);
  return std::move(*page);
}

}  // namespace

Status CheckCondition(const WriteCondition& condition, const std::string* etag,
                      std::string_view key) {
  const auto refused = [&](std::string what) -> Status {
    return ObjectFail(ErrorCode::kConflict, kPreconditionFailed, std::move(what));
  };
  if (condition.if_none_match && etag &&
      (*condition.if_none_match == "*" || *condition.if_none_match == *etag)) {
    return refused("the object is there already: " + Printable(key.substr(0, 200)));
  }
  if (!condition.if_match) return Ok();
  if (!etag) return NoKey(key);
  if (*condition.if_match == "*" || *condition.if_match == *etag) return Ok();
  return refused("the object has another ETag: " + *etag);
}

Status CheckBucketName(std::string_view name) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  bool good = name.size() >= 3 && name.size() <= 63 && plain(name.front()) && plain(name.back());
  for (size_t i = 0; good && i < name.size(); ++i) {
    good = plain(name[i]) || name[i] == '-' || (name[i] == '.' && name[i - 1] != '.');
  }
  if (good) return Ok();
  return ObjectFail(ErrorCode::kInvalid, kInvalidBucketName,
                    "'" + Printable(name.substr(0, 80)) + "' cannot name a bucket",
                    "use 3 to 63 small letters, digits, dots and hyphens");
}

Status CheckObjectKey(std::string_view key) {
  if (key.empty()) return ObjectFail(ErrorCode::kInvalid, kInvalidKey, "a key cannot be empty");
  if (key.size() > kLongestKey) {
    return ObjectFail(ErrorCode::kInvalid, kKeyTooLong,
                      fmt::format("the key has {} bytes, more than {}", key.size(), kLongestKey));
  }
  if (IsUtf8(key)) return Ok();
  return ObjectFail(ErrorCode::kInvalid, kInvalidKey, "the key is not UTF-8 text");
}

Result<std::unique_ptr<ObjectStore>> OpenObjectDirectory(std::string dir, const Clock& clock,
                                                         Pool* hashers, std::string* notice) {
  ATHANOR_TRY(auto index, ObjectIndex::Open(std::move(dir), clock, hashers));
  if (notice != nullptr) *notice = index->notice();
  return std::unique_ptr<ObjectStore>(std::make_unique<DirectoryObjectStore>(std::move(index)));
}

}  // namespace athanor
