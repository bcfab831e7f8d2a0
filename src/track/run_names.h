// The names of metrics, params or tags over all runs, and how many runs have each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "track/run_book.h"

namespace athanor {

struct NameQuery {
  KeyKind of = KeyKind::kMetric;
  std::string contains;               // in any case; empty: all
  std::optional<int64_t> experiment;  // none: all
  size_t limit = 100;
};

struct NamePage {
  struct Row {
    std::string name;
    size_t runs = 0;
  };
  std::vector<Row> names;  // those that begin with the text first, then the most used
  size_t total = 0;        // of those that match
};

// For runs that are not deleted. Safe from any thread, as the book is.
NamePage CountNames(const RunBook& book, const NameQuery& query);

}  // namespace athanor
