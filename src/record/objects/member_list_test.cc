#include "record/objects/member_list.h"

#include <gtest/gtest.h>

#include "base/io/files.h"
#include "record/testing.h"

namespace athanor {
namespace {

class MemberList : public ::testing::Test {
 protected:
  void SetUp() override {
    auto blobs = BlobStore::Open(dir_ / "blobs");
    ASSERT_TRUE(blobs);
    blobs_.emplace(std::move(*blobs));
    ASSERT_TRUE(MakeDirs(dir_ / "tree/deep").ok());
    ASSERT_TRUE(ReplaceFile(dir_ / "tree/deep/weights", std::string(1000, 'w')).ok());
    ASSERT_TRUE(ReplaceFile(dir_ / "tree/notes", "n").ok());
    auto writer = blobs_->NewBlob();
    ASSERT_TRUE(writer);
    ASSERT_TRUE(PackTree(dir_ / "tree", writer->fd(), Compression::kGzip, nullptr, &packed_));
    auto ref = writer->Commit();
    ASSERT_TRUE(ref);
    blob_ = ref->sha256;
  }
  std::string list() const { return dir_ / ("members/" + blob_ + ".json"); }

  const ScratchDir dir_;
  std::optional<BlobStore> blobs_;
  std::vector<TarMember> packed_;
  std::string blob_;
  const std::vector<PackedMember> expected_ = {{"deep", 0}, {"deep/weights", 1000}, {"notes", 1}};
};

TEST_F(MemberList, IsToldWithoutTheArchive) {
  ASSERT_TRUE(MakeDirs(dir_ / "members").ok());
  ASSERT_TRUE(
      ReplaceFile(JoinPath(dir_ / "members", MembersName(blob_)), MembersText(packed_)).ok());
  auto empty = BlobStore::Open(dir_ / "empty");
  ASSERT_TRUE(empty);
  const auto members = MembersOf(dir_ / "members", *empty, blob_);
  ASSERT_TRUE(members) << members.error().what;
  EXPECT_EQ(*members, expected_);
}

TEST_F(MemberList, OfAnOlderOutputIsReadFromTheArchiveOnce) {
  EXPECT_EQ(MembersOf(dir_ / "members", *blobs_, blob_).value(), expected_);
  auto empty = BlobStore::Open(dir_ / "empty");
  ASSERT_TRUE(empty);
  EXPECT_EQ(MembersOf(dir_ / "members", *empty, blob_).value(), expected_);
}

TEST_F(MemberList, ThatIsDamagedIsMadeAnew) {
  for (const char* damage : {"", "[", "{}", "[1]", "[[\"a\"]]", "[[\"a\",-1]]", "[[1,\"a\"]]"}) {
    ASSERT_TRUE(MakeDirs(dir_ / "members").ok());
    ASSERT_TRUE(ReplaceFile(list(), damage).ok());
    EXPECT_EQ(MembersOf(dir_ / "members", *blobs_, blob_).value(), expected_) << damage;
  }
}

TEST_F(MemberList, IsNoneOfABlobThatIsGone) {
  const auto none = MembersOf(dir_ / "members", *blobs_, std::string(64, '0'));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace athanor
