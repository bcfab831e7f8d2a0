// The searching half of RunBook: which runs pass, in what order, with fresh metrics.
#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "track/run_book.h"

namespace athanor {
namespace {

constexpr std::string_view kContextKey = "\"mlflow.data.context\"";

bool InView(const RunRow& row, ViewType view) {
  return view == ViewType::kAll || row.deleted == (view == ViewType::kDeleted);
}

const RunMetric* FindMetric(const RunEntry& run, uint32_t key) {
  const auto at = std::lower_bound(run.metrics.begin(), run.metrics.end(), key,
                                   [](const auto& metric, uint32_t k) { return metric.key < k; });
  return at != run.metrics.end() && at->key == key ? &*at : nullptr;
}

// What the `mlflow.data.context` tag of an input says. Its tags are JSON that we wrote:
// [{"key":"mlflow.data.context","value":"train"}].
std::string ContextOf(const std::string& tags) {
  const size_t key = tags.find(kContextKey);
  if (key == std::string::npos) return "";
  constexpr std::string_view kValue = "\"value\":\"";
  const size_t at = tags.find(kValue, key);
  if (at == std::string::npos) return "";
  const size_t begin = at + kValue.size();
  return tags.substr(begin, tags.find('"', begin) - begin);
}

// One value to sort by. Numbers come before NaN, and what is missing comes last, whichever
// way the sort goes.
struct SortValue {
  int rank = 2;  // 0: a value, 1: NaN, 2: missing
  double number = 0;
  std::string_view text;
};

int Compare(const SortValue& a, const SortValue& b, bool ascending) {
  if (a.rank != b.rank) return a.rank < b.rank ? -1 : 1;
  if (a.rank != 0) return 0;
  int order = a.text.compare(b.text);
  if (order == 0) order = a.number < b.number ? -1 : a.number > b.number ? 1 : 0;
  return ascending ? order : -order;
}

SortValue Number(double value) { return {std::isnan(value) ? 1 : 0, value, {}}; }

struct Row {
  const RunEntry* run = nullptr;
  const SortValue* values = nullptr;  // one for each of the order
};

// Runs lie all over the memory: the next ones are on their way while one is looked at.
constexpr size_t kAhead = 12;
void Fetch(const RunEntry* run) {
  const auto* begin = reinterpret_cast<const char*>(run);
  for (size_t at = 0; at < sizeof(RunEntry); at += 64) __builtin_prefetch(begin + at);
}

// `hex` gets the id where that is the value.
SortValue AttributeOf(const RunEntry& run, const std::string& key, std::string& hex) {
  if (key == "start_time") return Number(static_cast<double>(run.row.started_ms));
  if (key == "end_time") {
    return run.row.ended_ms == 0 ? SortValue{} : Number(static_cast<double>(run.row.ended_ms));
  }
  if (key == "run_name") return {0, 0, run.row.name};
  if (key == "user_id") return {0, 0, run.row.user};
  if (key == "status") return {0, 0, NameOf(run.row.status)};
  if (key == "artifact_uri") return {0, 0, run.row.artifacts};
  hex = run.row.id.value.ToHex();
  return {0, 0, hex};
}

bool PassesAttribute(const RunEntry& run, const Clause& clause) {
  if (clause.key == "start_time") {
    return Passes(clause, static_cast<double>(run.row.started_ms));
  }
  if (clause.key == "end_time") {
    return run.row.ended_ms != 0 && Passes(clause, static_cast<double>(run.row.ended_ms));
  }
  std::string hex;
  return Passes(clause, AttributeOf(run, clause.key, hex).text);
}

bool PassesDataset(const RunEntry& run, const Clause& clause) {
  return std::any_of(run.inputs.begin(), run.inputs.end(), [&](const InputRow& input) {
    if (clause.key == "name") return Passes(clause, input.name);
    if (clause.key == "digest") return Passes(clause, input.digest);
    return Passes(clause, ContextOf(input.tags));
  });
}

bool UsesMetrics(const RunQuery& query) {
  const auto metric = [](const auto& part) { return part.type == FieldType::kMetric; };
  return std::any_of(query.filter.begin(), query.filter.end(), metric) ||
         std::any_of(query.order.begin(), query.order.end(), metric);
}

bool Before(const Row& a, const Row& b, const std::vector<OrderBy>& order) {
  for (size_t i = 0; i < order.size(); ++i) {
    const int way = Compare(a.values[i], b.values[i], order[i].ascending);
    if (way != 0) return way < 0;
  }
  if (a.run->row.started_ms != b.run->row.started_ms) {
    return a.run->row.started_ms > b.run->row.started_ms;
  }
  return a.run->row.id < b.run->row.id;
}

// The page of `runs` that is asked for; `order_keys` are those of the order.
RunPage Sorted(const std::vector<const RunEntry*>& runs, const RunQuery& query,
               const std::vector<std::optional<uint32_t>>& order_keys) {
  std::deque<std::string> hexes;
  std::vector<SortValue> values(runs.size() * query.order.size());
  std::vector<Row> rows;
  rows.reserve(runs.size());
  for (size_t at = 0; at < runs.size(); ++at) {
    if (at + kAhead < runs.size()) __builtin_prefetch(runs[at + kAhead]->metrics.data());
    const RunEntry& run = *runs[at];
    SortValue* const own = values.data() + at * query.order.size();
    rows.push_back({&run, own});
    for (size_t i = 0; i < query.order.size(); ++i) {
      const auto& order = query.order[i];
      if (order.type == FieldType::kAttribute) {
        std::string hex;
        own[i] = AttributeOf(run, order.key, hex);
        if (!hex.empty()) own[i].text = hexes.emplace_back(std::move(hex));
      } else if (order.type == FieldType::kMetric && order_keys[i]) {
        if (const RunMetric* metric = FindMetric(run, *order_keys[i])) own[i] = Number(metric->last);
      } else if (order_keys[i]) {
        const auto& labels = order.type == FieldType::kParam ? run.params : run.tags;
        if (const RunLabel* label = FindLabel(labels, *order_keys[i])) own[i] = {0, 0, label->value};
      }
    }
  }
  RunPage page;
  page.matched = rows.size();
  const size_t begin = std::min(query.offset, rows.size());
  const size_t end = begin + std::min(query.limit, rows.size() - begin);
  const auto before = [&](const Row& a, const Row& b) { return Before(a, b, query.order); };
  // What is on the page is found first: most of what is not on it is then never put in order.
  const auto cut = rows.begin() + static_cast<ptrdiff_t>(end);
  if (end < rows.size()) std::nth_element(rows.begin(), cut, rows.end(), before);
  std::sort(rows.begin(), cut, before);
  for (size_t i = begin; i < end; ++i) page.runs.push_back(rows[i].run->row.id);
  return page;
}

std::vector<RunMetric> MetricsOf(const std::vector<SeriesSummary>& summaries,
                                 const std::function<uint32_t(std::string_view)>& key_of) {
  std::vector<RunMetric> metrics;
  metrics.reserve(summaries.size());
  for (const auto& summary : summaries) {
    metrics.push_back({key_of(summary.name), summary.last, summary.last_step.value_or(0),
                       summary.last_wall_ns / 1'000'000, summary.min, summary.max,
                       summary.count});
  }
  std::sort(metrics.begin(), metrics.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  return metrics;
}

}  // namespace

bool RunBook::Passes(const RunEntry& run, const Clause& clause,
                     const std::optional<uint32_t>& key) const {
  switch (clause.type) {
    case FieldType::kAttribute: return PassesAttribute(run, clause);
    case FieldType::kDataset: return PassesDataset(run, clause);
    case FieldType::kMetric: {
      const RunMetric* metric = key ? FindMetric(run, *key) : nullptr;
      return metric != nullptr && athanor::Passes(clause, metric->last);
    }
    case FieldType::kParam:
    case FieldType::kTag: break;
  }
  const auto& labels = clause.type == FieldType::kParam ? run.params : run.tags;
  const RunLabel* label = key ? FindLabel(labels, *key) : nullptr;
  // A run without the key passes nothing but the question for just that.
  if (label == nullptr) return clause.comparator == Comparator::kIsNull;
  return athanor::Passes(clause, label->value);
}

std::vector<JobId> RunBook::StaleRuns(const RunQuery& query) const {
  const std::shared_lock lock(mutex_);
  std::vector<JobId> stale;
  for (const auto& [id, run] : runs_) {
    if (run->stale && InView(run->row, query.view)) stale.push_back(id);
  }
  return stale;
}

RunPage RunBook::Search(const RunQuery& query) const {
  const bool metrics = UsesMetrics(query);
  std::optional<std::set<int64_t>> experiments;
  if (query.experiments) experiments.emplace(query.experiments->begin(), query.experiments->end());
  std::shared_lock lock(mutex_);
  std::vector<const RunEntry*> runs;
  const auto gather = [&] {
    bool fresh = true;
    std::vector<const RunEntry*> all;
    all.reserve(runs_.size());
    for (const auto& [id, run] : runs_) all.push_back(run.get());
    runs.clear();
    for (size_t i = 0; i < all.size(); ++i) {
      if (i + kAhead < all.size()) Fetch(all[i + kAhead]);
      if (!InView(all[i]->row, query.view)) continue;
      if (experiments && !experiments->contains(all[i]->row.experiment)) continue;
      fresh = fresh && !all[i]->stale;
      runs.push_back(all[i]);
    }
    return fresh;
  };
  if (!gather() && metrics) {
    lock.unlock();
    Refresh(StaleRuns(query));
    lock.lock();
    gather();
  }
  std::vector<std::optional<uint32_t>> filter_keys;
  for (const auto& clause : query.filter) filter_keys.push_back(KnownKey(clause.key));
  std::erase_if(runs, [&](const RunEntry* run) {
    for (size_t i = 0; i < query.filter.size(); ++i) {
      if (!Passes(*run, query.filter[i], filter_keys[i])) return true;
    }
    return false;
  });
  std::vector<std::optional<uint32_t>> order_keys;
  for (const auto& order : query.order) order_keys.push_back(KnownKey(order.key));
  return Sorted(runs, query, order_keys);
}

// Reads the points' summaries without the lock, so that nobody who changes the book waits.
void RunBook::Refresh(const std::vector<JobId>& runs) const {
  if (runs.empty()) return;
  const std::lock_guard turn(refreshing_);
  for (const JobId id : runs) {
    Resumes resumes;
    {
      const std::unique_lock lock(mutex_);
      const auto at = runs_.find(id);
      if (at == runs_.end() || !at->second->stale) continue;
      at->second->stale = false;  // points that come from now on make it stale again
      resumes = at->second->resumes;
    }
    const auto summaries = series_.Summaries(id, resumes);
    const std::unique_lock lock(mutex_);
    const auto at = runs_.find(id);
    if (at == runs_.end()) continue;
    if (!summaries) {
      at->second->stale = true;
      continue;
    }
    at->second->metrics =
        MetricsOf(*summaries, [this](std::string_view name) { return KeyOf(name); });
  }
}

void RunBook::Look(const std::vector<JobId>& runs,
                   const std::function<void(const RunEntry&)>& look) const {
  std::vector<JobId> stale;
  {
    const std::shared_lock lock(mutex_);
    for (const JobId id : runs) {
      const auto at = runs_.find(id);
      if (at != runs_.end() && at->second->stale) stale.push_back(id);
    }
  }
  Refresh(stale);
  const std::shared_lock lock(mutex_);
  for (const JobId id : runs) {
    if (const auto at = runs_.find(id); at != runs_.end()) look(*at->second);
  }
}

}  // namespace athanor
