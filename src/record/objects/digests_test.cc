#include "record/objects/digests.h"

#include <gtest/gtest.h>

#include "base/text/text.h"

namespace athanor {
namespace {

// The check values of the CRC catalogue and of the hashes' standards.
TEST(ObjectDigests, AreTheStandardOnes) {
  EXPECT_EQ(Hex(Md5("abc")), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(Hex(Checksum(ChecksumKind::kCrc32, "123456789")), "cbf43926");
  EXPECT_EQ(Hex(Checksum(ChecksumKind::kCrc32c, "123456789")), "e3069283");
  EXPECT_EQ(Hex(Checksum(ChecksumKind::kCrc64Nvme, "123456789")), "ae8b14860a799888");
  EXPECT_EQ(Hex(Checksum(ChecksumKind::kSha1, "abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(Hex(Checksum(ChecksumKind::kSha256, "abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(ObjectDigests, OnePassGivesAllWhateverTheCuts) {
  const std::string text(1000, 'x');
  for (const auto kind : {ChecksumKind::kCrc32, ChecksumKind::kCrc32c, ChecksumKind::kCrc64Nvme,
                          ChecksumKind::kSha1, ChecksumKind::kSha256}) {
    EXPECT_EQ(ChecksumNamed(ToLower(NameOf(kind))), kind);
    for (const size_t step : {size_t{1}, size_t{7}, size_t{1000}}) {
      Digester digester({true, kind});
      for (size_t at = 0; at < text.size(); at += step) digester.Update(text.substr(at, step));
      const auto made = digester.Finish();
      EXPECT_EQ(made.md5, Md5(text));
      EXPECT_EQ(made.sha256, Hex(Checksum(ChecksumKind::kSha256, text)));
      EXPECT_EQ(made.checksum, Checksum(kind, text)) << NameOf(kind) << " by " << step;
    }
  }
  EXPECT_EQ(ChecksumNamed("md4"), std::nullopt);
}

// Planted bug: shift by bits instead of bytes.
TEST(ObjectDigests, CombinedCrcsEqualTheCrcOfTheWhole) {
  const std::string first = "the first part, of some length";
  for (const size_t size : {size_t{0}, size_t{1}, size_t{13}, size_t{100'003}}) {
    const std::string second(size, 'q');
    for (const auto kind :
         {ChecksumKind::kCrc32, ChecksumKind::kCrc32c, ChecksumKind::kCrc64Nvme}) {
      EXPECT_EQ(CombineCrc(kind, Checksum(kind, first), Checksum(kind, second), size),
                Checksum(kind, first + second))
          << NameOf(kind) << " of " << size;
    }
  }
  EXPECT_EQ(CombineCrc(ChecksumKind::kSha1, "a", "b", 1), "");
}

}  // namespace
}  // namespace athanor
