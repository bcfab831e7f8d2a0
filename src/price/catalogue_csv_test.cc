#include "price/catalogue_csv.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

std::string WithHeader(std::string_view rows) {
  return std::string(kCatalogueHeader) + "\n" + std::string(rows);
}

TEST(CatalogueCsv, ReadsRowsCommentsEmptyLinesAndEitherLineEnd) {
  const auto file = ParseCatalogueCsv(
      "# as_of: 2026-08-22\r\n\r\n" + std::string(kCatalogueHeader) +
          "\r\n# a note\na.b,0.5,1.5,,,,0.000001,\r\nc-d_1,4.0,16.0,T4,1.0,16.0,0.5,0.25",
      "types.csv");
  ASSERT_TRUE(file) << file.error().what;
  EXPECT_EQ(file->as_of, "2026-08-22");
  ASSERT_EQ(file->types.size(), 2u);
  EXPECT_EQ(file->types[0].cpu_millis, 500u);
  EXPECT_EQ(file->types[0].memory_bytes, 3ull << 29);
  EXPECT_EQ(file->types[0].on_demand_micros, 1);
  EXPECT_FALSE(file->types[0].spot_micros);
  EXPECT_EQ(file->types[1].gpus, 1u);
  EXPECT_EQ(file->types[1].spot_micros, 250'000);
}

TEST(CatalogueCsv, RefusesEveryBadRowWithItsLine) {
  const struct {
    const char* row;
    const char* says;
  } cases[] = {
      {"a,1,1,,,,1", "8 columns"},
      {"a,1,1,,,,1,1,1", "8 columns"},
      {"A,1,1,,,,1,1", "name"},
      {"../x,1,1,,,,1,1", "name"},
      {",1,1,,,,1,1", "name"},
      {"a,0,1,,,,1,1", "cpus"},
      {"a,-1,1,,,,1,1", "cpus"},
      {"a,1e3,1,,,,1,1", "cpus"},
      {"a,1.0005,1,,,,1,1", "cpus"},
      {"a, 1,1,,,,1,1", "cpus"},
      {"a,100001,1,,,,1,1", "cpus"},
      {"a,99999999999999999999,1,,,,1,1", "cpus"},
      {"a,1,0,,,,1,1", "memory_gib"},
      {"a,1,nan,,,,1,1", "memory_gib"},
      {"a,1,1,,2,,1,1", "gpu"},
      {"a,1,1,T4,0.5,16,1,1", "gpu_count"},
      {"a,1,1,T4,,16,1,1", "gpu_count"},
      {"a,1,1,T4,1,x,1,1", "gpu_mem_gib"},
      {"a,1,1,\"T4\",1,16,1,1", "gpu"},
      {"a,1,1,,,,,1", "price_od"},
      {"a,1,1,,,,0.1234567,1", "price_od"},
      {"a,1,1,,,,1.,1", "price_od"},
      {"a,1,1,,,,1,$1", "price_spot_mean"},
      {"ok,1,1,,,,1,1", "twice"},
  };
  for (const auto& c : cases) {
    const auto file =
        ParseCatalogueCsv(WithHeader("ok,1,1,,,,1,1\n" + std::string(c.row)), "t.csv");
    ASSERT_FALSE(file) << c.row;
    EXPECT_EQ(file.error().code, ErrorCode::kInvalid);
    EXPECT_NE(file.error().what.find(c.says), std::string::npos)
        << c.row << ": " << file.error().what;
    EXPECT_EQ(file.error().where, "t.csv:3") << c.row;
    EXPECT_FALSE(file.error().hint.empty());
  }
}

TEST(CatalogueCsv, RefusesAFileWithoutItsHeader) {
  EXPECT_FALSE(ParseCatalogueCsv("", "t.csv"));
  EXPECT_FALSE(ParseCatalogueCsv("# only a note\n", "t.csv"));
  const auto other = ParseCatalogueCsv("\nname,cpus\na,1\n", "t.csv");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().where, "t.csv:2");
}

}  // namespace
}  // namespace athanor
