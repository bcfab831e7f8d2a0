// Embeddings as SummaryWriters write them: not into event files but next to them, as tables that a
// file projector_config.pbtxt names. Pure, except for the two functions that take a folder.
//
// Threads: safe from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor {

inline constexpr std::string_view kProjectorConfig = "projector_config.pbtxt";

struct Embedding {
  std::string name;  // the tag
  int64_t step = 0;
  int64_t wall_ms = 0;        // when its table was written; 0 from ReadProjectorConfig
  std::string tensor_path;    // of a table of numbers; below the folder that was asked for
  std::string metadata_path;  // of its labels; may be empty
};

struct EmbeddingRows {
  size_t rows = 0;  // in the table
  size_t dimensions = 0;
  std::vector<double> values;       // row by row, of the rows that were taken
  std::vector<std::string> labels;  // of the same rows; empty if there are none
};

// What a config names. Entries whose paths lead out of its folder, or that name no table, are left
// out; what is not understood is skipped.
std::vector<Embedding> ReadProjectorConfig(std::string_view text);

// Rows of numbers with tabs between them; if there are more than `most` numbers, rows at even
// distances. A row of another length than the first, or with something else in it, ends the table.
EmbeddingRows ReadVectors(std::string_view table, std::string_view labels, size_t most);

// All below `dir`, by name and step; none if there is no such folder. Files below its folder
// "abandoned" do not count, and links are not followed.
std::vector<Embedding> FindEmbeddings(const std::string& dir);
// kNotFound: its table does not exist, or is too large to show (256 MiB).
Result<EmbeddingRows> ReadEmbedding(const std::string& dir, const Embedding& embedding,
                                    size_t most);

}  // namespace athanor
