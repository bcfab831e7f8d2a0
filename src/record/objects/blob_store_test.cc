#include "record/objects/blob_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "record/fault_testing.h"

namespace athanor {
namespace {

std::vector<std::string> Temporaries(const BlobStore& store) {
  return ListDir(store.dir() + "/tmp").value();
}

std::string Content(const BlobStore& store, const BlobRef& ref) {
  auto fd = store.Read(ref);
  return fd ? ReadAll(fd->get()).value() : "error: " + fd.error().what;
}

TEST(BlobStore, GivesBackWhatWasPutUnderItsHash) {
  const TestDir dir;
  const auto store = BlobStore::Open(dir / "deep/blobs").value();
  const std::string big(3'000'000, 'x');
  for (const std::string& bytes : {std::string(), std::string("a\0b", 3), big}) {
    const auto ref = store.Put(bytes).value();
    EXPECT_EQ(ref, (BlobRef{Sha256Hex(bytes), bytes.size()}));
    EXPECT_EQ(store.Put(bytes).value(), ref);
    EXPECT_TRUE(store.Has(ref.sha256));
    EXPECT_TRUE(store.Verify(ref.sha256).ok());
    EXPECT_EQ(Content(store, ref), bytes);
    struct stat info {};
    ASSERT_EQ(
        ::stat((dir / ("deep/blobs/" + ref.sha256.substr(0, 2) + "/" + ref.sha256)).c_str(), &info),
        0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  EXPECT_TRUE(Temporaries(store).empty());
}

TEST(BlobStore, TakesAFileFromItsOffsetOn) {
  const TestDir dir;
  const auto store = BlobStore::Open(dir / "blobs").value();
  ASSERT_TRUE(ReplaceFile(dir / "file", "skip-this-part").ok());
  const UniqueFd fd(::open((dir / "file").c_str(), O_RDONLY));
  ASSERT_EQ(::lseek(fd.get(), 5, SEEK_SET), 5);
  EXPECT_EQ(Content(store, store.PutFd(fd.get()).value()), "this-part");
}

TEST(BlobStore, AWriterMayMixItsOwnWritesWithTheDescriptor) {
  const TestDir dir;
  const auto store = BlobStore::Open(dir.path()).value();
  auto writer = store.NewBlob().value();
  ASSERT_TRUE(writer.Write("one ").ok());
  ASSERT_TRUE(WriteAll(writer.fd(), "two").ok());
  const auto ref = writer.Commit(Sha256Hex("one two"));
  ASSERT_TRUE(ref) << ref.error().what;
  EXPECT_EQ(Content(store, *ref), "one two");
  EXPECT_EQ(writer.Commit().error().code, ErrorCode::kBug);
}

TEST(BlobStore, AnUnfinishedOrUnexpectedBlobLeavesNothing) {
  const TestDir dir;
  const auto store = BlobStore::Open(dir.path()).value();
  {
    auto dropped = store.NewBlob().value();
    ASSERT_TRUE(dropped.Write("half").ok());
    auto wrong = store.NewBlob().value();
    ASSERT_TRUE(wrong.Write("other").ok());
    const auto refused = wrong.Commit(Sha256Hex("expected"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt);
    EXPECT_EQ(Temporaries(store).size(), 2u);
  }
  EXPECT_TRUE(Temporaries(store).empty());
  size_t blobs = 0;
  ASSERT_TRUE(store.ForEach([&](const BlobRef&) { ++blobs; }).ok());
  EXPECT_EQ(blobs, 0u);
}

// Planted bug: PathOf without CheckName.
TEST(BlobStore, NamesAreNeverPaths) {
  const TestDir dir;
  const auto store = BlobStore::Open(dir / "blobs").value();
  ASSERT_TRUE(ReplaceFile(dir / "secret", "s").ok());
  const std::string hash = Sha256Hex("x");
  for (const std::string& name :
       {std::string(), std::string("../secret"), std::string("tmp/../../secret"),
        std::string(63, 'a'), std::string(65, 'a'), std::string(64, 'g'), std::string(64, '/'),
        std::string(64, 'A'), hash.substr(0, 63) + '\0', "../" + hash.substr(3)}) {
    EXPECT_FALSE(store.Has(name)) << name;
    EXPECT_EQ(store.Read(name).error().code, ErrorCode::kInvalid) << name;
    EXPECT_EQ(store.Remove(name).error().code, ErrorCode::kInvalid) << name;
  }
  EXPECT_EQ(store.Read(hash).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(Exists(dir / "secret"));
}

TEST(BlobStore, ListsAndRemoves) {
  const TestDir dir;
  const auto store = BlobStore::Open(dir.path()).value();
  std::vector<BlobRef> put;
  for (int i = 0; i < 50; ++i) put.push_back(store.Put("blob " + std::to_string(i)).value());
  std::sort(put.begin(), put.end(), [](auto& a, auto& b) { return a.sha256 < b.sha256; });
  ASSERT_TRUE(ReplaceFile(dir / (put[0].sha256.substr(0, 2) + "/not-a-blob"), "x").ok());
  std::vector<BlobRef> listed;
  ASSERT_TRUE(store.ForEach([&](const BlobRef& ref) { listed.push_back(ref); }).ok());
  EXPECT_EQ(listed, put);
  ASSERT_TRUE(store.Remove(put[0].sha256).ok());
  ASSERT_TRUE(store.Remove(put[0].sha256).ok());
  EXPECT_FALSE(store.Has(put[0].sha256));
  EXPECT_TRUE(store.Has(put[1].sha256));
}

// Planted bug: stale temporaries chosen by name instead of age.
TEST(BlobStore, OpenRemovesWhatWritersLeftADayAgoAndNothingElse) {
  const TestDir dir;
  const auto store = BlobStore::Open(dir.path()).value();
  auto active = store.NewBlob().value();
  ASSERT_TRUE(active.Write("still being written").ok());
  const auto kept = store.Put("kept").value();
  ASSERT_TRUE(ReplaceFile(dir / "tmp/blob-dead00", "left").ok());
  timespec old[2] = {{::time(nullptr) - 25 * 3600, 0}, {::time(nullptr) - 25 * 3600, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (dir / "tmp/blob-dead00").c_str(), old, 0), 0);
  const std::string blob = dir / (kept.sha256.substr(0, 2) + "/" + kept.sha256);
  ASSERT_EQ(::utimensat(AT_FDCWD, blob.c_str(), old, 0), 0);
  const auto again = BlobStore::Open(dir.path()).value();
  EXPECT_EQ(Temporaries(again).size(), 1u);
  EXPECT_TRUE(again.Has(kept.sha256));
  EXPECT_EQ(Content(again, active.Commit().value()), "still being written");
}

// Planted bug: Verify that compares sizes only.
TEST(BlobStore, ADamagedBlobIsFoundAndMendedByPuttingItAgain) {
  const TestDir dir;
  const auto store = BlobStore::Open(dir.path()).value();
  const auto ref = store.Put("some bytes").value();
  const std::string path = dir / (ref.sha256.substr(0, 2) + "/" + ref.sha256);
  ASSERT_TRUE(ReplaceFile(path, "some bytEs").ok());
  EXPECT_EQ(store.Verify(ref.sha256).error().code, ErrorCode::kCorrupt);
  ASSERT_TRUE(ReplaceFile(path, "some").ok());
  EXPECT_EQ(store.Read(ref).error().code, ErrorCode::kCorrupt);
  ASSERT_TRUE(store.Put("some bytes"));
  EXPECT_EQ(Content(store, ref), "some bytes");
}

// Planted bug: writing to the final name instead of a temporary of one's own.
TEST(BlobStore, ManyWritersOfOneBlobAllSucceedAndReadersSeeItWhole) {
  const TestDir dir;
  const auto store = BlobStore::Open(dir.path()).value();
  for (int round = 0; round < 10; ++round) {
    const std::string bytes = std::to_string(round) + std::string(200'000, 'y');
    const BlobRef ref{Sha256Hex(bytes), bytes.size()};
    std::vector<std::thread> writers;
    for (int i = 0; i < 4; ++i) {
      writers.emplace_back([&] {
        const auto mine = BlobStore::Open(dir.path()).value();
        auto writer = mine.NewBlob().value();
        ASSERT_TRUE(writer.Write(bytes).ok());
        ASSERT_EQ(writer.Commit().value(), ref);
      });
    }
    while (!store.Has(ref.sha256)) std::this_thread::yield();
    EXPECT_EQ(Content(store, ref), bytes);
    for (auto& writer : writers) writer.join();
  }
  EXPECT_TRUE(Temporaries(store).empty());
}

// Planted bug: rename before the last write.
TEST(BlobStore, AfterKillNineEveryVisibleBlobIsWhole) {
  Dice dice(TestSeed());
  const TestDir dir;
  for (int round = 0; round < 20; ++round) {
    const uint64_t base = static_cast<uint64_t>(round) * 1'000'000;
    const auto content = [](uint64_t i) {
      return std::to_string(i) + std::string(50'000 + i % 1000, 'z');
    };
    const auto acked = KillAfter(1 + dice.Below(15), [&](const auto& ack) {
      const auto store = BlobStore::Open(dir.path()).value();
      for (uint64_t i = base; i < base + 10'000; ++i) {
        if (!store.Put(content(i))) return;
        ack(i);
      }
    });
    const auto store = BlobStore::Open(dir.path()).value();
    for (const uint64_t i : acked) ASSERT_TRUE(store.Verify(Sha256Hex(content(i))).ok());
    ASSERT_TRUE(
        store.ForEach([&](const BlobRef& ref) { EXPECT_TRUE(store.Verify(ref.sha256).ok()); })
            .ok());
  }
}

// Planted bug: a Writer that leaves its temporary behind.
TEST(BlobStore, AFullDiskIsToldAndLeavesNothing) {
  SmallDisk disk("256k");
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  const auto store = BlobStore::Open(disk.path() + "/blobs").value();
  ASSERT_NO_FATAL_FAILURE(disk.Fill(4));
  const std::string bytes(40'000, 'q');
  const auto full = store.Put(bytes);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kExhausted);
  {
    auto writer = store.NewBlob().value();
    EXPECT_FALSE(writer.Write(bytes).ok());
    EXPECT_FALSE(writer.Commit());
  }
  EXPECT_TRUE(Temporaries(store).empty());
  EXPECT_FALSE(store.Has(Sha256Hex(bytes)));
  disk.Free();
  EXPECT_EQ(Content(store, store.Put(bytes).value()), bytes);
}

}  // namespace
}  // namespace athanor
