#include "run/agent/source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/io/test_dir.h"
#include "base/text/text.h"
#include "job/manifest.h"
#include "run/agent/blob_cache.h"
#include "run/job_files_testing.h"

namespace athanor {
namespace {

using Texts = std::map<std::string, std::string>;

class SourceTest : public ::testing::TestWithParam<Reach> {
 protected:
  // A bundle of these files, as the server has it; its name.
  std::string Bundle(const Texts& texts) {
    BundleManifest manifest;
    for (const auto& [name, text] : texts) {
      BundleEntry entry;
      entry.path = name;
      entry.size = text.size();
      entry.sha256 = job_.blobs().Put(text).value().sha256;
      entry.executable = EndsWith(name, ".sh");
      manifest.bytes += entry.size;
      manifest.entries.push_back(entry);
    }
    const auto listing = job_.blobs().Put(WriteManifest(manifest)).value().sha256;
    job_.NameListing(listing);
    return listing;
  }
  Texts Many() {
    Texts texts;
    for (int i = 0; i < 300; ++i) {
      texts["pkg/m" + std::to_string(i % 20) + "/f" + std::to_string(i) + ".py"] =
          "x = " + std::to_string(i / 2) + "\n";
    }
    texts["run.sh"] = "#!/bin/sh\n";
    texts["empty"] = "";
    return texts;
  }
  Status LayOutIn(const std::string& name, const std::string& bundle, JobFiles& files) {
    EXPECT_TRUE(MakeDirs(dir_ / name));
    return LayOutBundle({files, dir_ / "cache", job_.is_here()}, bundle, dir_ / name);
  }
  Status LayOutIn(const std::string& name, const std::string& bundle) {
    return LayOutIn(name, bundle, job_.files());
  }
  void ExpectFiles(const std::string& dir, const Texts& texts) {
    for (const auto& [name, text] : texts) EXPECT_EQ(ReadFile(JoinPath(dir, name)), text) << name;
  }
  std::string Cached(const std::string& text) const {
    const auto sha256 = Sha256Hex(text);
    return dir_ / ("cache/blobs/" + sha256.substr(0, 2) + "/" + sha256);
  }

  TestDir dir_;
  JobFilesAt job_{GetParam()};
};

TEST_P(SourceTest, LaysOutEveryFileAsItWasSubmitted) {
  const auto bundle = Bundle(Many());
  const auto done = LayOutIn("code", bundle);
  ASSERT_TRUE(done) << done.error().what;
  ExpectFiles(dir_ / "code", Many());
  struct stat info {};
  ASSERT_EQ(::stat((dir_ / "code/run.sh").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0755u);
  // In place: nothing is cached twice where the server is.
  EXPECT_EQ(Exists(dir_ / "cache/blobs"), !job_.is_here());
}

TEST_P(SourceTest, ACachedSourceIsWholeAndIsNotAskedForAgain) {
  const auto bundle = Bundle(Many());
  const SourceFrom from{job_.files(), dir_ / "cache", job_.is_here()};
  const auto first = CachedSource(from, bundle);
  ASSERT_TRUE(first) << first.error().what;
  ExpectFiles(*first, Many());
  const int before = job_.is_here() ? 0 : job_.server().requests();
  EXPECT_EQ(CachedSource(from, bundle).value(), *first);
  EXPECT_EQ(job_.is_here() ? 0 : job_.server().requests(), before);
}

TEST_P(SourceTest, ABlobThatIsMissingOrDamagedAtTheServerIsSaid) {
  const auto bundle = Bundle(Many());
  const auto blob = Sha256Hex("x = 7\n");
  ASSERT_TRUE(ReplaceFile(job_.blobs().dir() + "/" + blob.substr(0, 2) + "/" + blob, "x = 8\n"));
  EXPECT_EQ(LayOutIn("damaged", bundle).error().code, ErrorCode::kCorrupt);
  ASSERT_TRUE(job_.blobs().Remove(blob));
  EXPECT_EQ(LayOutIn("missing", bundle).error().code, ErrorCode::kNotFound);
}

TEST_P(SourceTest, SweepsWhatNoJobNeeded) {
  const SourceFrom from{job_.files(), dir_ / "cache", job_.is_here()};
  ASSERT_TRUE(CachedSource(from, Bundle({{"a", "one"}, {"b", "two"}})));
  EXPECT_EQ(SweepSources(dir_ / "cache", WallTime{1'000}, false)->removed, 0u);
  const auto swept = SweepSources(dir_ / "cache", WallTime{INT64_MAX / 2}, false);
  ASSERT_TRUE(swept);
  EXPECT_EQ(swept->removed, 1u);
  EXPECT_EQ(Exists(Cached("one")), false);
}

INSTANTIATE_TEST_SUITE_P(Files, SourceTest, ::testing::Values(Reach::kHere, Reach::kServer),
                         NameOfReach);

// Lets a blob come only when several are asked for at once.
class Together : public PassedFiles {
 public:
  using PassedFiles::PassedFiles;
  Result<UniqueFd> Get(Shelf shelf, const std::string& sha256) override {
    if (sha256 != listing) {
      std::unique_lock lock(mutex_);
      if (++waiting_ >= 4) enough_ = true;
      met_.notify_all();
      if (!met_.wait_for(lock, std::chrono::minutes(2), [this] { return enough_; })) {
        return Fail(ErrorCode::kTimeout, "nobody else asked");
      }
    }
    return PassedFiles::Get(shelf, sha256);
  }
  std::string listing;

 private:
  std::mutex mutex_;
  std::condition_variable met_;
  int waiting_ = 0;
  bool enough_ = false;
};

class SourceElsewhere : public SourceTest {};

// Planted bug: fetching one after the other.
TEST_P(SourceElsewhere, BlobsAreFetchedSeveralAtOnce) {
  Together files(job_.files());
  files.listing = Bundle(Many());
  const auto done = LayOutIn("code", files.listing, files);
  ASSERT_TRUE(done) << done.error().what;
  ExpectFiles(dir_ / "code", Many());
}

// Planted bugs: fetching all of it again; fetching equal files each.
TEST_P(SourceElsewhere, OfASourceThatWasChangedOnlyTheChangeTravels) {
  ASSERT_TRUE(LayOutIn("first", Bundle(Many())));
  EXPECT_EQ(job_.server().requests(), 1 + 150 + 2);
  auto changed = Many();
  changed["pkg/m1/f1.py"] = "x = 'changed'\n";
  const auto bundle = Bundle(changed);
  const int before = job_.server().requests();
  ASSERT_TRUE(LayOutIn("second", bundle));
  ExpectFiles(dir_ / "second", changed);
  EXPECT_EQ(job_.server().requests() - before, 2);  // the listing, and the file
  ASSERT_TRUE(LayOutIn("third", bundle));
  EXPECT_EQ(job_.server().requests() - before, 2);
}

// A cache is not synced. Planted bug: trusting names.
TEST_P(SourceElsewhere, WhatIsDamagedInTheCacheIsFetchedAgain) {
  const auto bundle = Bundle(Many());
  ASSERT_TRUE(LayOutIn("first", bundle));
  ASSERT_TRUE(ReplaceFile(Cached("x = 7\n"), ""));
  ASSERT_TRUE(ReplaceFile(Cached("x = 8\n"), "x = 9\n"));
  const auto again = LayOutIn("second", bundle);
  ASSERT_TRUE(again) << again.error().what;
  ExpectFiles(dir_ / "second", Many());
  EXPECT_EQ(ReadFile(Cached("x = 7\n")).value(), "x = 7\n");
}

INSTANTIATE_TEST_SUITE_P(Files, SourceElsewhere, ::testing::Values(Reach::kServer), NameOfReach);

class BlobCacheTest : public ::testing::Test {
 protected:
  void Keep(const std::string& text, int64_t used) {
    const auto fd = FileOf(dir_, text);
    cache_.Keep(Sha256Hex(text), fd.get());
    const timespec times[2] = {{used, 0}, {used, 0}};
    const auto name = Sha256Hex(text);
    ASSERT_EQ(::utimensat(AT_FDCWD, (dir_ / ("blobs/" + name.substr(0, 2) + "/" + name)).c_str(),
                          times, 0),
              0);
  }
  bool Has(const std::string& text) const { return cache_.Has(Sha256Hex(text)); }

  TestDir dir_;
  const BlobCache cache_ = BlobCache::Of(dir_.path());
};

// Planted bug: removing what was used last.
TEST_F(BlobCacheTest, OverItsLimitsWhatWasUsedLongestAgoGoes) {
  for (int i = 0; i < 8; ++i) Keep(std::string(100, static_cast<char>('a' + i)), 1'000 + i);
  ASSERT_TRUE(cache_.Take(Sha256Hex(std::string(100, 'a'))));  // now it was used last
  cache_.Trim({800, 8});
  EXPECT_TRUE(Has(std::string(100, 'b')));
  cache_.Trim({700, 8});
  EXPECT_TRUE(Has(std::string(100, 'a')));
  EXPECT_FALSE(Has(std::string(100, 'b')));
  EXPECT_FALSE(Has(std::string(100, 'd')));
  EXPECT_TRUE(Has(std::string(100, 'e')));
  cache_.Trim({700, 4});
  EXPECT_FALSE(Has(std::string(100, 'e')));
  EXPECT_TRUE(Has(std::string(100, 'h')));
}

TEST_F(BlobCacheTest, KeepsNothingHugeAndNoOddName) {
  const auto large = FileOf(dir_, "");
  ASSERT_EQ(::ftruncate(large.get(), BlobCache::kLargest + 1), 0);
  cache_.Keep(Sha256Hex("large"), large.get());
  EXPECT_FALSE(Has("large"));
  const auto small = FileOf(dir_, "small");
  cache_.Keep("../../small", small.get());
  EXPECT_FALSE(cache_.Has("../../small"));
  EXPECT_FALSE(cache_.Take("../../small"));
}

}  // namespace
}  // namespace athanor
