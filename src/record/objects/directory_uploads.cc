// Multipart uploads of the embedded store. Parts are ordinary files; completing an upload makes
// them segments of one content, in one transaction.
#include <algorithm>
#include <utility>

#include "base/text/format.h"
#include "base/text/text.h"
#include "record/objects/directory_object_store.h"
#include "record/objects/object_index.h"

namespace athanor {
namespace {

struct UploadRow {
  int64_t bucket = 0;
  UploadInfo info;
  StoredMeta stored;
};

struct PartRow {
  PartInfo info;
  std::string file;
};

tl::unexpected<Error> NoUpload(std::string_view upload) {
  return ObjectFail(ErrorCode::kNotFound, kNoSuchUpload,
                    "there is no such upload: " + Printable(upload.substr(0, 80)),
                    "it was completed or aborted; begin a new one");
}

// None if the bucket, the key and the upload do not belong together.
Result<std::optional<UploadRow>> FindUpload(Connection& connection, std::string_view bucket,
                                            std::string_view key, std::string_view upload) {
  ATHANOR_TRY(auto* row,
              connection.Prepare("SELECT u.bucket, u.started, u.checksum, u.full_object, u.meta "
                                 "FROM uploads u JOIN buckets b ON b.id = u.bucket "
                                 "WHERE u.id = ?1 AND u.key = ?2 AND b.name = ?3"));
  row->Bind(1, upload);
  row->Bind(2, key);
  row->Bind(3, bucket);
  ATHANOR_TRY(const bool there, row->Step());
  if (!there) return std::optional<UploadRow>();
  UploadRow found;
  found.bucket = row->Int(0);
  found.info = {std::string(upload), std::string(key), WallTime{row->Int(1)},
                ChecksumNamed(row->Text(2)), row->Int(3) != 0};
  found.stored = MetaFrom(row->Text(4));
  row->Reset();
  return std::optional<UploadRow>(std::move(found));
}

Result<std::vector<PartRow>> PartsOf(Connection& connection, std::string_view upload,
                                     uint32_t after, size_t most) {
  ATHANOR_TRY(auto* rows, connection.Prepare("SELECT number, file, size, etag, modified, checksum "
                                             "FROM parts WHERE upload = ?1 AND number > ?2 "
                                             "ORDER BY number LIMIT ?3"));
  rows->Bind(1, upload);
  rows->Bind(2, static_cast<int64_t>(after));
  rows->Bind(3, static_cast<int64_t>(most));
  std::vector<PartRow> parts;
  while (true) {
    ATHANOR_TRY(const bool row, rows->Step());
    if (!row) return parts;
    parts.push_back(
        {{static_cast<uint32_t>(rows->Int(0)), static_cast<uint64_t>(rows->Int(2)),
          std::string(rows->Text(3)), WallTime{rows->Int(4)}, std::string(rows->Text(5))},
         std::string(rows->Text(1))});
  }
}

Status RemoveUpload(Connection& connection, std::string_view upload) {
  for (const char* sql :
       {"DELETE FROM parts WHERE upload = ?1", "DELETE FROM uploads WHERE id = ?1"}) {
    ATHANOR_TRY(auto* gone, connection.Prepare(sql));
    gone->Bind(1, upload);
    ATHANOR_CHECK_OK(gone->Step());
  }
  return Ok();
}

std::string FromHex(std::string_view hex) {
  std::string out;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1]));
  }
  return out;
}

// Of the whole from those of its parts: a digest of digests, or the CRC of all bytes.
std::optional<ObjectChecksum> WholeChecksum(const UploadInfo& upload,
                                            const std::vector<PartRow>& parts) {
  if (!upload.checksum) return std::nullopt;
  std::string joined;
  std::string whole;
  for (const auto& part : parts) {
    const auto raw = FromBase64(part.info.checksum);
    if (!raw || raw->empty()) return std::nullopt;
    joined += *raw;
    whole = whole.empty() ? *raw : CombineCrc(*upload.checksum, whole, *raw, part.info.size);
  }
  ObjectChecksum made;
  made.kind = *upload.checksum;
  made.full_object = upload.full_object && !whole.empty();
  made.value = made.full_object
                   ? Base64(whole)
                   : Base64(Checksum(made.kind, joined)) + "-" + std::to_string(parts.size());
  return made;
}

// The named parts in order, or why they cannot be one object.
Status Choose(const std::vector<PartRow>& stored, const std::vector<NamedPart>& named,
              std::vector<PartRow>& chosen) {
  if (named.empty()) {
    return ObjectFail(ErrorCode::kInvalid, kInvalidPart, "an object needs at least one part");
  }
  uint32_t previous = 0;
  for (const auto& part : named) {
    if (part.number <= previous) {
      return ObjectFail(ErrorCode::kInvalid, kInvalidPartOrder,
                        "the parts are not in ascending order");
    }
    previous = part.number;
    const auto found = std::lower_bound(
        stored.begin(), stored.end(), part.number,
        [](const PartRow& row, uint32_t number) { return row.info.number < number; });
    if (found == stored.end() || found->info.number != part.number ||
        found->info.etag != part.etag) {
      return ObjectFail(ErrorCode::kInvalid, kInvalidPart,
                        fmt::format("part {} was not sent, or has another ETag", part.number));
    }
    if (!part.checksum.empty() && !found->info.checksum.empty() &&
        part.checksum != found->info.checksum) {
      return ObjectFail(ErrorCode::kInvalid, kInvalidPart,
                        fmt::format("part {} has another checksum", part.number));
    }
    chosen.push_back(*found);
  }
  for (size_t i = 0; i + 1 < chosen.size(); ++i) {
    if (chosen[i].info.size < kSmallestPart) {
      return ObjectFail(ErrorCode::kInvalid, kPartTooSmall,
                        fmt::format("part {} has {} bytes; all but the last need {}",
                                    chosen[i].info.number, chosen[i].info.size, kSmallestPart));
    }
  }
  return Ok();
}

Status CheckWhole(const WholeObject& whole, const ObjectRow& made) {
  if (whole.size && *whole.size != made.size) {
    return ObjectFail(ErrorCode::kInvalid, kBadDigest,
                      fmt::format("the parts have {} bytes, not {}", made.size, *whole.size));
  }
  if (whole.checksum && made.stored.checksum != whole.checksum) {
    return ObjectFail(ErrorCode::kInvalid, kBadDigest,
                      fmt::format("the {} you specified did not match the calculated checksum",
                                  NameOf(whole.checksum->kind)));
  }
  return Ok();
}

class DirectoryUploads final : public MultipartUploads {
 public:
  explicit DirectoryUploads(ObjectIndex& index) : index_(index) {}

  Result<UploadInfo> Begin(std::string_view bucket, std::string_view key, ObjectMeta meta,
                           std::optional<ChecksumKind> checksum, bool full_object) override;
  Result<UploadInfo> Find(std::string_view bucket, std::string_view key,
                          std::string_view upload) override;
  Result<PartInfo> Put(std::string_view bucket, std::string_view key, std::string_view upload,
                       uint32_t number, std::unique_ptr<ObjectWriter> bytes,
                       const Digests& digests) override;
  Result<std::vector<PartInfo>> Parts(std::string_view bucket, std::string_view key,
                                      std::string_view upload, uint32_t after,
                                      size_t most) override;
  Result<std::vector<UploadInfo>> List(std::string_view bucket, std::string_view prefix,
                                       std::string_view after_key, std::string_view after_id,
                                       size_t most) override;
  Result<ObjectInfo> Complete(std::string_view bucket, std::string_view key,
                              std::string_view upload, const std::vector<NamedPart>& parts,
                              const WriteCondition& condition, const WholeObject& whole) override;
  Status Abort(std::string_view bucket, std::string_view key, std::string_view upload) override;

 private:
  Status Segment(Connection& connection, const std::string& content,
                 const std::vector<PartRow>& parts);
  Status DropUnused(Connection& connection, const std::vector<PartRow>& stored,
                    const std::vector<PartRow>& chosen);

  ObjectIndex& index_;
};

Result<UploadInfo> DirectoryUploads::Begin(std::string_view bucket, std::string_view key,
                                           ObjectMeta meta, std::optional<ChecksumKind> checksum,
                                           bool full_object) {
  ATHANOR_CHECK_OK(CheckObjectKey(key));
  UploadInfo info{index_.NewId(), std::string(key), index_.Now(), checksum, full_object};
  const std::string text = MetaText({std::move(meta), std::nullopt, {}});
  bool known = false;
  ATHANOR_CHECK_OK(index_.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(const auto id, ObjectIndex::BucketId(connection, bucket));
    known = id.has_value();
    if (!known) return Ok();
    ATHANOR_TRY(auto* add, connection.Prepare("INSERT INTO uploads (id, bucket, key, started, "
                                              "checksum, full_object, meta) "
                                              "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"));
    add->Bind(1, info.id);
    add->Bind(2, *id);
    add->Bind(3, key);
    add->Bind(4, info.started.ms);
    add->Bind(5, checksum ? NameOf(*checksum) : std::string_view());
    add->Bind(6, int64_t{full_object});
    add->Bind(7, text);
    ATHANOR_CHECK_OK(add->Step());
    return Ok();
  }));
  if (known) return info;
  return ObjectFail(ErrorCode::kNotFound, kNoSuchBucket,
                    "there is no bucket " + Printable(bucket.substr(0, 80)));
}

Result<UploadInfo> DirectoryUploads::Find(std::string_view bucket, std::string_view key,
                                          std::string_view upload) {
  std::optional<UploadRow> found;
  ATHANOR_CHECK_OK(index_.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(found, FindUpload(connection, bucket, key, upload));
    return Ok();
  }));
  if (!found) return NoUpload(upload);
  return found->info;
}

Result<PartInfo> DirectoryUploads::Put(std::string_view bucket, std::string_view key,
                                       std::string_view upload, uint32_t number,
                                       std::unique_ptr<ObjectWriter> bytes,
                                       const Digests& digests) {
  if (number < 1 || number > kMostParts) {
    return ObjectFail(ErrorCode::kInvalid, kInvalidKey,
                      fmt::format("part numbers go from 1 to {}, not {}", kMostParts, number));
  }
  ATHANOR_CHECK_OK(Find(bucket, key, upload));
  auto& staged = static_cast<StagedFile&>(*bytes);
  ATHANOR_CHECK_OK(staged.Move());
  ATHANOR_CHECK_OK(staged.Sync());
  PartInfo info{number, staged.size(), Hex(digests.md5), index_.Now(), Base64(digests.checksum)};
  bool known = false;
  ATHANOR_CHECK_OK(index_.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(const auto found, FindUpload(connection, bucket, key, upload));
    known = found.has_value();
    if (!known) return Ok();  // completed or aborted meanwhile
    ATHANOR_TRY(auto* old, connection.Prepare("SELECT file FROM parts "
                                              "WHERE upload = ?1 AND number = ?2"));
    old->Bind(1, upload);
    old->Bind(2, static_cast<int64_t>(number));
    ATHANOR_TRY(const bool replaces, old->Step());
    const std::string file = replaces ? std::string(old->Text(0)) : std::string();
    old->Reset();
    if (replaces) ATHANOR_CHECK_OK(index_.Trash(connection, file, file));
    ATHANOR_TRY(auto* put, connection.Prepare("INSERT OR REPLACE INTO parts (upload, number, file, "
                                              "size, etag, modified, checksum) "
                                              "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"));
    put->Bind(1, upload);
    put->Bind(2, static_cast<int64_t>(number));
    put->Bind(3, staged.id());
    put->Bind(4, static_cast<int64_t>(info.size));
    put->Bind(5, info.etag);
    put->Bind(6, info.modified.ms);
    put->Bind(7, info.checksum);
    ATHANOR_CHECK_OK(put->Step());
    return Ok();
  }));
  if (!known) return NoUpload(upload);
  staged.Keep();
  return info;
}

Result<std::vector<PartInfo>> DirectoryUploads::Parts(std::string_view bucket, std::string_view key,
                                                      std::string_view upload, uint32_t after,
                                                      size_t most) {
  std::vector<PartRow> rows;
  bool known = false;
  ATHANOR_CHECK_OK(index_.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(const auto found, FindUpload(connection, bucket, key, upload));
    known = found.has_value();
    if (known) {
      ATHANOR_TRY(rows, PartsOf(connection, upload, after, most));
    }
    return Ok();
  }));
  if (!known) return NoUpload(upload);
  std::vector<PartInfo> parts;
  for (auto& row : rows) parts.push_back(std::move(row.info));
  return parts;
}

Result<std::vector<UploadInfo>> DirectoryUploads::List(std::string_view bucket,
                                                       std::string_view prefix,
                                                       std::string_view after_key,
                                                       std::string_view after_id, size_t most) {
  std::vector<UploadInfo> uploads;
  bool known = false;
  ATHANOR_CHECK_OK(index_.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(const auto id, ObjectIndex::BucketId(connection, bucket));
    known = id.has_value();
    if (!known) return Ok();
    ATHANOR_TRY(auto* rows,
                connection.Prepare("SELECT id, key, started, checksum, full_object FROM uploads "
                                   "WHERE bucket = ?1 AND (key, id) > (?2, ?3) "
                                   "AND substr(key, 1, length(?4)) = ?4 "
                                   "ORDER BY key, id LIMIT ?5"));
    rows->Bind(1, *id);
    rows->Bind(2, after_key);
    // Without an id: what follows the key altogether.
    rows->Bind(3, after_id.empty() && !after_key.empty() ? std::string_view("~") : after_id);
    rows->Bind(4, prefix);
    rows->Bind(5, static_cast<int64_t>(most));
    while (true) {
      ATHANOR_TRY(const bool row, rows->Step());
      if (!row) return Ok();
      uploads.push_back({std::string(rows->Text(0)), std::string(rows->Text(1)),
                         WallTime{rows->Int(2)}, ChecksumNamed(rows->Text(3)), rows->Int(4) != 0});
    }
  }));
  if (known) return uploads;
  return ObjectFail(ErrorCode::kNotFound, kNoSuchBucket,
                    "there is no bucket " + Printable(bucket.substr(0, 80)));
}

Status DirectoryUploads::Segment(Connection& connection, const std::string& content,
                                 const std::vector<PartRow>& parts) {
  uint64_t at = 0;
  int64_t number = 0;
  for (const auto& part : parts) {
    ATHANOR_TRY(auto* add,
                connection.Prepare("INSERT INTO segments (content, at, number, size, file) "
                                   "VALUES (?1, ?2, ?3, ?4, ?5)"));
    add->Bind(1, content);
    add->Bind(2, static_cast<int64_t>(at));
    add->Bind(3, ++number);
    add->Bind(4, static_cast<int64_t>(part.info.size));
    add->Bind(5, part.file);
    ATHANOR_CHECK_OK(add->Step());
    at += part.info.size;
  }
  return Ok();
}

Status DirectoryUploads::DropUnused(Connection& connection, const std::vector<PartRow>& stored,
                                    const std::vector<PartRow>& chosen) {
  auto used = chosen.begin();
  for (const auto& part : stored) {
    if (used != chosen.end() && used->info.number == part.info.number) {
      ++used;
    } else {
      ATHANOR_CHECK_OK(index_.Trash(connection, part.file, part.file));
    }
  }
  return Ok();
}

Result<ObjectInfo> DirectoryUploads::Complete(std::string_view bucket, std::string_view key,
                                              std::string_view upload,
                                              const std::vector<NamedPart>& named,
                                              const WriteCondition& condition,
                                              const WholeObject& whole) {
  ObjectRow made;
  Status outcome;
  ATHANOR_CHECK_OK(index_.Write([&](Connection& connection) -> Status {
    outcome = Ok();
    ATHANOR_TRY(const auto found, FindUpload(connection, bucket, key, upload));
    if (!found) {
      // The answer to an earlier Complete may have been lost.
      ATHANOR_TRY(const auto id, ObjectIndex::BucketId(connection, bucket));
      std::optional<ObjectRow> there;
      if (id) {
        ATHANOR_TRY(there, ObjectIndex::FindRow(connection, *id, key));
      }
      if (there && !upload.empty() && there->stored.upload == upload) {
        made = std::move(*there);
      } else {
        outcome = NoUpload(upload);
      }
      return Ok();
    }
    ATHANOR_TRY(const auto old, ObjectIndex::FindRow(connection, found->bucket, key));
    outcome = CheckCondition(condition, old ? &old->etag : nullptr, key);
    if (!outcome.ok()) return Ok();
    ATHANOR_TRY(const auto stored, PartsOf(connection, upload, 0, kMostParts));
    std::vector<PartRow> chosen;
    outcome = Choose(stored, named, chosen);
    if (!outcome.ok()) return Ok();
    std::string digests;
    made = {};
    for (const auto& part : chosen) {
      digests += FromHex(part.info.etag);
      made.size += part.info.size;
    }
    made.etag = Hex(Md5(digests)) + "-" + std::to_string(chosen.size());
    made.modified = index_.Now();
    made.parts = static_cast<uint32_t>(chosen.size());
    made.stored = found->stored;
    made.stored.upload = upload;
    made.stored.checksum = WholeChecksum(found->info, chosen);
    outcome = CheckWhole(whole, made);
    if (!outcome.ok()) return Ok();
    // A single part is an object's file as it is.
    made.content = chosen.size() == 1 ? chosen[0].file : index_.NewId();
    if (chosen.size() > 1) ATHANOR_CHECK_OK(Segment(connection, made.content, chosen));
    ATHANOR_CHECK_OK(DropUnused(connection, stored, chosen));
    ATHANOR_CHECK_OK(RemoveUpload(connection, upload));
    return index_.PutRow(connection, found->bucket, key, made);
  }));
  if (!outcome.ok()) return tl::unexpected(outcome.error());
  return made.Info(key);
}

Status DirectoryUploads::Abort(std::string_view bucket, std::string_view key,
                               std::string_view upload) {
  bool known = false;
  ATHANOR_CHECK_OK(index_.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(const auto found, FindUpload(connection, bucket, key, upload));
    known = found.has_value();
    if (!known) return Ok();
    ATHANOR_TRY(const auto stored, PartsOf(connection, upload, 0, kMostParts));
    ATHANOR_CHECK_OK(DropUnused(connection, stored, {}));
    return RemoveUpload(connection, upload);
  }));
  if (known) return Ok();
  return NoUpload(upload);
}

}  // namespace

std::unique_ptr<MultipartUploads> MakeDirectoryUploads(ObjectIndex& index) {
  return std::make_unique<DirectoryUploads>(index);
}

}  // namespace athanor
