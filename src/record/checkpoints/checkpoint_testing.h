// For tests only: checkpoints of generated files, and a check whether one is really complete.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/io/test_dir.h"
#include "record/checkpoints/checkpoint_store.h"

namespace athanor {

using Contents = std::map<std::string, std::string>;

// Parts far smaller than real ones, so that small files have several.
inline constexpr uint64_t kTestPart = 1000;

inline CheckpointStore OpenCheckpoints(const std::string& dir) {
  auto parts = BlobStore::Open(JoinPath(dir, "parts"));
  EXPECT_TRUE(parts) << parts.error().what;
  auto store = CheckpointStore::Open(JoinPath(dir, "manifests"), *parts);
  EXPECT_TRUE(store) << store.error().what;
  return *store;
}

inline CheckpointManifest ManifestOf(const CheckpointStore& store, uint32_t attempt,
                                     std::optional<int64_t> step, const Contents& contents) {
  CheckpointManifest manifest;
  manifest.info.attempt = attempt;
  manifest.info.step = step;
  manifest.part_bytes = kTestPart;
  for (const auto& [name, bytes] : contents) {
    CheckpointFile file{name, bytes.size(), 0644, 1'700'000'000'000'000'000 + step.value_or(0), {},
                        {}};
    for (size_t at = 0; at < bytes.size(); at += kTestPart) {
      auto part = store.parts().Put(std::string_view(bytes).substr(at, kTestPart));
      EXPECT_TRUE(part) << part.error().what;
      if (part) file.parts.push_back(part->sha256);
    }
    manifest.files.push_back(std::move(file));
  }
  return manifest;
}

inline std::string CommitStep(CheckpointStore& store, uint32_t attempt, int64_t step,
                              const Contents& contents) {
  auto info = store.Commit(ManifestOf(store, attempt, step, contents));
  EXPECT_TRUE(info) << info.error().what << ": " << info.error().why;
  return info ? info->id : "";
}

// The bytes of every file, each part checked against its name.
inline Contents ReadBack(const CheckpointStore& store, const CheckpointManifest& manifest) {
  Contents contents;
  for (const auto& file : manifest.files) {
    std::string& bytes = contents[file.name];
    for (const auto& part : file.parts) {
      EXPECT_TRUE(store.parts().Verify(part).ok()) << file.name;
      auto fd = store.parts().Read(part);
      if (fd) bytes += ReadAll(fd->get()).value();
    }
    EXPECT_EQ(bytes.size(), file.size) << file.name;
  }
  return contents;
}

inline size_t PartsKept(const CheckpointStore& store) {
  size_t parts = 0;
  EXPECT_TRUE(store.parts().ForEach([&](const BlobRef&) { ++parts; }).ok());
  return parts;
}

}  // namespace athanor
