#include "record/keys/secret_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/text/text.h"
#include "record/testing.h"

namespace athanor {
namespace {

class SecretStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    database_ = OpenStore(dir_ / "a.db");
    ASSERT_NE(database_, nullptr);
    store_ = Reopen();
  }
  std::unique_ptr<SecretStore> Reopen() {
    auto store = SecretStore::Open(*database_, key_file_);
    EXPECT_TRUE(store) << store.error().what;
    return store ? std::move(*store) : nullptr;
  }
  // Every byte the database has on the disk.
  std::string Disk() {
    return ReadFile(dir_ / "a.db").value_or("") + ReadFile(dir_ / "a.db-wal").value_or("");
  }
  void Execute(const std::string& sql) {
    ASSERT_TRUE(database_->Write([&](Connection& c) { return c.Execute(sql); }).ok());
  }

  const ScratchDir dir_;
  const std::string key_file_ = dir_ / "secret.key";
  std::unique_ptr<Database> database_;
  std::unique_ptr<SecretStore> store_;
  const WallTime now_{1'700'000'000'000};
};

TEST_F(SecretStoreTest, AValueComesBackAlsoAfterReopening) {
  const std::string value = "p\xc3\xa4ss word\n'\"$\xff";
  ASSERT_TRUE(store_->Set("DB_PASSWORD", value, now_).ok());
  EXPECT_EQ(store_->Reveal("DB_PASSWORD").value(), value);
  store_ = Reopen();
  EXPECT_EQ(store_->Reveal("DB_PASSWORD").value(), value);
  const std::string large(64 * 1024, 'x');
  ASSERT_TRUE(store_->Set("LARGE", large, now_).ok());
  EXPECT_EQ(store_->Reveal("LARGE").value(), large);
}

TEST_F(SecretStoreTest, SettingAgainReplacesTheValueAndKeepsTheBirth) {
  ASSERT_TRUE(store_->Set("TOKEN", "first-value", now_).ok());
  ASSERT_TRUE(store_->Set("TOKEN", "second-value", WallTime{now_.ms + 5}).ok());
  EXPECT_EQ(store_->Reveal("TOKEN").value(), "second-value");
  const auto listed = store_->List().value();
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].name, "TOKEN");
  EXPECT_EQ(listed[0].created, now_);
  EXPECT_EQ(listed[0].updated.ms, now_.ms + 5);
}

TEST_F(SecretStoreTest, ARemovedSecretIsGone) {
  ASSERT_TRUE(store_->Set("TOKEN", "some-value", now_).ok());
  EXPECT_TRUE(store_->Has("TOKEN"));
  ASSERT_TRUE(store_->Remove("TOKEN").ok());
  EXPECT_FALSE(store_->Has("TOKEN"));
  EXPECT_EQ(store_->Reveal("TOKEN").error().code, ErrorCode::kNotFound);
  const Status again = store_->Remove("TOKEN");
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kNotFound);
}

// Planted bug: store the value (or its base64) instead of what Seal returned.
TEST_F(SecretStoreTest, ACanaryIsNowhereOnTheDisk) {
  const std::string canary = "canary-7f3a9c51d2e84b60";
  ASSERT_TRUE(store_->Set("CANARY_NAME", canary, now_).ok());
  for (const std::string& form : {canary, Base64(canary), Hex(canary), UrlEncode(canary)}) {
    EXPECT_EQ(Disk().find(form), std::string::npos) << form;
  }
  EXPECT_NE(Disk().find("CANARY_NAME"), std::string::npos) << "the search itself is broken";
}

TEST_F(SecretStoreTest, EqualValuesAreNotEqualOnTheDisk) {
  ASSERT_TRUE(store_->Set("A", "the-same-value", now_).ok());
  ASSERT_TRUE(store_->Set("B", "the-same-value", now_).ok());
  std::vector<std::string> sealed;
  ASSERT_TRUE(database_
                  ->Read([&](Connection& c) -> Status {
                    ATHANOR_TRY(auto* statement, c.Prepare("SELECT sealed FROM secrets"));
                    while (true) {
                      ATHANOR_TRY(const bool row, statement->Step());
                      if (!row) return Ok();
                      sealed.emplace_back(statement->Text(0));
                    }
                  })
                  .ok());
  ASSERT_EQ(sealed.size(), 2u);
  EXPECT_NE(sealed[0], sealed[1]);
  EXPECT_NE(sealed[0].substr(0, 16), sealed[1].substr(0, 16)) << "a nonce was used twice";
}

// Planted bug: leave the name out of the associated data, and anyone who can write the database can
// give one job the secret of another.
TEST_F(SecretStoreTest, ASecretMovedToAnotherNameDoesNotOpen) {
  ASSERT_TRUE(store_->Set("MINE", "value-of-mine", now_).ok());
  Execute("UPDATE secrets SET name = 'YOURS'");
  EXPECT_EQ(store_->Reveal("YOURS").error().code, ErrorCode::kCorrupt);
}

// Planted bug: leave out EVP_CTRL_GCM_SET_TAG's check, and a flipped bit is a wrong password.
TEST_F(SecretStoreTest, AChangedByteDoesNotOpen) {
  ASSERT_TRUE(store_->Set("TOKEN", "some-value", now_).ok());
  Execute("UPDATE secrets SET sealed = 'AAAA' || substr(sealed, 5)");
  EXPECT_EQ(store_->Reveal("TOKEN").error().code, ErrorCode::kCorrupt);
  for (const char* broken : {"''", "'AAAA'", "'!!!'"}) {
    Execute(std::string("UPDATE secrets SET sealed = ") + broken);
    const auto found = store_->Reveal("TOKEN");
    ASSERT_FALSE(found) << broken;
    EXPECT_EQ(found.error().code, ErrorCode::kCorrupt);
    EXPECT_EQ(found.error().hint, "ath secret set TOKEN");
  }
}

TEST_F(SecretStoreTest, TheKeyFileIsPrivateAndMustStaySo) {
  struct stat status {};
  ASSERT_EQ(::stat(key_file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(::chmod(key_file_.c_str(), 0640), 0);
  const auto refused = SecretStore::Open(*database_, key_file_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kDenied);
  EXPECT_NE(refused.error().hint.find("chmod 600"), std::string::npos);
}

// Planted bug: make a new key whenever the file is missing; all secrets are lost in silence.
TEST_F(SecretStoreTest, ALostKeyFileIsNotReplacedWhileSecretsNeedIt) {
  ASSERT_TRUE(store_->Set("TOKEN", "some-value", now_).ok());
  ASSERT_TRUE(RemoveTree(key_file_).ok());
  const auto refused = SecretStore::Open(*database_, key_file_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(Exists(key_file_));
  ASSERT_TRUE(store_->Remove("TOKEN").ok());
  EXPECT_TRUE(SecretStore::Open(*database_, key_file_));
}

TEST_F(SecretStoreTest, ADamagedOrForeignKeyFileIsTold) {
  ASSERT_TRUE(store_->Set("TOKEN", "some-value", now_).ok());
  ASSERT_TRUE(WriteFileAtomic(key_file_, "short\n", 0600).ok());
  EXPECT_EQ(SecretStore::Open(*database_, key_file_).error().code, ErrorCode::kCorrupt);
  ASSERT_TRUE(WriteFileAtomic(key_file_, std::string(64, 'a') + "\n", 0600).ok());
  const auto foreign = Reopen();
  ASSERT_NE(foreign, nullptr);
  EXPECT_EQ(foreign->Reveal("TOKEN").error().code, ErrorCode::kCorrupt);
}

TEST_F(SecretStoreTest, BadNamesAndValuesAreRefusedWithAHint) {
  for (const std::string& name :
       {std::string(), std::string("1A"), std::string("A-B"), std::string("A B"),
        std::string("A\0B", 3), std::string("../x"), std::string(129, 'A'), std::string("É")}) {
    const Status refused = store_->Set(name, "good-value", now_);
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    EXPECT_FALSE(refused.error().hint.empty());
  }
  for (const std::string& value : {std::string(), std::string("12345"),
                                   std::string(64 * 1024 + 1, 'x'), std::string("abc\0defgh", 9)}) {
    const Status refused = store_->Set("GOOD", value, now_);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    EXPECT_FALSE(refused.error().hint.empty());
    EXPECT_TRUE(value.empty() || refused.error().what.find(value) == std::string::npos);
  }
  EXPECT_TRUE(store_->Set(std::string(128, 'A'), "123456", now_).ok());
  EXPECT_TRUE(store_->Set("_a1", "123456", now_).ok());
}

}  // namespace
}  // namespace athanor
