// For tests only: a home with one job that has everything, and a check of what a copy must contain.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/io/test_dir.h"
#include "job/manifest.h"
#include "record/keys/secret_store.h"
#include "record/layout.h"
#include "record/logs/log_store.h"
#include "record/objects/blob_store.h"
#include "record/series/series_store.h"
#include "record/testing.h"

namespace athanor {

// As SampleJob, but without blobs.
inline JobRecord BareJob(int number) {
  JobRecord record = SampleJob(number);
  record.spec.source.bundle.clear();
  return record;
}

// A completed job with source, output, log and metrics, and also a secret. Returns its record.
inline JobRecord MakeHome(const StoreLayout& home) {
  JobRecord record = BareJob(1);
  EXPECT_TRUE(MakeDirs(home.server()).ok());
  auto database = OpenStore(home.database());
  auto blobs = BlobStore::Open(home.blobs());
  auto logs = LogStore::Open(home.logs());
  auto series = SeriesStore::Open(home.series());
  auto secrets = SecretStore::Open(*database, home.secret_key());
  EXPECT_TRUE(secrets && (*secrets)->Set("TOKEN", "a value to keep", WallTime{1}).ok());

  const auto script = blobs->Put("print('hello')\n");
  BundleManifest source;
  source.entries.push_back(
      {"train.py", BundleEntry::Kind::kFile, false, script->bytes, script->sha256, ""});
  source.bytes = script->bytes;
  record.spec.source.bundle = blobs->Put(WriteManifest(source))->sha256;
  const auto output = blobs->Put("a model");
  const auto left = blobs->Put("left behind");
  BundleManifest files;
  files.entries.push_back(
      {"notes.txt", BundleEntry::Kind::kFile, false, left->bytes, left->sha256, ""});
  record.outputs = {{"model.tar.gz", output->sha256, output->bytes, 1},
                    {Output::kFiles, blobs->Put(WriteManifest(files))->sha256, left->bytes, 1}};
  record.state = JobState::kCompleted;
  record.ended = WallTime{record.created.ms + 5};
  Attempt attempt;
  attempt.id = AttemptId::New();
  attempt.ended = record.ended;
  record.attempts = {attempt};
  AddMissingHosts(record);
  EXPECT_TRUE(JobStore(*database).Commit(SubmitOf(record)).ok());

  const std::string text = "hello\nworld\n";
  EXPECT_TRUE((*logs)->Append(record.id, {.wall_ms = 7, .bytes = text}));
  PointBatch points;
  points.items = {{1, {"loss", 1, 1, 0.5}}, {2, {"loss", 2, 2, 0.25}}};
  EXPECT_TRUE((*series)->Append(record.id, points));
  EXPECT_TRUE(MakeDirs(home.jobs() + "/" + record.id.ToString() + "/checkpoints").ok());
  EXPECT_TRUE(ReplaceFile(home.jobs() + "/" + record.id.ToString() + "/checkpoints/a", "w").ok());
  EXPECT_TRUE(MakeDirs(home.attempts()).ok());
  return record;
}

inline void ExpectHome(const StoreLayout& home, const JobRecord& record) {
  auto database = OpenStore(home.database());
  ASSERT_NE(database, nullptr);
  EXPECT_EQ(JobStore(*database).Find(record.id), record);
  auto secrets = SecretStore::Open(*database, home.secret_key());
  ASSERT_TRUE(secrets) << secrets.error().what;
  EXPECT_EQ((*secrets)->Reveal("TOKEN"), "a value to keep");
  auto logs = LogStore::Open(home.logs());
  ASSERT_TRUE(logs);
  LogCursor cursor;
  const auto entries = (*logs)->Read(record.id, cursor, 1 << 20);
  ASSERT_TRUE(entries) << entries.error().what;
  ASSERT_EQ(entries->size(), 1u);
  EXPECT_EQ(entries->front().bytes, "hello\nworld\n");
  EXPECT_EQ(entries->front().wall_ms, 7);
  auto series = SeriesStore::Open(home.series());
  ASSERT_TRUE(series);
  const auto points = (*series)->Read(record.id, "loss");
  ASSERT_TRUE(points) << points.error().what;
  EXPECT_EQ(points->size(), 2u);
  auto blobs = BlobStore::Open(home.blobs());
  ASSERT_TRUE(blobs);
  EXPECT_TRUE(blobs->Verify(record.outputs.front().blob).ok());
  EXPECT_EQ(ReadFile(home.jobs() + "/" + record.id.ToString() + "/checkpoints/a"), "w");
}

}  // namespace athanor
