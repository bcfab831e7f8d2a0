#include "record/fsck/fsck.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>

#include "base/io/hash.h"
#include "eventfile/tfrecord.h"
#include "record/artifacts/artifact_sums.h"
#include "record/checkpoints/checkpoint_manifest.h"
#include "record/checkpoints/checkpoint_store.h"
#include "record/db/checked_vfs.h"
#include "record/home_testing.h"
#include "record/keys/key_file.h"
#include "record/objects/directory_object_store.h"

namespace athanor {
namespace {

class FsckTest : public testing::Test {
 protected:
  FsckTest() : record_(MakeHome(home_)) {}

  FsckReport Look(FsckOptions options = {}) {
    auto report = Fsck(home_, options);
    EXPECT_TRUE(report) << report.error().what;
    return report ? std::move(*report) : FsckReport{};
  }
  // The parts in which something was found, each once.
  std::set<std::string> Parts(const FsckReport& report) {
    std::set<std::string> parts;
    for (const auto& finding : report.findings) {
      parts.insert(finding.part);
      EXPECT_FALSE(finding.what.empty());
      if (!finding.repaired) {
        EXPECT_FALSE(finding.hint.empty()) << finding.what;
      }
    }
    return parts;
  }
  void Sql(const std::string& sql) {
    sqlite3* handle = nullptr;
    ASSERT_EQ(
        sqlite3_open_v2(home_.database().c_str(), &handle, SQLITE_OPEN_READWRITE, CheckedVfsName()),
        SQLITE_OK);
    char* why = nullptr;
    EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &why), SQLITE_OK) << why;
    ASSERT_EQ(sqlite3_close(handle), SQLITE_OK);
  }
  // Every file of the home but the database's shared memory.
  std::map<std::string, std::string> Bytes() {
    std::map<std::string, std::string> bytes;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(home_.root)) {
      const std::string path = entry.path().string();
      if (!entry.is_regular_file() || path.ends_with("-shm")) continue;
      const std::string text = ReadFile(path).value();
      if (path.ends_with("-wal") && text.empty()) continue;
      bytes[path] = text;
    }
    return bytes;
  }
  std::string SeriesPath() const {
    const std::string id = record_.id.ToString();
    return home_.series() + "/" + id.substr(id.size() - 2) + "/" + id + ".series";
  }
  std::string LogFolder() const { return home_.logs() + "/" + record_.id.ToString(); }
  std::string BlobPath(const std::string& sha) const {
    return home_.blobs() + "/" + sha.substr(0, 2) + "/" + sha;
  }
  void Flip(const std::string& path, size_t at) {
    auto bytes = ReadFile(path);
    ASSERT_TRUE(bytes);
    ASSERT_LT(at, bytes->size());
    (*bytes)[at] = static_cast<char>((*bytes)[at] ^ 0x40);
    ASSERT_TRUE(ReplaceFile(path, *bytes).ok());
  }

  const TestDir dir_;
  const StoreLayout home_{dir_ / "home"};
  const JobRecord record_;
};

TEST_F(FsckTest, AWholeHomeIsCleanAndNotTouched) {
  const auto before = Bytes();
  const auto report = Look({false, true});
  EXPECT_TRUE(report.clean()) << report.findings.front().what;
  EXPECT_EQ(report.jobs, 1u);
  EXPECT_EQ(report.events, 1u);
  EXPECT_EQ(report.blobs, 5u);
  EXPECT_EQ(report.series, 1u);
  EXPECT_EQ(report.logs, 1u);
  EXPECT_EQ(report.version, ServerMigrations().back().version);
  EXPECT_EQ(Bytes(), before);
}

TEST_F(FsckTest, ThereMustBeAStore) {
  const auto report = Fsck({dir_ / "none"}, {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kNotFound);
}

// Planted bug: leave the table's check out, and the row below goes unnoticed.
TEST_F(FsckTest, EachBrokenInvariantOfTheDatabaseIsFoundAndNothingIsChanged) {
  const std::string id = record_.id.ToString();
  const std::vector<std::pair<std::string, std::string>> broken = {
      {"UPDATE jobs SET state = 'Running'", "job"},
      {"UPDATE jobs SET live = 1", "job"},
      {"UPDATE jobs SET ended = 0", "job"},
      {"UPDATE jobs SET name = 'other'", "job"},
      {"UPDATE records SET json = '{'", "job"},
      {"UPDATE records SET json = json_remove(json, '$.ended')", "job"},
      {"UPDATE records SET json = json_set(json, '$.attempts[0].number', 2)", "job"},
      {"DELETE FROM records", "job"},
      {"DELETE FROM events", "event"},
      {"UPDATE events SET seq = 2", "event"},
      {"INSERT INTO events (job, seq, at, name, state, attempt, cause) VALUES ('" + id +
           "', 3, 0, 'x', 'Completed', 0, '')",
       "event"},
      {"UPDATE events SET state = 'Queued'", "event"},
      {"UPDATE events SET cause = '{'", "event"},
      {"DELETE FROM keys", "key"},
      {"UPDATE keys SET spec_hash = 'x'", "key"},
      {"PRAGMA foreign_keys = OFF; INSERT INTO outbox VALUES (9, 'launch', 'gone', 'x')", "outbox"},
      {"PRAGMA foreign_keys = OFF; INSERT INTO keys VALUES ('k', 'gone', 'x', 0)", "database"},
      {"UPDATE secrets SET sealed = 'AAAA'", "secret"},
  };
  const auto whole = ReadFile(home_.database());
  for (const auto& [sql, part] : broken) {
    SCOPED_TRACE(sql);
    Sql(sql);
    const auto before = Bytes();
    EXPECT_TRUE(Parts(Look()).contains(part));
    EXPECT_EQ(Bytes(), before);
    for (const char* beside : {"-wal", "-shm"}) ::unlink((home_.database() + beside).c_str());
    ASSERT_TRUE(ReplaceFile(home_.database(), *whole).ok());
  }
  EXPECT_TRUE(Look().clean());
}

TEST_F(FsckTest, ADamagedPageIsFoundAndSoIsAFileThatIsNoDatabase) {
  auto bytes = ReadFile(home_.database());
  ASSERT_TRUE(bytes);
  for (size_t i = 4096 * 2; i < bytes->size() && i < 4096 * 12; ++i) (*bytes)[i] = '\x5a';
  ASSERT_TRUE(ReplaceFile(home_.database(), *bytes).ok());
  EXPECT_TRUE(Parts(Look()).contains("database"));
  ASSERT_TRUE(ReplaceFile(home_.database(), std::string(9000, 'x')).ok());
  const auto report = Look({true, false});
  EXPECT_TRUE(Parts(report).contains("database"));
  // Without a list of jobs it is unknown what is left over: nothing was moved.
  EXPECT_FALSE(Parts(report).contains("leftover"));
  EXPECT_TRUE(Exists(LogFolder()));
}

TEST_F(FsckTest, RepairMakesColumnsAnewAndDropsEffectsOfGoneJobs) {
  Sql("UPDATE jobs SET state = 'Running', live = 1, name = 'other'");
  Sql("PRAGMA foreign_keys = OFF; INSERT INTO outbox VALUES (9, 'launch', 'gone', 'x')");
  const auto report = Look({true, false});
  EXPECT_EQ(Parts(report), (std::set<std::string>{"job", "outbox"}));
  EXPECT_EQ(report.left(), 0u);
  EXPECT_TRUE(Look().clean());
  ExpectHome(home_, record_);
}

TEST_F(FsckTest, AMissingBlobIsFoundByWhatNamesIt) {
  ASSERT_EQ(::unlink(BlobPath(record_.outputs.front().blob).c_str()), 0);
  const auto report = Look();
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings.front().what, "model.tar.gz of job brisk-heron is missing");
}

// Planted bug: take the listing of a source for the source itself.
TEST_F(FsckTest, AFileOfASourceThatIsShorterIsFoundAndPutAside) {
  const std::string path = BlobPath(Sha256Hex("print('hello')\n"));
  ASSERT_TRUE(ReplaceFile(path, "print(").ok());
  const auto report = Look({true, false});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings.front().what, "train.py in the source of job brisk-heron is damaged");
  EXPECT_EQ(report.left(), 0u);
  EXPECT_FALSE(Exists(path));
  EXPECT_EQ(ReadFile(home_.lost_and_found() + path.substr(home_.root.size())), "print(");
}

TEST_F(FsckTest, AFileThatTheScriptLeftIsMissedByItsName) {
  ASSERT_EQ(::unlink(BlobPath(Sha256Hex("left behind")).c_str()), 0);
  const auto report = Look();
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings.front().what,
            "notes.txt in the files that job brisk-heron left is missing");
}

TEST_F(FsckTest, ABlobWithOtherBytesOfTheSameLengthIsFoundByLookingDeep) {
  Flip(BlobPath(record_.outputs.front().blob), 0);
  EXPECT_TRUE(Look().clean());
  EXPECT_EQ(Parts(Look({false, true})), (std::set<std::string>{"blob"}));
}

TEST_F(FsckTest, ATornTailOfMetricsIsFoundAndCut) {
  auto bytes = ReadFile(SeriesPath());
  ASSERT_TRUE(bytes);
  ASSERT_TRUE(ReplaceFile(SeriesPath(), *bytes + std::string("\x10\0\0\0torn", 8)).ok());
  EXPECT_EQ(Parts(Look()), (std::set<std::string>{"series"}));
  EXPECT_EQ(ReadFile(SeriesPath())->size(), bytes->size() + 8) << "changed without --repair";
  EXPECT_EQ(Look({true, false}).left(), 0u);
  EXPECT_TRUE(Look().clean());
  ExpectHome(home_, record_);
}

TEST_F(FsckTest, DamagedMetricsAreTakenOutAndTheFileAsItWasIsKept) {
  auto series = SeriesStore::Open(home_.series());
  ASSERT_TRUE(series);
  PointBatch more;
  more.channel = 1;
  more.items = {{1, {"acc", 1, 1, 0.5}}};
  const auto length = ReadFile(SeriesPath())->size();
  ASSERT_TRUE((*series)->Append(record_.id, more));
  Flip(SeriesPath(), length - 3);  // in the block before
  const auto damaged = ReadFile(SeriesPath());
  EXPECT_EQ(Look({true, false}).left(), 0u);
  EXPECT_TRUE(Look().clean());
  EXPECT_EQ(ReadFile(home_.lost_and_found() + SeriesPath().substr(home_.root.size())), damaged);
  auto again = SeriesStore::Open(home_.series());
  EXPECT_EQ((*again)->Read(record_.id, "acc")->size(), 1u);
}

TEST_F(FsckTest, ADamagedIndexOfALogIsFoundAndMadeAnew) {
  Flip(LogFolder() + "/index", 3);
  EXPECT_EQ(Parts(Look()), (std::set<std::string>{"log"}));
  EXPECT_EQ(Look({true, false}).left(), 0u);
  EXPECT_TRUE(Look().clean());
  auto logs = LogStore::Open(home_.logs());
  LogCursor cursor;
  const auto entries = (*logs)->Read(record_.id, cursor, 1 << 20);
  ASSERT_TRUE(entries);
  std::string text;
  for (const auto& entry : *entries) text += entry.bytes;
  EXPECT_EQ(text, "hello\nworld\n");
}

// Planted bug: look at the index only.
TEST_F(FsckTest, DamagedTextOfALogIsFoundAndLeftAsItIs) {
  Flip(LogFolder() + "/a1-h0-r0-stdout.log", 1);
  const auto report = Look({true, false});
  EXPECT_EQ(Parts(report), (std::set<std::string>{"log"}));
  EXPECT_EQ(report.left(), 1u);
}

TEST_F(FsckTest, BytesThatHaveNoEntryYetAreNoDamage) {
  const std::string path = LogFolder() + "/a1-h0-r0-stdout.log";
  ASSERT_TRUE(ReplaceFile(path, *ReadFile(path) + "printed, then killed\n").ok());
  EXPECT_TRUE(Look().clean());
}

TEST_F(FsckTest, WhatBelongsToNoJobIsPutAsideNotDeleted) {
  const std::string stranger = JobId::New().ToString();
  const std::string attempt = AttemptId::New().ToString();
  for (const auto& folder : {home_.jobs() + "/" + stranger, home_.logs() + "/" + stranger,
                             home_.attempts() + "/" + attempt}) {
    ASSERT_TRUE(MakeDirs(folder).ok());
    ASSERT_TRUE(ReplaceFile(folder + "/weights", "w").ok());
  }
  const auto report = Look();
  EXPECT_EQ(report.findings.size(), 3u);
  EXPECT_EQ(Parts(report), (std::set<std::string>{"leftover"}));
  EXPECT_EQ(Look({true, false}).left(), 0u);
  EXPECT_TRUE(Look().clean());
  EXPECT_EQ(ReadFile(home_.lost_and_found() + "/jobs/" + stranger + "/weights"), "w");
}

// Planted bug: leave out CheckPagesOf, and a page that no check of rows leads to goes unnoticed.
TEST_F(FsckTest, AFlippedBitOfAParameterIsFoundAndTheTableIsNamed) {
  auto bytes = ReadFile(home_.database());
  ASSERT_TRUE(bytes);
  const size_t at = bytes->find("1e-4");
  ASSERT_NE(at, std::string::npos);
  Flip(home_.database(), at);
  const auto report = Look();
  EXPECT_TRUE(Parts(report).contains("database"));
  bool named = false;
  for (const auto& finding : report.findings) {
    named = named || finding.why.find("table records") != std::string::npos;
  }
  EXPECT_TRUE(named) << report.findings.front().what << ": " << report.findings.front().why;
}

// Planted bug: copy the tables without a condition, and SQLite copies the broken indexes with them;
// or take any damage for one of indexes.
TEST_F(FsckTest, ADamagedIndexIsMadeAnewFromItsTableAndTheFileAsItWasIsKept) {
  auto bytes = ReadFile(home_.database());
  ASSERT_TRUE(bytes);
  const std::string whole = *bytes;
  size_t mended = 0;
  size_t left = 0;
  for (size_t page = 1; page < whole.size() / 4096; ++page) {
    SCOPED_TRACE(page + 1);
    for (const char* beside : {"-wal", "-shm"}) ::unlink((home_.database() + beside).c_str());
    ASSERT_TRUE(ReplaceFile(home_.database(), whole).ok());
    Flip(home_.database(), page * 4096 + 17);
    const auto damaged = ReadFile(home_.database());
    const auto looked = Look();
    ASSERT_FALSE(looked.clean());
    const Finding& found = looked.findings.front();
    // Without the list of tables none can be looked at.
    const bool table =
        !found.what.starts_with("page ") || found.why.find("part of table") != std::string::npos;
    EXPECT_EQ(found.hint.find("--repair") != std::string::npos, !table) << found.why;
    const auto report = Look({true, false});
    EXPECT_EQ(report.left() > 0, table) << found.why;
    if (report.left() > 0) {
      ++left;
      continue;
    }
    ++mended;
    const std::string kept = home_.lost_and_found() + "/server/athanor.db";
    EXPECT_EQ(ReadFile(kept), damaged);
    ASSERT_EQ(::unlink(kept.c_str()), 0);
    EXPECT_TRUE(Look().clean());
    ExpectHome(home_, record_);
  }
  EXPECT_GT(mended, 3u);
  EXPECT_GT(left, 3u);
}

// Planted bug: look at the pages of the first database only.
TEST_F(FsckTest, AFlippedBitOfTheIndexOfObjectsIsFound) {
  const SystemClock clock;
  { ASSERT_TRUE(OpenObjectDirectory(home_.objects(), clock)); }
  EXPECT_TRUE(Look().clean());
  Flip(home_.object_index(), 2 * 4096 + 4000);
  const auto report = Look();
  ASSERT_EQ(Parts(report), (std::set<std::string>{"database"}));
  EXPECT_EQ(report.findings.front().what, "page 3 of index.db is not as it was written");
}

// Planted bug: read the key as it comes, and every agent is refused without a word why.
TEST_F(FsckTest, ADamagedKeyOfTokensIsFound) {
  const auto key = OpenKeyFile(home_.ingest_key());
  ASSERT_TRUE(key);
  EXPECT_EQ(OpenKeyFile(home_.ingest_key()), *key);
  EXPECT_TRUE(Look().clean());
  Flip(home_.ingest_key(), 5);
  EXPECT_EQ(OpenKeyFile(home_.ingest_key()).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(Parts(Look()), (std::set<std::string>{"key"}));
  // One of before there were sums is taken, and gets one.
  ASSERT_TRUE(ReplaceFile(home_.ingest_key(), std::string(64, 'a') + "\n").ok());
  EXPECT_EQ(OpenKeyFile(home_.ingest_key()), std::string(64, 'a'));
  Flip(home_.ingest_key(), 5);
  EXPECT_EQ(Parts(Look()), (std::set<std::string>{"key"}));
}

// Planted bug: take a fence by its numbers only, and an attempt that was replaced keeps
// checkpoints again.
TEST_F(FsckTest, EveryFlippedBitOfAFenceIsFoundAndItIsPutAside) {
  const std::string folder = home_.jobs() + "/" + record_.id.ToString() + "/manifests";
  auto store =
      CheckpointStore::Open(folder, BlobStore::Open(DirName(folder) + "/parts").value(), "");
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->Fence(2).ok());
  const auto whole = ReadFile(folder + "/fence");
  ASSERT_TRUE(whole);
  EXPECT_TRUE(Look().clean());
  for (size_t bit = 0; bit < whole->size() * 8; ++bit) {
    std::string flipped = *whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    ASSERT_TRUE(ReplaceFile(folder + "/fence", flipped).ok());
    EXPECT_EQ(store->Fence(2).error().code, ErrorCode::kCorrupt) << bit;
  }
  EXPECT_EQ(Parts(Look()), (std::set<std::string>{"checkpoint"}));
  EXPECT_EQ(Look({true, false}).left(), 0u);
  EXPECT_TRUE(store->Fence(2).ok());
  // One that an earlier version wrote.
  ASSERT_TRUE(ReplaceFile(folder + "/fence", "3 2-7\n").ok());
  EXPECT_TRUE(Look().clean());
  EXPECT_EQ(store->Fence(2).error().code, ErrorCode::kConflict);
}

// Planted bug: treat event files like what the script wrote itself, which fsck does not judge.
TEST_F(FsckTest, ADamagedEventFileIsFound) {
  const std::string folder = home_.jobs() + "/" + record_.id.ToString() + "/events/train";
  ASSERT_TRUE(MakeDirs(folder).ok());
  std::string file;
  for (int i = 0; i < 20; ++i) AppendTfRecord(file, "event " + std::to_string(i));
  const std::string path = folder + "/events.out.tfevents.1.host";
  ASSERT_TRUE(ReplaceFile(path, file + "torn").ok());
  const auto whole = Look();
  EXPECT_TRUE(whole.clean()) << whole.findings.front().what;
  Flip(path, file.size() / 2);
  EXPECT_EQ(Parts(Look()), (std::set<std::string>{"eventfile"}));
}

// Planted bug: note nothing when an artifact is kept; or take only its newest line for true.
TEST_F(FsckTest, ADamagedArtifactIsFoundByItsSizeAndByLookingDeep) {
  const std::string folder = home_.artifacts() + "/0/run/artifacts";
  ASSERT_TRUE(MakeDirs(folder).ok());
  const auto root = OpenDir(home_.artifacts());
  ASSERT_TRUE(root);
  const std::string path = "0/run/artifacts/model one.bin";
  const std::string file = home_.artifacts() + "/" + path;
  ASSERT_TRUE(ReplaceFile(file, "weights").ok());
  ASSERT_TRUE(NoteArtifact(root->get(), path, {7, Sha256Hex("weights")}).ok());
  // Killed before the newer one was in place.
  ASSERT_TRUE(NoteArtifact(root->get(), path, {9, Sha256Hex("weights 2")}).ok());
  const auto whole = Look({false, true});
  EXPECT_TRUE(whole.clean()) << whole.findings.front().what;
  Flip(file, 3);
  EXPECT_TRUE(Look().clean());
  EXPECT_EQ(Parts(Look({false, true})), (std::set<std::string>{"artifact"}));
  ASSERT_TRUE(ReplaceFile(file, "weig").ok());
  EXPECT_EQ(Parts(Look()), (std::set<std::string>{"artifact"}));
  ASSERT_EQ(::unlink(file.c_str()), 0);
  EXPECT_TRUE(Look({false, true}).clean()) << "removed by its owner";
  Flip(home_.artifacts() + "/" + ArtifactSumsPath(path), 12);
  EXPECT_EQ(Parts(Look()), (std::set<std::string>{"artifact"}));
}

TEST_F(FsckTest, ACheckpointWithoutAPartIsFoundAndPutAside) {
  const std::string folder = home_.jobs() + "/" + record_.id.ToString();
  auto parts = BlobStore::Open(folder + "/parts");
  ASSERT_TRUE(parts);
  CheckpointManifest manifest;
  manifest.info.id = "1-1";
  manifest.info.attempt = 1;
  CheckpointFile file;
  file.name = "weights.pt";
  file.size = 7;
  file.mode = 0600;
  file.parts = {parts->Put("weights")->sha256};
  manifest.files = {file};
  ASSERT_TRUE(MakeDirs(folder + "/manifests").ok());
  ASSERT_TRUE(ReplaceFile(folder + "/manifests/1-1", FormatManifest(manifest)).ok());
  const auto whole = Look({false, true});
  EXPECT_TRUE(whole.clean()) << whole.findings.front().why;
  EXPECT_EQ(whole.checkpoints, 1u);
  ASSERT_TRUE(parts->Remove(file.parts.front()).ok());
  EXPECT_EQ(Parts(Look()), (std::set<std::string>{"checkpoint"}));
  EXPECT_EQ(Look({true, false}).left(), 0u);
  EXPECT_TRUE(Look().clean());
}

}  // namespace
}  // namespace athanor
