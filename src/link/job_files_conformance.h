// What every JobFiles promises, as a typed GoogleTest suite. A maker has `JobFolders folders` and
// std::unique_ptr<JobFiles> Open(uint32_t attempt): files of that attempt, in these folders.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/io/hash.h"
#include "link/job_files_testing.h"

namespace athanor {

template <class Maker>
class JobFilesConformance : public ::testing::Test {
 protected:
  std::string Content(Result<UniqueFd> fd) {
    return fd ? ReadAll(fd->get()).value() : "error: " + std::string(RowOf(fd.error().code).name);
  }
  Result<BlobRef> Put(Shelf shelf, const std::string& bytes) {
    const auto fd = FileOf(dir_, bytes);
    return files_->Put(shelf, fd.get(), 0, bytes.size(), {});
  }
  std::vector<std::string> Names(const std::string& folder) {
    std::vector<std::string> names;
    const auto entries = files_->List(folder).value();
    for (const auto& entry : entries) names.push_back(entry.name);
    return names;
  }
  std::string Text(const std::string& name) { return Content(files_->Read(name)); }
  TestDir dir_;
  Maker maker_;
  std::unique_ptr<JobFiles> files_ = maker_.Open(1);
};

TYPED_TEST_SUITE_P(JobFilesConformance);

TYPED_TEST_P(JobFilesConformance, ABlobComesBackAsItWasPut) {
  for (const Shelf shelf : {Shelf::kBlobs, Shelf::kParts}) {
    for (const size_t size : {0u, 1u, 70'000u, 20'000'007u}) {
      const std::string bytes = SomeBytes(size, static_cast<uint32_t>(shelf));
      const auto put = this->Put(shelf, bytes);
      ASSERT_TRUE(put) << put.error().what;
      EXPECT_EQ(*put, (BlobRef{Sha256Hex(bytes), size}));
      EXPECT_TRUE(this->Content(this->files_->Get(shelf, put->sha256)) == bytes) << size;
      EXPECT_EQ(this->Put(shelf, bytes).value(), *put);
    }
  }
}

TYPED_TEST_P(JobFilesConformance, WhoMayStopHasTheSameFiles) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd stop(ends[0]);
  const UniqueFd other(ends[1]);
  auto stoppable = this->files_->Until(stop.get(), Millis(0));
  ASSERT_TRUE(ReplaceWith(*stoppable, "values", "1 2"));
  EXPECT_EQ(this->Text("values"), "1 2");
  this->files_.reset();
  EXPECT_EQ(this->Content(stoppable->Read("values")), "1 2");
}

TYPED_TEST_P(JobFilesConformance, APieceOfAFileIsABlob) {
  const auto fd = FileOf(this->dir_, "skip-this-part-not-this");
  const auto put = this->files_->Put(Shelf::kParts, fd.get(), 5, 9, {});
  ASSERT_TRUE(put) << put.error().what;
  EXPECT_EQ(this->Content(this->files_->Get(Shelf::kParts, put->sha256)), "this-part");
}

TYPED_TEST_P(JobFilesConformance, HasKnowsNameAndSize) {
  const auto one = this->Put(Shelf::kParts, "one").value();
  const auto two = this->Put(Shelf::kParts, "two").value();
  const auto there = this->files_->Has(
      Shelf::kParts, {one, {Sha256Hex("three"), 5}, two, {two.sha256, 4}, {"../x", 1}, {"", 0}});
  ASSERT_TRUE(there) << there.error().what;
  EXPECT_EQ(*there, (std::vector<bool>{true, false, true, false, false, false}));
  EXPECT_EQ(this->files_->Has(Shelf::kBlobs, {one}).value(), std::vector<bool>{false});
  EXPECT_TRUE(this->files_->Has(Shelf::kParts, {}).value().empty());
}

TYPED_TEST_P(JobFilesConformance, ABlobThatIsNotThereIsNotFound) {
  for (const Shelf shelf : {Shelf::kBlobs, Shelf::kParts}) {
    EXPECT_EQ(this->Content(this->files_->Get(shelf, Sha256Hex("nothing"))), "error: not_found");
    for (const char* name : {"abc", "..", "%2e%2e"}) {
      EXPECT_FALSE(this->files_->Get(shelf, name)) << name;
    }
  }
}

TYPED_TEST_P(JobFilesConformance, AFileThatBecameShorterIsNotStored) {
  const auto fd = FileOf(this->dir_, SomeBytes(200'000));
  const auto put = this->files_->Put(Shelf::kParts, fd.get(), 0, 200'001, {});
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, ErrorCode::kCorrupt);
}

TYPED_TEST_P(JobFilesConformance, PutGivesUpWhenItIsTold) {
  const auto fd = FileOf(this->dir_, SomeBytes(3'000'000));
  uint64_t seen = 0;
  const auto put = this->files_->Put(Shelf::kParts, fd.get(), 0, 3'000'000, [&](uint64_t bytes) {
    seen += bytes;
    return seen < 2'000'000;
  });
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, ErrorCode::kCancelled);
  EXPECT_FALSE(
      this->files_->Has(Shelf::kParts, {{Sha256Hex(SomeBytes(3'000'000)), 3'000'000}})->front());
}

TYPED_TEST_P(JobFilesConformance, WhatTheEarlierJobHasIsReadOnly) {
  const std::string earlier = this->maker_.folders.options().earlier_dir;
  const auto part = BlobStore::Open(earlier + "/parts").value().Put("weights").value();
  ASSERT_TRUE(MakeDirs(earlier + "/manifests"));
  ASSERT_TRUE(ReplaceFile(earlier + "/manifests/2-1.manifest", "of another job"));
  EXPECT_TRUE(this->files_->Has(Shelf::kEarlierParts, {part})->front());
  EXPECT_EQ(this->Content(this->files_->Get(Shelf::kEarlierParts, part.sha256)), "weights");
  EXPECT_EQ(this->Put(Shelf::kEarlierParts, "more").error().code, ErrorCode::kDenied);
  EXPECT_EQ(this->Text("earlier/manifests/2-1.manifest"), "of another job");
  EXPECT_EQ(this->Names("earlier/manifests").size(), 1u);
  EXPECT_EQ(ReplaceWith(*this->files_, "earlier/manifests/2-1.manifest", "x").error().code,
            ErrorCode::kDenied);
  EXPECT_EQ(this->Text("earlier/values"), "error: denied");
}

TYPED_TEST_P(JobFilesConformance, AnEntryIsReplacedAsAWhole) {
  EXPECT_TRUE(this->Names("capture").empty());
  EXPECT_EQ(this->Text("values"), "error: not_found");
  ASSERT_TRUE(ReplaceWith(*this->files_, "values", "1 2\n"));
  ASSERT_TRUE(ReplaceWith(*this->files_, "capture/7/meta.json", "{}"));
  ASSERT_TRUE(ReplaceWith(*this->files_, "capture/7/meta.json", R"({"step": 7})"));
  ASSERT_TRUE(ReplaceWith(*this->files_, "capture/large name & more", SomeBytes(300'000)));
  EXPECT_EQ(this->Text("values"), "1 2\n");
  EXPECT_EQ(this->Text("capture/7/meta.json"), R"({"step": 7})");
  EXPECT_TRUE(this->Text("capture/large name & more") == SomeBytes(300'000));
  EXPECT_EQ(
      this->files_->List("capture").value(),
      (std::vector<JobEntry>{{"capture/7/meta.json", 11}, {"capture/large name & more", 300'000}}));
  EXPECT_EQ(ReadText(*this->files_, "values", 3).error().code, ErrorCode::kInvalid);
}

TYPED_TEST_P(JobFilesConformance, AnAppendMayBeRepeatedAndLeavesNoGap) {
  const std::string name = "events/train/x.tfevents";
  EXPECT_EQ(this->files_->Append(name, 3, "x").error().code, ErrorCode::kConflict);
  EXPECT_EQ(this->files_->Append(name, 0, "abc").value(), 3u);
  EXPECT_EQ(this->files_->Append(name, 3, "def").value(), 6u);
  EXPECT_EQ(this->files_->Append(name, 3, "def").value(), 6u);
  EXPECT_EQ(this->files_->Append(name, 8, "x").error().code, ErrorCode::kConflict);
  EXPECT_EQ(this->Text(name), "abcdef");
  EXPECT_EQ(this->files_->Append(name, 2, "C").value(), 3u);
  EXPECT_EQ(this->files_->Append(name, 3, "").value(), 3u);
  EXPECT_EQ(this->Text(name), "abC");
}

TYPED_TEST_P(JobFilesConformance, RemovesFilesAndFoldersAndMayBeRepeated) {
  for (const char* name : {"capture/1/a", "capture/1/b", "capture/2/a", "stacks/1"}) {
    ASSERT_TRUE(ReplaceWith(*this->files_, name, name));
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(this->files_->Remove("capture/1"));
    EXPECT_TRUE(this->files_->Remove("stacks/1"));
    EXPECT_TRUE(this->files_->Remove("members/none/here"));
  }
  EXPECT_EQ(this->Names("capture"), std::vector<std::string>{"capture/2/a"});
  EXPECT_TRUE(this->files_->Remove("capture"));
  EXPECT_TRUE(this->Names("capture").empty());
  EXPECT_TRUE(this->Names("stacks").empty());
}

TYPED_TEST_P(JobFilesConformance, NothingOutsideOfTheJobsEntriesCanBeReached) {
  const std::string mine = this->maker_.folders.options().job_dir;
  ASSERT_TRUE(ReplaceFile(this->maker_.folders.root + "/secret", "secret"));
  ASSERT_TRUE(MakeDirs(mine + "/events"));
  ASSERT_TRUE(MakeDirs(mine + "/manifests"));
  ASSERT_TRUE(ReplaceFile(mine + "/manifests/fence", "1 0-0\n"));
  ASSERT_EQ(::symlink("../../../secret", (mine + "/events/link").c_str()), 0);
  ASSERT_EQ(::symlink("../../..", (mine + "/events/up").c_str()), 0);
  for (const char* name : {"", ".", "..", "/etc/passwd", "../../secret", "events/../../../secret",
                           "events/link", "events/up/secret", "secret", "parts/x", "put",
                           "earlier/events/x", "earlier/../../secret", "events/.part-x"}) {
    EXPECT_FALSE(this->files_->Read(name)) << name;
    EXPECT_FALSE(ReplaceWith(*this->files_, JoinPath(name, "deep"), "x")) << name;
    EXPECT_FALSE(this->files_->Append(JoinPath(name, "deep"), 0, "x")) << name;
    EXPECT_FALSE(this->files_->List(name).value_or(std::vector<JobEntry>()).size() > 0) << name;
  }
  for (const char* name :
       {"manifests/fence", "manifests/1-1.manifest", "put", "../earlier/values"}) {
    EXPECT_EQ(ReplaceWith(*this->files_, name, "x").error().code,
              name[0] == '.' ? ErrorCode::kInvalid : ErrorCode::kDenied)
        << name;
    EXPECT_FALSE(this->files_->Remove(name)) << name;
  }
  EXPECT_EQ(ReadFile(this->maker_.folders.root + "/secret").value(), "secret");
  EXPECT_EQ(ReadFile(mine + "/manifests/fence").value(), "1 0-0\n");
  EXPECT_TRUE(this->files_->Remove("events"));
  EXPECT_EQ(ReadFile(this->maker_.folders.root + "/secret").value(), "secret");
}

TYPED_TEST_P(JobFilesConformance, ManyThreadsMayUseItAtOnce) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      for (uint32_t round = 0; round < 5; ++round) {
        const std::string bytes = SomeBytes(90'000, 10 * i + round);
        const auto put = this->Put(Shelf::kParts, bytes);
        ASSERT_TRUE(put) << put.error().what;
        EXPECT_TRUE(this->Content(this->files_->Get(Shelf::kParts, put->sha256)) == bytes);
        const auto name = "stacks/" + std::to_string(i);
        ASSERT_TRUE(ReplaceWith(*this->files_, name, bytes));
        EXPECT_TRUE(this->Text(name) == bytes);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(this->Names("stacks").size(), 4u);
}

REGISTER_TYPED_TEST_SUITE_P(JobFilesConformance, ABlobComesBackAsItWasPut,
                            WhoMayStopHasTheSameFiles, APieceOfAFileIsABlob, HasKnowsNameAndSize,
                            ABlobThatIsNotThereIsNotFound, AFileThatBecameShorterIsNotStored,
                            PutGivesUpWhenItIsTold, WhatTheEarlierJobHasIsReadOnly,
                            AnEntryIsReplacedAsAWhole, AnAppendMayBeRepeatedAndLeavesNoGap,
                            RemovesFilesAndFoldersAndMayBeRepeated,
                            NothingOutsideOfTheJobsEntriesCanBeReached, ManyThreadsMayUseItAtOnce);

}  // namespace athanor
