#include "record/keys/token_store.h"

#include <gtest/gtest.h>

#include "record/db/fault_vfs.h"
#include "record/testing.h"

namespace athanor {
namespace {

class TokenStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    database_ = OpenStore(dir_ / "a.db");
    ASSERT_NE(database_, nullptr);
    store_ = std::make_unique<TokenStore>(*database_);
  }
  TokenStore::NewToken Make(Scope scope = Scope::kSubmit, WallTime expires = {},
                            std::string bound = {}) {
    auto made = store_->Create("laptop", scope, now_, expires, std::move(bound));
    EXPECT_TRUE(made) << made.error().what;
    return made.value();
  }

  const ScratchDir dir_;
  FaultVfs vfs_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<TokenStore> store_;
  WallTime now_{1'700'000'000'000};
};

WallTime Later(WallTime time, int64_t ms) { return WallTime{time.ms + ms}; }

TEST_F(TokenStoreTest, ANewTokenVerifiesAlsoAfterReopening) {
  const auto made = Make();
  EXPECT_TRUE(made.text.starts_with("ath_" + made.info.id + "_"));
  EXPECT_EQ(store_->Verify(made.text, now_).value().scope, Scope::kSubmit);
  store_.reset();
  database_.reset();
  SetUp();
  const auto info = store_->Verify(made.text, now_).value();
  EXPECT_EQ(info.id, made.info.id);
  EXPECT_EQ(info.note, "laptop");
}

// Planted bug: compare only the first bytes of the digests, or accept an unknown id whose
// stored digest is empty.
TEST_F(TokenStoreTest, AnythingElseIsDeniedWithTheSameWords) {
  const auto made = Make();
  const auto other = Make();
  std::vector<std::string> wrong = {"",
                                    "ath_",
                                    "ath__",
                                    made.text + "0",
                                    made.text.substr(1),
                                    made.text.substr(0, made.text.size() - 1),
                                    std::string(100'000, 'a'),
                                    std::string(made.text.size(), '_')};
  for (size_t i = 0; i < made.text.size(); ++i) {
    std::string changed = made.text;
    changed[i] = changed[i] == '0' ? '1' : '0';
    wrong.push_back(changed);
  }
  // The id of one with the secret of another.
  wrong.push_back(made.text.substr(0, 17) + other.text.substr(17));
  const auto expired = Make(Scope::kAdmin, Later(now_, 1'000));
  const auto revoked = Make();
  ASSERT_TRUE(store_->Revoke(revoked.info.id).ok());
  wrong.push_back(revoked.text);

  const Error words = store_->Verify(expired.text, Later(now_, 1'000)).error();
  EXPECT_EQ(words.code, ErrorCode::kDenied);
  EXPECT_FALSE(words.hint.empty());
  for (const auto& text : wrong) {
    const auto denied = store_->Verify(text, now_);
    ASSERT_FALSE(denied) << text;
    EXPECT_EQ(denied.error(), words) << text;
  }
  EXPECT_TRUE(store_->Verify(expired.text, Later(now_, 999)));
}

TEST_F(TokenStoreTest, TheSecretIsNowhereInTheFiles) {
  const auto made = Make();
  const std::string secret = made.text.substr(17);
  for (const char* name : {"a.db", "a.db-wal"}) {
    const auto bytes = ReadFile(dir_ / name);
    ASSERT_TRUE(bytes) << name;
    EXPECT_EQ(bytes->find(secret), std::string::npos) << name;
  }
  // The search works: the id is there.
  EXPECT_NE(ReadFile(dir_ / "a.db-wal")->find(made.info.id), std::string::npos);
}

TEST_F(TokenStoreTest, LastUseIsWrittenAtMostOnceAMinute) {
  const auto made = Make();
  const auto last_used = [&] { return store_->List().value().at(0).last_used; };
  EXPECT_EQ(last_used(), WallTime{});
  ASSERT_TRUE(store_->Verify(made.text, now_));
  EXPECT_EQ(last_used(), now_);
  vfs_.Heal();
  for (int64_t ms : {1, 1'000, 59'999}) ASSERT_TRUE(store_->Verify(made.text, Later(now_, ms)));
  EXPECT_EQ(vfs_.changes(), 0);
  EXPECT_EQ(last_used(), now_);
  ASSERT_TRUE(store_->Verify(made.text, Later(now_, 60'000)));
  EXPECT_EQ(last_used(), Later(now_, 60'000));
}

// Planted bug: return the error of writing last_used, and a full disk locks everyone out.
TEST_F(TokenStoreTest, AFullDiskDoesNotLockPeopleOut) {
  const auto made = Make();
  vfs_.FailAt(0, FaultVfs::Fault::kFull, true);
  EXPECT_TRUE(store_->Verify(made.text, now_));
  EXPECT_TRUE(vfs_.failed());
  vfs_.FailAt(0, FaultVfs::Fault::kFull, true);
  EXPECT_TRUE(store_->Verify(made.text, Later(now_, 1'000)));
  EXPECT_FALSE(vfs_.failed()) << "tried again within the minute";
  vfs_.Heal();
}

TEST_F(TokenStoreTest, TokensOfAnAttemptGoWithIt) {
  const auto first = Make(Scope::kIngest, {}, "attempt-1");
  const auto second = Make(Scope::kIngest, {}, "attempt-2");
  const auto unbound = Make();
  EXPECT_EQ(store_->Verify(first.text, now_).value().bound, "attempt-1");
  ASSERT_TRUE(store_->RevokeBound("attempt-1").ok());
  EXPECT_FALSE(store_->Verify(first.text, now_));
  EXPECT_TRUE(store_->Verify(second.text, now_));
  EXPECT_TRUE(store_->Verify(unbound.text, now_));
  EXPECT_EQ(store_->List().value().size(), 2u);
  EXPECT_TRUE(store_->RevokeBound("attempt-1").ok());
  EXPECT_FALSE(store_->RevokeBound("").ok());
  EXPECT_EQ(store_->List().value().size(), 2u);
}

TEST_F(TokenStoreTest, RevokingKeepsTheTokenListed) {
  const auto made = Make();
  ASSERT_TRUE(store_->Revoke(made.info.id).ok());
  const auto listed = store_->List().value();
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_TRUE(listed[0].revoked);
  const Status unknown = store_->Revoke("nobody");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
}

TEST_F(TokenStoreTest, BadNotesAndPastExpiriesAreRefused) {
  EXPECT_FALSE(store_->Create(std::string(300, 'x'), Scope::kRead, now_, {}));
  EXPECT_FALSE(store_->Create("a\x1b[2Jb", Scope::kRead, now_, {}));
  EXPECT_FALSE(store_->Create("late", Scope::kRead, now_, now_));
  EXPECT_TRUE(store_->List().value().empty());
}

TEST(Scopes, EachCoversExactlyWhatItSays) {
  using enum Scope;
  const Scope all[] = {kRead, kSubmit, kAdmin, kIngest};
  const bool covers[4][4] = {{true, false, false, false},
                             {true, true, false, false},
                             {true, true, true, false},
                             {false, false, false, true}};
  for (int held = 0; held < 4; ++held) {
    EXPECT_EQ(ScopeNamed(NameOf(all[held])), all[held]);
    for (int needed = 0; needed < 4; ++needed) {
      EXPECT_EQ(Covers(all[held], all[needed]), covers[held][needed])
          << NameOf(all[held]) << " for " << NameOf(all[needed]);
    }
  }
  EXPECT_EQ(ScopeNamed("root"), std::nullopt);
}

}  // namespace
}  // namespace athanor
