#include "track/run_names.h"

#include <algorithm>

#include "base/text.h"

namespace athanor {
namespace {

struct Hit {
  bool begins = false;
  size_t runs = 0;
  std::string name;

  bool operator<(const Hit& other) const {
    if (begins != other.begins) return begins;
    if (runs != other.runs) return runs > other.runs;
    return name < other.name;
  }
};

template <class Rows>
void Count(const Rows& rows, std::vector<size_t>& counts) {
  for (const auto& row : rows) {
    if (row.key >= counts.size()) counts.resize(row.key + 1);
    ++counts[row.key];
  }
}

}  // namespace

NamePage CountNames(const RunBook& book, const NameQuery& query) {
  RunQuery all;
  all.limit = SIZE_MAX;
  if (query.experiment) all.experiments = {*query.experiment};
  const auto runs = book.Search(all).runs;
  std::vector<size_t> counts;  // by key
  book.Look(runs, [&](const RunEntry& run) {
    switch (query.of) {
      case NameQuery::Of::kMetric: return Count(run.metrics, counts);
      case NameQuery::Of::kParam: return Count(run.params, counts);
      case NameQuery::Of::kTag: return Count(run.tags, counts);
    }
  });
  const std::string wanted = ToLower(query.contains);
  std::vector<Hit> hits;
  // Words are read within Look; any one run gives leave to.
  book.Look(runs.empty() ? runs : std::vector<JobId>{runs.front()}, [&](const RunEntry&) {
    for (uint32_t key = 0; key < counts.size(); ++key) {
      if (counts[key] == 0) continue;
      const std::string& name = book.KeyName(key);
      const size_t at = wanted.empty() ? 0 : ToLower(name).find(wanted);
      if (at != std::string::npos) hits.push_back({at == 0, counts[key], name});
    }
  });
  NamePage page;
  page.total = hits.size();
  const auto shown = hits.begin() + static_cast<ptrdiff_t>(std::min(query.limit, hits.size()));
  std::partial_sort(hits.begin(), shown, hits.end());
  for (auto hit = hits.begin(); hit != shown; ++hit) page.names.push_back({hit->name, hit->runs});
  return page;
}

}  // namespace athanor
