#include "record/keys/access_keys.h"

#include <gtest/gtest.h>

#include "record/keys/secret_store.h"
#include "record/testing.h"

namespace athanor {
namespace {

class AccessKeysTest : public ::testing::Test {
 protected:
  void SetUp() override {
    database_ = OpenStore(dir_ / "a.db");
    secrets_ = SecretStore::Open(*database_, dir_ / "secret.key").value();
    keys_ = std::make_unique<AccessKeys>(*database_, *secrets_);
  }

  const ScratchDir dir_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<SecretStore> secrets_;
  std::unique_ptr<AccessKeys> keys_;
  const WallTime now_{1'700'000'000'000};
};

TEST_F(AccessKeysTest, TheSecretComesBackAlsoAfterReopening) {
  const auto made = keys_->Create("laptop", Scope::kSubmit, now_, {}).value();
  EXPECT_EQ(made.info.id.size(), 20u);
  EXPECT_EQ(made.secret.size(), 40u);
  keys_.reset();
  secrets_.reset();
  database_.reset();
  SetUp();
  const auto found = keys_->Find(made.info.id, now_).value();
  EXPECT_EQ(found.secret, made.secret);
  EXPECT_EQ(found.info.scope, Scope::kSubmit);
  EXPECT_EQ(found.info.note, "laptop");
  EXPECT_NE(keys_->Create("laptop", Scope::kSubmit, now_, {})->secret, made.secret);
}

// Planted bug: bind the plain secret instead of the sealed one.
TEST_F(AccessKeysTest, TheSecretIsNowhereInTheFiles) {
  const auto made = keys_->Create("laptop", Scope::kRead, now_, {}).value();
  for (const char* name : {"a.db", "a.db-wal"}) {
    EXPECT_EQ(ReadFile(dir_ / name).value().find(made.secret), std::string::npos) << name;
  }
  EXPECT_NE(ReadFile(dir_ / "a.db-wal")->find(made.info.id), std::string::npos);
}

// Planted bug: seal without the id, and the sealed text of one key opens another.
TEST_F(AccessKeysTest, ASealedSecretBelongsToItsId) {
  const auto one = keys_->Create("one", Scope::kRead, now_, {}).value();
  const auto two = keys_->Create("two", Scope::kAdmin, now_, {}).value();
  ASSERT_TRUE(database_
                  ->Write([&](Connection& connection) {
                    return connection.Execute(
                        "UPDATE access_keys SET sealed = (SELECT sealed FROM access_keys WHERE "
                        "note = 'one') WHERE note = 'two'");
                  })
                  .ok());
  EXPECT_EQ(keys_->Find(two.info.id, now_).error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(keys_->Find(one.info.id, now_));
}

TEST_F(AccessKeysTest, UnknownRevokedAndExpiredOnesDoNotVerify) {
  const auto revoked = keys_->Create("", Scope::kRead, now_, {}).value();
  const auto expiring = keys_->Create("", Scope::kRead, now_, WallTime{now_.ms + 1000}).value();
  ASSERT_TRUE(keys_->Revoke(revoked.info.id).ok());
  EXPECT_EQ(keys_->Find(revoked.info.id, now_).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(keys_->Find("nobody", now_).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(keys_->Find(expiring.info.id, WallTime{now_.ms + 999}));
  EXPECT_EQ(keys_->Find(expiring.info.id, WallTime{now_.ms + 1000}).error().code,
            ErrorCode::kDenied);
  EXPECT_EQ(keys_->List()->size(), 2u);
  EXPECT_FALSE(keys_->Revoke("nobody").ok());
  EXPECT_FALSE(keys_->Create("late", Scope::kRead, now_, now_));
}

// Planted bug: do not Forget() what was opened.
TEST_F(AccessKeysTest, OneThatWasUsedBeforeIsRevokedAndExpiresToo) {
  const auto one = keys_->Create("", Scope::kRead, now_, WallTime{now_.ms + 1000}).value();
  const auto other = keys_->Create("", Scope::kSubmit, now_, {}).value();
  ASSERT_EQ(keys_->Find(one.info.id, now_)->secret, one.secret);
  ASSERT_EQ(keys_->Find(one.info.id, now_)->secret, one.secret);
  EXPECT_EQ(keys_->Find(one.info.id, WallTime{now_.ms + 1000}).error().code, ErrorCode::kDenied);
  ASSERT_TRUE(keys_->Revoke(one.info.id).ok());
  EXPECT_EQ(keys_->Find(one.info.id, now_).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(keys_->Find(other.info.id, now_));
}

// Planted bug: look only at the secrets when the key file is gone.
TEST_F(AccessKeysTest, ALostKeyFileIsNotSilentlyMadeAnew) {
  ASSERT_TRUE(keys_->Create("", Scope::kRead, now_, {}));
  keys_.reset();
  secrets_.reset();
  ASSERT_EQ(::unlink((dir_ / "secret.key").c_str()), 0);
  EXPECT_EQ(SecretStore::Open(*database_, dir_ / "secret.key").error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace athanor
