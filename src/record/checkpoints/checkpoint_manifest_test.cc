#include "record/checkpoints/checkpoint_manifest.h"

#include <gtest/gtest.h>

#include "base/io/hash.h"
#include "base/text/text.h"

namespace athanor {
namespace {

CheckpointManifest Sample() {
  CheckpointManifest manifest;
  manifest.info = CheckpointInfo{"2-7", 2, 120, 4, 2'500, 1'000, {1'700'000'000'123}, 5, 6, 7};
  manifest.part_bytes = 1'000;
  manifest.files = {
      {"a \"quoted\"\n.pt",
       2'500,
       0640,
       -5,
       {},
       {std::string(64, 'a'), std::string(64, 'b'), std::string(64, 'c')}},
      {"empty", 0, 0600, 1'700'000'000'123'456'789, {}, {}},
      {"latest", 0, 0, 9, "sub/step_120.pt", {}},
      {"sub/not-utf8-\xff", 0, 0755, 0, {}, {}},
  };
  return manifest;
}

TEST(CheckpointManifest, ReadsBackWhatItWrote) {
  const auto read = ParseManifest(FormatManifest(Sample()));
  ASSERT_TRUE(read) << read.error().why;
  EXPECT_EQ(*read, Sample());
  CheckpointManifest shared = Sample();
  shared.shared = true;
  shared.info.step.reset();
  EXPECT_EQ(ParseManifest(FormatManifest(shared)).value(), shared);
}

TEST(CheckpointManifest, AnyCutAndAnyChangedByteIsDamage) {
  const std::string text = FormatManifest(Sample());
  for (size_t length = 0; length < text.size(); ++length) {
    const auto cut = ParseManifest(std::string_view(text).substr(0, length));
    ASSERT_FALSE(cut) << length;
    ASSERT_EQ(cut.error().code, ErrorCode::kCorrupt) << length;
  }
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    ASSERT_FALSE(ParseManifest(changed)) << at;
  }
  EXPECT_FALSE(ParseManifest(text + "\n"));
  EXPECT_FALSE(ParseManifest(text + std::string(4096, '\0')));
}

TEST(CheckpointManifest, ANewerVersionIsNotCalledDamaged) {
  const std::string body = "{\"other\":1}\n";
  const auto read = ParseManifest("athanor-checkpoint 2 " + Sha256Hex(body) + "\n" + body);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(read.error().hint.empty());
}

TEST(CheckpointManifest, RefusesWhatCannotLieBeneathOneFolder) {
  const auto refused = [](const auto& change) {
    CheckpointManifest manifest = Sample();
    change(manifest.files);
    return !CheckManifest(manifest).ok() && !ParseManifest(FormatManifest(manifest));
  };
  ASSERT_TRUE(CheckManifest(Sample()).ok());
  using Files = std::vector<CheckpointFile>;
  EXPECT_TRUE(refused([](Files& files) { files[0].name = "../a"; }));
  EXPECT_TRUE(refused([](Files& files) { files[0].name = "/a"; }));
  EXPECT_TRUE(refused([](Files& files) { files[1].name = files[0].name; }));
  EXPECT_TRUE(refused([](Files& files) { std::swap(files[0], files[1]); }));
  EXPECT_TRUE(refused([](Files& files) { files[2].link = "../out"; }));
  EXPECT_TRUE(refused([](Files& files) { files[2].link = "/etc/passwd"; }));
  EXPECT_TRUE(refused([](Files& files) { files[0].mode = 04755; }));
  EXPECT_TRUE(refused([](Files& files) { files[0].parts.pop_back(); }));
  EXPECT_TRUE(refused([](Files& files) { files[0].parts[1] = "../../../etc/passwd"; }));
  EXPECT_TRUE(refused([](Files& files) { files[0].size = UINT64_MAX; }));
  EXPECT_TRUE(refused([](Files& files) {
    files.push_back({"sub/not-utf8-\xff/below", 0, 0600, 0, {}, {}});
  }));
}

TEST(CheckpointId, OrdersByNumbersAndHasOneForm) {
  EXPECT_EQ(CheckpointId::Parse("12-305").value(), (CheckpointId{12, 305}));
  EXPECT_LT(CheckpointId::Parse("2-9").value(), CheckpointId::Parse("2-10").value());
  EXPECT_LT(CheckpointId::Parse("9-10").value(), CheckpointId::Parse("10-1").value());
  for (const char* text : {"", "-", "1-", "-1", "1-01", "0-1", "1-0", "1-2-3", "1--2", "+1-2",
                           "1-2 ", "4294967296-1", "../1-1"}) {
    const auto id = CheckpointId::Parse(text);
    ASSERT_FALSE(id) << text;
    EXPECT_EQ(id.error().code, ErrorCode::kInvalid);
  }
}

}  // namespace
}  // namespace athanor
