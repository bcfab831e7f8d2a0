// The fixture of object_store_conformance.h: a store made by `Maker`, and short ways to use it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/io/files.h"
#include "base/text/text.h"
#include "record/objects/object_store.h"

namespace athanor {

template <class Maker>
class ObjectStoreConformance : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = maker_.Open();
    ASSERT_TRUE(store_->CreateBucket("bucket").ok());
  }
  void Reopen() {
    store_.reset();
    store_ = maker_.Open();
  }

  Result<ObjectInfo> Put(std::string_view key, std::string_view bytes, ObjectMeta meta = {},
                         WriteCondition condition = {}, std::string_view bucket = "bucket") {
    auto writer = store_->NewObject({false, ChecksumKind::kCrc32});
    if (!writer) return tl::unexpected(writer.error());
    if (auto written = (*writer)->Write(bytes); !written.ok())
      return tl::unexpected(written.error());
    auto digests = (*writer)->Finish();
    if (!digests) return tl::unexpected(digests.error());
    return store_->Put(bucket, key, std::move(*writer), *digests, std::move(meta),
                       ChecksumKind::kCrc32, condition);
  }

  Result<PartInfo> PutPart(const UploadInfo& upload, uint32_t number, std::string_view bytes) {
    auto writer = store_->NewObject({false, ChecksumKind::kCrc32});
    if (!writer) return tl::unexpected(writer.error());
    if (auto written = (*writer)->Write(bytes); !written.ok())
      return tl::unexpected(written.error());
    auto digests = (*writer)->Finish();
    if (!digests) return tl::unexpected(digests.error());
    return store_->uploads().Put("bucket", upload.key, upload.id, number, std::move(*writer),
                                 *digests);
  }

  static std::string ReadRange(ObjectReader& reader, uint64_t offset, uint64_t length) {
    std::string out;
    if (!reader.Seek(offset, length).ok()) return "cannot seek";
    while (true) {
      auto piece = reader.Next();
      if (!piece) return piece.error().what;
      if (!*piece) return out;
      std::string bytes((*piece)->length, '\0');
      const ssize_t got = ::pread((*piece)->fd.get(), bytes.data(), bytes.size(),
                                  static_cast<off_t>((*piece)->offset));
      out += bytes.substr(0, got < 0 ? 0 : static_cast<size_t>(got));
    }
  }
  std::string Read(std::string_view key) {
    auto reader = store_->Open("bucket", key);
    if (!reader) return "error: " + reader.error().id;
    return ReadRange(**reader, 0, (*reader)->info().size);
  }
  std::vector<std::string> Keys(ListQuery query = {}) {
    std::vector<std::string> keys;
    while (true) {
      auto page = store_->List("bucket", query);
      EXPECT_TRUE(page) << page.error().what;
      if (!page) return keys;
      for (const auto& object : page->objects) keys.push_back(object.key);
      for (const auto& prefix : page->prefixes) keys.push_back(prefix + "*");
      if (!page->truncated) return keys;
      query.after = page->last;
    }
  }

  Maker maker_;
  std::unique_ptr<ObjectStore> store_;
};

}  // namespace athanor
