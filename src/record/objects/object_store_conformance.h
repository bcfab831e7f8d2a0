// What every ObjectStore promises, as a typed GoogleTest suite. A maker has
// std::unique_ptr<ObjectStore> Open(), which returns the same objects when it is called again.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/io/files.h"
#include "base/text/text.h"
#include "record/objects/object_store.h"
#include "record/objects/object_store_testing.h"

namespace athanor {

TYPED_TEST_SUITE_P(ObjectStoreConformance);

TYPED_TEST_P(ObjectStoreConformance, AnObjectComesBackAsItWasAlsoAfterARestart) {
  ObjectMeta meta{{{"content-type", "text/plain"}}, {{"note", "caf\xc3\xa9"}}, {{"k", "v"}}};
  const auto put = this->Put("a/b", "hello", meta);
  EXPECT_EQ(put->etag, "5d41402abc4b2a76b9719d911017c592");
  ASSERT_TRUE(this->Put("empty", ""));
  this->Reopen();
  auto reader = this->store_->Open("bucket", "a/b");
  ASSERT_TRUE(reader) << reader.error().what;
  const ObjectInfo& info = (*reader)->info();
  EXPECT_TRUE(info.size == 5 && info.etag == put->etag && info.modified == put->modified);
  EXPECT_TRUE(info.meta == meta && info.checksum == put->checksum);
  EXPECT_EQ(info.checksum->value, Base64(Checksum(ChecksumKind::kCrc32, "hello")));
  EXPECT_EQ(this->ReadRange(**reader, 0, 5), "hello");
  EXPECT_EQ(this->ReadRange(**reader, 1, 3), "ell");
  EXPECT_EQ(this->ReadRange(**reader, 5, 0), "");
  EXPECT_EQ(this->Read("empty"), "");
  EXPECT_EQ(this->Read("a"), "error: NoSuchKey");
}

TYPED_TEST_P(ObjectStoreConformance, BucketsHaveNamesAndMustBeEmptyToGo) {
  for (const char* bad : {"", "ab", "Upper", "a_b", "-ab", "ab-", "a..b", "a/b", "..."}) {
    const auto made = this->store_->CreateBucket(bad);
    ASSERT_FALSE(made.ok()) << bad;
    EXPECT_EQ(made.error().id, kInvalidBucketName) << bad;
  }
  EXPECT_FALSE(this->store_->CreateBucket(std::string(64, 'a')).ok());
  EXPECT_TRUE(this->store_->CreateBucket("another.bucket-2").ok());
  EXPECT_EQ(this->store_->CreateBucket("bucket").error().id, kBucketTaken);
  EXPECT_EQ(this->store_->Buckets()->size(), 2u);
  EXPECT_EQ(this->store_->Bucket("none").error().id, kNoSuchBucket);
  EXPECT_EQ(this->store_->List("none", {}).error().id, kNoSuchBucket);
  EXPECT_EQ(this->Put("k", "v", {}, {}, "none").error().id, kNoSuchBucket);
  ASSERT_TRUE(this->Put("k", "v"));
  EXPECT_EQ(this->store_->DeleteBucket("bucket").error().id, kBucketNotEmpty);
  ASSERT_TRUE(this->store_->Delete("bucket", {"k"}, {}).ok());
  ASSERT_TRUE(this->store_->uploads().Begin("bucket", "u", {}, std::nullopt, false));
  EXPECT_TRUE(this->store_->DeleteBucket("bucket").ok());
  EXPECT_EQ(this->store_->DeleteBucket("bucket").error().id, kNoSuchBucket);
  ASSERT_TRUE(this->store_->CreateBucket("bucket").ok());
  EXPECT_TRUE(this->Keys().empty());
  EXPECT_TRUE(this->store_->uploads().List("bucket", "", "", "", 10)->empty());
}

TYPED_TEST_P(ObjectStoreConformance, KeysAreJustText) {
  const std::vector<std::string> keys = {"..",
                                         "../../etc/passwd",
                                         "/",
                                         "//",
                                         "a//b",
                                         "a/",
                                         "a/.",
                                         "a/..",
                                         std::string("nul\0here", 8),
                                         "\x01\n",
                                         "*",
                                         "a b",
                                         "%2e",
                                         std::string(1024, 'k'),
                                         "\xf0\x9f\x8d\xb5"};
  for (const auto& key : keys) ASSERT_TRUE(this->Put(key, "of " + key)) << Printable(key);
  for (const auto& key : keys) EXPECT_EQ(this->Read(key), "of " + key) << Printable(key);
  auto sorted = keys;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(this->Keys(), sorted);
  EXPECT_EQ(this->Put("", "x").error().id, kInvalidKey);
  EXPECT_EQ(this->Put("\xff\xfe", "x").error().id, kInvalidKey);
  EXPECT_EQ(this->Put(std::string(1025, 'k'), "x").error().id, kKeyTooLong);
}

TYPED_TEST_P(ObjectStoreConformance, ListsAreInByteOrderAndPageByPageTheSame) {
  for (const char* key :
       {"b", "a/2", "a/1", "a", "a/x/1", "a/x/2", "A", "a0", "c/d/e", "\xc3\xa9"}) {
    ASSERT_TRUE(this->Put(key, "x"));
  }
  using Names = std::vector<std::string>;
  const Names all = {"A", "a", "a/1", "a/2", "a/x/1", "a/x/2", "a0", "b", "c/d/e", "\xc3\xa9"};
  for (const size_t most : {1, 2, 3, 9, 10, 1000}) {
    SCOPED_TRACE(most);
    EXPECT_EQ(this->Keys({"", "", "", most}), all);
    EXPECT_EQ(this->Keys({"a/", "", "", most}), (Names{"a/1", "a/2", "a/x/1", "a/x/2"}));
    EXPECT_EQ(this->Keys({"", "", "a/2", most}),
              (Names{"a/x/1", "a/x/2", "a0", "b", "c/d/e", "\xc3\xa9"}));
    auto rolled = this->Keys({"", "/", "", most});
    std::sort(rolled.begin(), rolled.end());
    EXPECT_EQ(rolled, (Names{"A", "a", "a/*", "a0", "b", "c/*", "\xc3\xa9"}));
    rolled = this->Keys({"a/", "/", "", most});
    std::sort(rolled.begin(), rolled.end());
    EXPECT_EQ(rolled, (Names{"a/1", "a/2", "a/x/*"}));
    EXPECT_EQ(this->Keys({"c", "/e", "", most}), (Names{"c/d/e*"}));
  }
  // A start within what is rolled up still shows the rest of it.
  EXPECT_EQ(this->Keys({"", "/", "a/1", 10}), (Names{"a0", "b", "\xc3\xa9", "a/*", "c/*"}));
  EXPECT_TRUE(this->Keys({"zz", "", "", 10}).empty());
  const auto none = this->store_->List("bucket", {"", "", "", 0});
  EXPECT_TRUE(none->objects.empty() && !none->truncated);
}

TYPED_TEST_P(ObjectStoreConformance, ConditionsAreDecidedWithTheWrite) {
  const WriteCondition absent{std::nullopt, "*"};
  ASSERT_TRUE(this->Put("k", "one", {}, absent));
  EXPECT_EQ(this->Put("k", "two", {}, absent).error().id, kPreconditionFailed);
  EXPECT_EQ(this->Read("k"), "one");
  const std::string etag = this->store_->Open("bucket", "k").value()->info().etag;
  EXPECT_EQ(this->Put("k", "two", {}, {std::string(32, '0'), std::nullopt}).error().id,
            kPreconditionFailed);
  EXPECT_EQ(this->Put("none", "two", {}, {etag, std::nullopt}).error().id, kNoSuchKey);
  EXPECT_TRUE(this->Put("k", "two", {}, {etag, std::nullopt}));
  EXPECT_EQ(this->Read("k"), "two");
  EXPECT_EQ(this->store_->Delete("bucket", {"k"}, {etag, std::nullopt}).error().id,
            kPreconditionFailed);
  EXPECT_EQ(this->Read("k"), "two");
}

// Planted bug: look for the object in a transaction of its own before the write.
TYPED_TEST_P(ObjectStoreConformance, OfManyWhoWantToBeFirstOneIs) {
  std::atomic<int> won{0};
  std::atomic<int> lost{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const auto put = this->Put("k", std::to_string(i), {}, {std::nullopt, "*"});
      if (put) {
        ++won;
      } else if (put.error().id == kPreconditionFailed) {
        ++lost;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(won, 1);
  EXPECT_EQ(lost, 7);
}

TYPED_TEST_P(ObjectStoreConformance, AReaderKeepsItsBytesWhateverHappensToTheKey) {
  const std::string large(kSmallestPart, 'p');
  const auto upload = this->store_->uploads().Begin("bucket", "m", {}, std::nullopt, false).value();
  const auto one = this->PutPart(upload, 1, large).value();
  const auto two = this->PutPart(upload, 2, "tail").value();
  ASSERT_TRUE(this->store_->uploads().Complete("bucket", "m", upload.id,
                                               {{1, one.etag}, {2, two.etag}}, {}));
  ASSERT_TRUE(this->Put("k", "old"));
  auto plain = this->store_->Open("bucket", "k").value();
  auto parts = this->store_->Open("bucket", "m").value();
  ASSERT_TRUE(this->Put("k", "new"));
  ASSERT_TRUE(this->store_->Delete("bucket", {"m", "k"}, {}).ok());
  ASSERT_TRUE(this->Put("other", "to make the store tidy up"));
  EXPECT_EQ(this->ReadRange(*plain, 0, 3), "old");
  EXPECT_EQ(this->ReadRange(*parts, kSmallestPart - 2, 6), "pptail");
  EXPECT_EQ(this->Read("k"), "error: NoSuchKey");
}

TYPED_TEST_P(ObjectStoreConformance, CopiesAreObjectsOfTheirOwn) {
  ObjectMeta meta{{{"content-type", "a/b"}}, {{"x", "1"}}, {}};
  ASSERT_TRUE(this->Put("from", "bytes", meta));
  auto& store = *this->store_;
  const auto copied = store.Copy("bucket", "from", "", "bucket", "to", std::nullopt, {});
  ASSERT_TRUE(copied) << copied.error().what;
  EXPECT_EQ(copied->meta, meta);
  ASSERT_TRUE(store.Copy("bucket", "to", copied->etag, "bucket", "third", ObjectMeta{}, {}));
  ASSERT_TRUE(store.Copy("bucket", "from", "", "bucket", "from", ObjectMeta{}, {}));
  EXPECT_EQ(store.Open("bucket", "from").value()->info().meta, ObjectMeta{});
  ASSERT_TRUE(store.Delete("bucket", {"from"}, {}).ok());
  EXPECT_EQ(this->Read("to"), "bytes");
  ASSERT_TRUE(this->Put("to", "changed"));
  EXPECT_EQ(this->Read("third"), "bytes");
  EXPECT_EQ(store.Copy("bucket", "third", "0", "bucket", "x", {}, {}).error().id,
            kPreconditionFailed);
  EXPECT_EQ(store.Copy("bucket", "gone", "", "bucket", "x", {}, {}).error().id, kNoSuchKey);
  EXPECT_EQ(store.Copy("none", "k", "", "bucket", "x", {}, {}).error().id, kNoSuchBucket);
}

TYPED_TEST_P(ObjectStoreConformance, TagsAreReplacedAndTheRestStays) {
  ASSERT_TRUE(this->Put("k", "v", {{{"content-type", "a/b"}}, {}, {{"old", "1"}}}));
  ASSERT_TRUE(this->store_->SetTags("bucket", "k", {{"new", "2"}}).ok());
  const auto meta = this->store_->Open("bucket", "k").value()->info().meta;
  EXPECT_EQ(meta.tags, (std::map<std::string, std::string>{{"new", "2"}}));
  EXPECT_EQ(meta.headers.at("content-type"), "a/b");
  EXPECT_EQ(this->store_->SetTags("bucket", "none", {}).error().id, kNoSuchKey);
}

TYPED_TEST_P(ObjectStoreConformance, PartsBecomeOneObject) {
  auto& uploads = this->store_->uploads();
  const auto upload =
      uploads
          .Begin("bucket", "big", {{{"content-type", "a/b"}}, {}, {}}, ChecksumKind::kCrc32, true)
          .value();
  const std::string a(kSmallestPart, 'a');
  const std::string b(kSmallestPart + 3, 'b');
  const std::string c = "the end";
  ASSERT_TRUE(this->PutPart(upload, 7, c));
  ASSERT_TRUE(this->PutPart(upload, 2, "replaced below"));
  ASSERT_TRUE(this->PutPart(upload, 1, a));
  ASSERT_TRUE(this->PutPart(upload, 2, b));
  ASSERT_TRUE(this->PutPart(upload, 9, "not named"));
  EXPECT_EQ(this->PutPart(upload, 0, "x").error().id, kInvalidKey);
  EXPECT_EQ(this->PutPart(upload, kMostParts + 1, "x").error().id, kInvalidKey);
  this->Reopen();
  auto& again = this->store_->uploads();
  const auto parts = again.Parts("bucket", "big", upload.id, 0, 100).value();
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(again.Parts("bucket", "big", upload.id, 2, 1)->at(0).number, 7u);
  EXPECT_EQ(again.List("bucket", "b", "", "", 10)->size(), 1u);
  EXPECT_EQ(this->Read("big"), "error: NoSuchKey");
  const auto complete = [&](const std::vector<NamedPart>& named) {
    return again.Complete("bucket", "big", upload.id, named, {});
  };
  EXPECT_EQ(complete({{2, parts[1].etag}, {1, parts[0].etag}}).error().id, kInvalidPartOrder);
  EXPECT_EQ(complete({{1, parts[1].etag}}).error().id, kInvalidPart);
  EXPECT_EQ(complete({{3, parts[1].etag}}).error().id, kInvalidPart);
  EXPECT_EQ(complete({}).error().id, kInvalidPart);
  EXPECT_EQ(complete({{7, parts[2].etag}, {9, parts[3].etag}}).error().id, kPartTooSmall);
  // What the client says about a part, or about the whole, must be true before anything is created.
  const auto wrong = [&](std::string of_part, const WholeObject& whole) {
    return again.Complete("bucket", "big", upload.id, {{1, parts[0].etag, of_part}}, {}, whole)
        .error()
        .id;
  };
  const ObjectChecksum other{ChecksumKind::kCrc32, parts[1].checksum, true};
  EXPECT_EQ(wrong(parts[1].checksum, {}), kInvalidPart);
  EXPECT_EQ(wrong(parts[0].checksum, {a.size() + 1, std::nullopt}), kBadDigest);
  EXPECT_EQ(wrong(parts[0].checksum, {a.size(), other}), kBadDigest);
  const auto made = complete({{1, parts[0].etag}, {2, parts[1].etag}, {7, parts[2].etag}});
  ASSERT_TRUE(made) << made.error().what;
  EXPECT_EQ(made->etag, Hex(Md5(Md5(a) + Md5(b) + Md5(c))) + "-3");
  EXPECT_EQ(made->checksum->value, Base64(Checksum(ChecksumKind::kCrc32, a + b + c)));
  EXPECT_EQ(made->meta.headers.at("content-type"), "a/b");
  EXPECT_EQ(this->Read("big"), a + b + c);
  auto reader = this->store_->Open("bucket", "big").value();
  EXPECT_EQ(this->ReadRange(*reader, a.size() - 1, b.size() + 2), "a" + b + "t");
  EXPECT_EQ(reader->Part(3).value(), std::make_pair(a.size() + b.size(), c.size()));
  EXPECT_EQ(reader->Part(4).error().id, kInvalidPart);
  // Again: the same answer, until the object is replaced.
  EXPECT_EQ(complete({{1, parts[0].etag}})->etag, made->etag);
  ASSERT_TRUE(this->Put("big", "small now"));
  EXPECT_EQ(complete({{1, parts[0].etag}}).error().id, kNoSuchUpload);
  EXPECT_EQ(again.Abort("bucket", "big", upload.id).error().id, kNoSuchUpload);
}

TYPED_TEST_P(ObjectStoreConformance, AnAbortedUploadIsGoneAndBelongsToItsKey) {
  auto& uploads = this->store_->uploads();
  const auto upload = uploads.Begin("bucket", "k", {}, std::nullopt, false).value();
  ASSERT_TRUE(this->PutPart(upload, 1, "x"));
  UploadInfo elsewhere = upload;
  elsewhere.key = "another";
  EXPECT_EQ(this->PutPart(elsewhere, 1, "x").error().id, kNoSuchUpload);
  EXPECT_EQ(uploads.Abort("bucket", "another", upload.id).error().id, kNoSuchUpload);
  EXPECT_TRUE(uploads.Abort("bucket", "k", upload.id).ok());
  EXPECT_EQ(this->PutPart(upload, 1, "x").error().id, kNoSuchUpload);
  EXPECT_TRUE(uploads.List("bucket", "", "", "", 10)->empty());
}

TYPED_TEST_P(ObjectStoreConformance, TwoWhoCompleteOneUploadAgree) {
  const auto upload = this->store_->uploads().Begin("bucket", "k", {}, std::nullopt, false).value();
  const auto part = this->PutPart(upload, 1, "bytes").value();
  std::vector<std::string> etags(4);
  std::vector<std::thread> threads;
  for (auto& etag : etags) {
    threads.emplace_back([&] {
      const auto made =
          this->store_->uploads().Complete("bucket", "k", upload.id, {{1, part.etag}}, {});
      etag = made ? made->etag : made.error().id;
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& etag : etags) EXPECT_EQ(etag, Hex(Md5(Md5("bytes"))) + "-1");
  EXPECT_EQ(this->Read("k"), "bytes");
}

TYPED_TEST_P(ObjectStoreConformance, WhatIsNotFinishedIsAbsent) {
  ASSERT_TRUE(this->store_->NewObject({}).value()->Write("half").ok());
  EXPECT_TRUE(this->Keys().empty());
  this->Reopen();
  EXPECT_TRUE(this->Keys().empty());
}

REGISTER_TYPED_TEST_SUITE_P(ObjectStoreConformance, AnObjectComesBackAsItWasAlsoAfterARestart,
                            BucketsHaveNamesAndMustBeEmptyToGo, KeysAreJustText,
                            ListsAreInByteOrderAndPageByPageTheSame,
                            ConditionsAreDecidedWithTheWrite, OfManyWhoWantToBeFirstOneIs,
                            AReaderKeepsItsBytesWhateverHappensToTheKey, CopiesAreObjectsOfTheirOwn,
                            TagsAreReplacedAndTheRestStays, PartsBecomeOneObject,
                            AnAbortedUploadIsGoneAndBelongsToItsKey, TwoWhoCompleteOneUploadAgree,
                            WhatIsNotFinishedIsAbsent);

}  // namespace athanor
