// What differs between runs, and nothing else: parameters, command, source, packages, environment,
// data, hardware, metrics. Pure: the caller provides the facts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/manifest.h"
#include "job/record.h"
#include "record/series/series_store.h"

namespace athanor {

struct RunFacts {
  JobRecord record;
  std::optional<BundleManifest> source;
  std::string packages;  // "name==version" lines
  std::vector<SeriesSummary> metrics;
};

struct DiffRow {
  std::string section;  // "params", "source", "packages", ...
  std::string key;
  std::vector<std::string> values;  // one per run; empty: it has none
};

// Sections in a fixed order, keys sorted. Empty when nothing differs.
std::vector<DiffRow> Differences(const std::vector<RunFacts>& runs);

}  // namespace athanor
