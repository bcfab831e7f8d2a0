// What every JobFiles promises of checkpoints; the rest is in job_files_conformance.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "link/job_files_conformance.h"

namespace athanor {

template <class Maker>
class JobCheckpointsConformance : public JobFilesConformance<Maker> {
 protected:
  // A checkpoint with one file of several parts, stored.
  CheckpointManifest Manifest(JobFiles& files, const std::string& bytes, int64_t step) {
    CheckpointManifest manifest;
    manifest.part_bytes = 1000;
    manifest.info.step = step;
    manifest.info.at = WallTime{1'700'000'000'000 + step};
    CheckpointFile file{"model.pt", bytes.size(), 0644, 17, "", {}};
    const auto fd = FileOf(this->dir_, bytes);
    for (size_t i = 0; i < PartCount(bytes.size(), 1000); ++i) {
      const auto part =
          files.Put(Shelf::kParts, fd.get(), i * 1000, PartSize(bytes.size(), 1000, i), {});
      EXPECT_TRUE(part) << part.error().what;
      if (part) file.parts.push_back(part->sha256);
    }
    manifest.files = {file};
    return manifest;
  }
  std::vector<std::string> Checkpoints() {
    std::vector<std::string> ids;
    std::string before;
    for (;;) {
      const auto found = NewestCheckpoint(*this->files_, "manifests", before, "").value();
      if (!found.manifest) return ids;
      ids.push_back(before = found.manifest->info.id);
    }
  }
};

TYPED_TEST_SUITE_P(JobCheckpointsConformance);

TYPED_TEST_P(JobCheckpointsConformance, ACheckpointIsCommittedOnceHoweverOftenItIsSaid) {
  ASSERT_TRUE(this->files_->Tend({}));
  const auto manifest = this->Manifest(*this->files_, SomeBytes(2500), 10);
  const auto info = this->files_->Commit(manifest);
  ASSERT_TRUE(info) << info.error().what;
  EXPECT_EQ(info->id, "1-1");
  EXPECT_EQ(info->files, 1u);
  EXPECT_EQ(info->bytes, 2500u);
  EXPECT_EQ(this->files_->Commit(manifest).value(), *info);
  const auto loaded = LoadCheckpoint(*this->files_, "manifests", "1-1");
  ASSERT_TRUE(loaded) << loaded.error().what;
  EXPECT_EQ(loaded->files, manifest.files);
  EXPECT_EQ(this->files_->Commit(this->Manifest(*this->files_, SomeBytes(2600), 11))->id, "1-2");
  EXPECT_EQ(this->Checkpoints(), (std::vector<std::string>{"1-2", "1-1"}));
  EXPECT_EQ(LoadCheckpoint(*this->files_, "manifests", "1-3").error().code, ErrorCode::kNotFound);
}

TYPED_TEST_P(JobCheckpointsConformance, ACheckpointWithoutItsPartsIsRefusedAndPassedOver) {
  ASSERT_TRUE(this->files_->Tend({}));
  auto manifest = this->Manifest(*this->files_, SomeBytes(2500), 10);
  ASSERT_TRUE(this->files_->Commit(manifest));
  auto next = this->Manifest(*this->files_, SomeBytes(3500, 2), 11);
  ASSERT_TRUE(this->files_->Commit(next));
  auto missing = next;
  missing.info.at = WallTime{5};
  missing.files[0].parts[1] = Sha256Hex("never stored");
  EXPECT_EQ(this->files_->Commit(missing).error().code, ErrorCode::kNotFound);
  const auto parts = BlobStore::Open(this->maker_.folders.options().job_dir + "/parts").value();
  ASSERT_TRUE(parts.Remove(next.files[0].parts[2]));
  const auto found = NewestCheckpoint(*this->files_, "manifests", "", "");
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_EQ(found->manifest->info.id, "1-1");
  ASSERT_EQ(found->passed_over.size(), 1u);
  EXPECT_EQ(found->passed_over[0].id, "1-2");
}

TYPED_TEST_P(JobCheckpointsConformance, AnAttemptThatWasReplacedCommitsNothingMore) {
  ASSERT_TRUE(this->files_->Tend({}));
  const auto manifest = this->Manifest(*this->files_, SomeBytes(2500), 10);
  ASSERT_TRUE(this->files_->Commit(manifest));
  const auto second = this->maker_.Open(2);
  ASSERT_TRUE(second->Tend({}));
  const auto first = this->maker_.Open(1);
  EXPECT_EQ(first->Commit(this->Manifest(*first, SomeBytes(900), 20)).error().code,
            ErrorCode::kConflict);
  EXPECT_EQ(first->Tend({}).error().code, ErrorCode::kConflict);
  EXPECT_EQ(this->maker_.Open(2)->Commit(manifest)->id, "2-1");
}

TYPED_TEST_P(JobCheckpointsConformance, KeepsWhatIsToBeKept) {
  ASSERT_TRUE(this->files_->Tend({}));
  const std::map<int64_t, double> loss = {{1, 0.5}, {2, 0.1}, {3, 0.9}, {4, 0.7}};
  for (const auto& [step, value] : loss) {
    ASSERT_TRUE(this->files_->Commit(
        this->Manifest(*this->files_, SomeBytes(1500, static_cast<uint32_t>(step)), step)));
  }
  CheckpointSpec keep;
  keep.keep_last = 1;
  keep.keep_best = 1;
  CheckpointCare care;
  care.keep = &keep;
  care.value_of = [&](int64_t step) { return std::optional(loss.at(step)); };
  ASSERT_TRUE(this->files_->Tend(care));
  EXPECT_EQ(this->Checkpoints(), (std::vector<std::string>{"1-4", "1-2"}));
  const auto half = this->Put(Shelf::kParts, "half stored").value();
  const auto begun = this->Put(Shelf::kParts, "begun").value();
  CheckpointCare drop;
  drop.needed = std::set<std::string>{begun.sha256};
  ASSERT_TRUE(this->files_->Tend(drop));
  EXPECT_EQ(this->files_->Has(Shelf::kParts, {half, begun}).value(),
            (std::vector<bool>{false, true}));
  EXPECT_EQ(this->Checkpoints().size(), 2u);
}

REGISTER_TYPED_TEST_SUITE_P(JobCheckpointsConformance,
                            ACheckpointIsCommittedOnceHoweverOftenItIsSaid,
                            ACheckpointWithoutItsPartsIsRefusedAndPassedOver,
                            AnAttemptThatWasReplacedCommitsNothingMore, KeepsWhatIsToBeKept);

}  // namespace athanor
