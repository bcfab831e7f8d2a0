// What RemoteJobFiles and JobFilesService say to each other besides bytes: JSON texts and the names
// of routes. Pure. What is read here comes from the other side and may be anything.
//
//   POST   /agent/v1/files/has             which of these blobs are there
//   GET    /agent/v1/files/blobs/SHELF/SHA256?from=N             the bytes from N on
//   GET    /agent/v1/files/uploads/SHELF/SHA256?bytes=N          what has come of it
//   PUT    /agent/v1/files/uploads/SHELF/SHA256?bytes=N&from=M   more of it
//   GET    /agent/v1/files/entries?folder=F
//   GET, PUT, DELETE /agent/v1/files/entry?name=E        read, replace, remove
//   POST   /agent/v1/files/entry?name=E&at=N             append
//   GET    /agent/v1/files/checkpoints                   their ids and steps
//   POST   /agent/v1/files/checkpoints                   commit a manifest
//   POST   /agent/v1/files/care                          tend them
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "job/record.h"
#include "link/job_files.h"

namespace athanor::files_wire {

inline constexpr char kRoot[] = "/agent/v1/files";
// The number of a call, which rises with each that an agent makes. A call that the agent gave up
// may still arrive, minutes later: by its number the server knows that others came after it.
inline constexpr char kCallHeader[] = "X-Athanor-Call";
// One question about blobs names at most so many, and is at most so long.
inline constexpr size_t kMostAsked = 20'000;
inline constexpr uint64_t kMostQuestion = 4ull << 20;
inline constexpr uint64_t kMostAppended = 16ull << 20;
inline constexpr uint64_t kMostManifest = 256ull << 20;
inline constexpr uint64_t kMostCare = 64ull << 20;
// A blob, or an entry.
inline constexpr uint64_t kMostBytes = 64ull << 30;

std::string_view NameOf(Shelf shelf);
std::optional<Shelf> ShelfNamed(std::string_view name);

struct Question {
  Shelf shelf = Shelf::kBlobs;
  std::vector<BlobRef> blobs;
};
std::string Encode(const Question& question);
Result<Question> DecodeQuestion(std::string_view text);
std::string EncodeThere(const std::vector<bool>& there);
Result<std::vector<bool>> DecodeThere(std::string_view text);

struct UploadState {
  bool stored = false;
  uint64_t received = 0;  // of a blob that is not stored yet
};
std::string Encode(const UploadState& state);
Result<UploadState> DecodeUpload(std::string_view text);

std::string EncodeEntries(const std::vector<JobEntry>& entries);
Result<std::vector<JobEntry>> DecodeEntries(std::string_view text);

std::string EncodeCheckpoint(const CheckpointInfo& info);
Result<CheckpointInfo> DecodeCheckpoint(std::string_view text);
std::string EncodeSteps(const std::vector<CheckpointInfo>& checkpoints);
Result<std::vector<int64_t>> DecodeSteps(std::string_view text);

// CheckpointCare with its values looked up.
struct Care {
  std::optional<CheckpointSpec> keep;
  std::vector<std::pair<int64_t, double>> values;  // by step
  std::optional<std::set<std::string>> needed;
};
std::string Encode(const Care& care);
Result<Care> DecodeCare(std::string_view text);

}  // namespace athanor::files_wire
