#include "run/mlflow/call_spool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/io/test_dir.h"

namespace athanor {
namespace {

constexpr CallSpool::Limits kSmall{1 << 10, 64 << 10};

std::unique_ptr<CallSpool> OpenIn(const std::string& dir, CallSpool::Limits limits = kSmall) {
  auto spool = CallSpool::Open(dir, limits);
  EXPECT_TRUE(spool) << spool.error().what;
  return std::move(*spool);
}

std::vector<std::string> TakeAll(CallSpool& spool) {
  std::vector<std::string> bodies;
  while (auto call = spool.First()) {
    bodies.push_back(call->body);
    spool.Done(call->seq);
  }
  return bodies;
}

std::vector<std::string> FilesIn(const TestDir& dir) {
  std::vector<std::string> names = *ListDir(dir.path());
  std::erase_if(names, [](const auto& name) { return !name.starts_with("calls."); });
  return names;
}

TEST(CallSpool, GivesCallsBackInOrderAndWhole) {
  const TestDir dir;
  auto spool = OpenIn(dir.path());
  EXPECT_FALSE(spool->First());
  EXPECT_EQ(spool->Append("POST", "/a?b=1", "{\n}").value(), 1u);
  EXPECT_EQ(spool->Append("PATCH", "/c", "").value(), 2u);
  const auto first = spool->First();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->method, "POST");
  EXPECT_EQ(first->target, "/a?b=1");
  EXPECT_EQ(first->body, "{\n}");
  EXPECT_EQ(spool->First()->seq, 1u) << "not done yet";
  spool->Done(1);
  EXPECT_EQ(spool->First()->method, "PATCH");
  spool->Done(2);
  EXPECT_FALSE(spool->First());
}

TEST(CallSpool, GoesOnAfterADeathAndUsesNoNumberTwice) {
  const TestDir dir;
  uint32_t channel = 0;
  {
    auto spool = OpenIn(dir.path());
    channel = spool->channel();
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(spool->Append("POST", "/x", std::to_string(i)));
    for (int i = 0; i < 40; ++i) spool->Done(spool->First()->seq);
  }
  auto spool = OpenIn(dir.path());
  EXPECT_EQ(spool->channel(), channel);
  EXPECT_EQ(spool->last(), 100u);
  EXPECT_EQ(spool->First()->body, "40");
  EXPECT_EQ(TakeAll(*spool).size(), 60u);
  spool.reset();
  spool = OpenIn(dir.path());
  EXPECT_FALSE(spool->First());
  EXPECT_EQ(spool->Append("POST", "/x", "new").value(), 101u);
  EXPECT_EQ(TakeAll(*spool), std::vector<std::string>{"new"});
}

TEST(CallSpool, ShowsWhatWaitsWithoutTakingItAndOfTooMuchTheNewest) {
  const TestDir dir;
  auto spool = OpenIn(dir.path());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(spool->Append("POST", "/x", std::string(100, 'x')));
  for (int i = 0; i < 40; ++i) spool->Done(spool->First()->seq);
  std::vector<uint64_t> shown;
  const auto show = [&](const KeptCall& call) { shown.push_back(call.seq); };
  spool->Show(1 << 20, show);
  ASSERT_EQ(shown.size(), 60u);
  EXPECT_EQ(shown.front(), 41u);
  EXPECT_EQ(shown.back(), 100u);
  shown.clear();
  spool->Show(1'000, show);
  EXPECT_LT(shown.size(), 60u);
  EXPECT_EQ(shown.back(), 100u);
  EXPECT_EQ(TakeAll(*spool).size(), 60u);
}

TEST(CallSpool, DropsFilesThatAreDelivered) {
  const TestDir dir;
  auto spool = OpenIn(dir.path());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(spool->Append("POST", "/x", std::string(100, 'x')));
  EXPECT_GT(FilesIn(dir).size(), 5u);
  EXPECT_EQ(TakeAll(*spool).size(), 100u);
  EXPECT_EQ(FilesIn(dir).size(), 1u);
}

TEST(CallSpool, CutsATornEndAndKeepsWhatWasAcknowledged) {
  const TestDir dir;
  std::string path;
  {
    auto spool = OpenIn(dir.path());
    ASSERT_TRUE(spool->Append("POST", "/x", "one"));
    path = dir / FilesIn(dir).at(0);
  }
  const std::string whole = ReadFile(path).value();
  for (size_t torn = 1; torn < whole.size(); ++torn) {
    ASSERT_TRUE(ReplaceFile(path, whole + whole.substr(0, torn)));
    auto spool = OpenIn(dir.path());
    EXPECT_EQ(spool->lost(), 0u);
    EXPECT_EQ(spool->last(), 1u);
    EXPECT_EQ(spool->First()->body, "one");
    EXPECT_EQ(ReadFile(path).value(), whole);
  }
}

TEST(CallSpool, StepsOverDamageAndCountsIt) {
  const TestDir dir;
  {
    auto spool = OpenIn(dir.path());
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(spool->Append("POST", "/x", std::string(100, 'x')));
  }
  const auto names = FilesIn(dir);
  ASSERT_GE(names.size(), 3u);
  std::string bytes = ReadFile(dir / names[1]).value();
  bytes[30] ^= 1;
  ASSERT_TRUE(ReplaceFile(dir / names[1], bytes));
  auto spool = OpenIn(dir.path());
  EXPECT_EQ(spool->lost(), 1u);
  const auto left = TakeAll(*spool).size();
  EXPECT_GT(left, 10u);
  EXPECT_LT(left, 30u);
}

TEST(CallSpool, RefusesWhatIsTooMuchAndGoesOnOnceThereIsRoom) {
  const TestDir dir;
  auto spool = OpenIn(dir.path());
  Status last = Ok();
  int kept = 0;
  while (last) {
    const auto one = spool->Append("POST", "/x", std::string(1'000, 'x'));
    if (one) ++kept;
    last = one ? Ok() : Status(tl::unexpected(one.error()));
  }
  EXPECT_EQ(last.error().code, ErrorCode::kExhausted);
  EXPECT_GT(kept, 50);
  EXPECT_EQ(TakeAll(*spool).size(), static_cast<size_t>(kept));
  EXPECT_TRUE(spool->Append("POST", "/x", "again"));
}

}  // namespace
}  // namespace athanor
