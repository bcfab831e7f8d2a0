#include "track/run_names.h"

#include <algorithm>

#include "base/text/text.h"

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

}  // namespace

NamePage CountNames(const RunBook& book, const NameQuery& query) {
  const std::string wanted = ToLower(query.contains);
  std::vector<Hit> hits;
  for (auto& [name, runs] : book.CountKeys(query.of, query.experiment)) {
    const size_t at = wanted.empty() ? 0 : ToLower(name).find(wanted);
    if (at != std::string::npos) hits.push_back({at == 0, runs, std::move(name)});
  }
  NamePage page;
  page.total = hits.size();
  const auto shown = hits.begin() + static_cast<ptrdiff_t>(std::min(query.limit, hits.size()));
  std::partial_sort(hits.begin(), shown, hits.end());
  for (auto hit = hits.begin(); hit != shown; ++hit) page.names.push_back({hit->name, hit->runs});
  return page;
}

}  // namespace athanor
