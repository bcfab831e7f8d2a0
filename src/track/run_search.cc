// The searching half of RunBook: which runs pass, in what order, with fresh metrics.
#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "track/run_book.h"

namespace athanor {
namespace {

constexpr std::string_view kContextKey = "\"mlflow.data.context\"";

bool InView(const RunTable::Row& row, ViewType view) {
  return view == ViewType::kAll || row.deleted == (view == ViewType::kDeleted);
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
  // One of the two is the same in all that are compared.
  int order = a.number < b.number ? -1 : a.number > b.number ? 1 : 0;
  if (order == 0) order = a.text.compare(b.text);
  return ascending ? order : -order;
}

SortValue Number(double value) { return {std::isnan(value) ? 1 : 0, value, {}}; }

struct Found {
  const RunTable::Row* row = nullptr;
  const SortValue* values = nullptr;  // one for each of the order
};

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

bool Before(const Found& a, const Found& b, const std::vector<OrderBy>& order) {
  for (size_t i = 0; i < order.size(); ++i) {
    const int way = Compare(a.values[i], b.values[i], order[i].ascending);
    if (way != 0) return way < 0;
  }
  if (a.row->started_ms != b.row->started_ms) return a.row->started_ms > b.row->started_ms;
  return a.row->run->row.id < b.row->run->row.id;
}

SortValue ColumnValue(double value) {
  return RunTable::IsMissing(value) ? SortValue{} : Number(value);
}

// The value of one part of the order. `hexes` gets what the value is a view of.
SortValue ValueOf(const RunEntry& run, const OrderBy& order, const std::optional<uint32_t>& key,
                  std::deque<std::string>& hexes) {
  if (order.type == FieldType::kAttribute) {
    std::string hex;
    SortValue value = AttributeOf(run, order.key, hex);
    if (!hex.empty()) value.text = hexes.emplace_back(std::move(hex));
    return value;
  }
  if (!key) return {};
  if (order.type == FieldType::kMetric) {
    const RunMetric* metric = FindMetric(run, *key);
    return metric == nullptr ? SortValue{} : Number(metric->last);
  }
  const RunLabel* label =
      FindLabel(order.type == FieldType::kParam ? run.params : run.tags, *key);
  return label == nullptr ? SortValue{} : SortValue{0, 0, label->value};
}

// The page of `found` that is asked for; `keys` are those of the order.
RunPage Sorted(const RunTable& table, const std::vector<const RunTable::Row*>& found,
               const RunQuery& query, const std::vector<std::optional<uint32_t>>& keys) {
  const size_t width = query.order.size();
  std::deque<std::string> hexes;
  std::vector<SortValue> values(found.size() * width);
  for (size_t i = 0; i < width; ++i) {
    const auto column = query.order[i].type == FieldType::kMetric && keys[i]
                            ? table.Column(*keys[i])
                            : std::span<const double>();
    for (size_t at = 0; at < found.size(); ++at) {
      const auto* row = found[at];
      values[at * width + i] = column.empty()
                                   ? ValueOf(*row->run, query.order[i], keys[i], hexes)
                                   : ColumnValue(column[static_cast<size_t>(row - table.rows().data())]);
    }
  }
  std::vector<Found> rows;
  rows.reserve(found.size());
  for (size_t at = 0; at < found.size(); ++at) {
    rows.push_back({found[at], values.data() + at * width});
  }
  RunPage page;
  page.matched = rows.size();
  const size_t begin = std::min(query.offset, rows.size());
  const size_t end = begin + std::min(query.limit, rows.size() - begin);
  const auto before = [&](const Found& a, const Found& b) { return Before(a, b, query.order); };
  // What is on the page is found first: most of what is not on it is then never put in order.
  const auto cut = rows.begin() + static_cast<ptrdiff_t>(end);
  if (end < rows.size()) std::nth_element(rows.begin(), cut, rows.end(), before);
  std::sort(rows.begin(), cut, before);
  for (size_t i = begin; i < end; ++i) page.runs.push_back(rows[i].row->run->row.id);
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
  for (const auto& row : table_.rows()) {
    if (row.stale && InView(row, query.view)) stale.push_back(row.run->row.id);
  }
  return stale;
}

// For the metrics of the query that have none.
void RunBook::MakeColumns(const RunQuery& query) const {
  std::vector<uint32_t> missing;
  const auto want = [&](const auto& part) {
    if (part.type != FieldType::kMetric) return;
    const auto key = KnownKey(part.key);
    if (key && table_.Column(*key).empty()) missing.push_back(*key);
  };
  {
    const std::shared_lock lock(mutex_);
    std::for_each(query.filter.begin(), query.filter.end(), want);
    std::for_each(query.order.begin(), query.order.end(), want);
  }
  if (missing.empty()) return;
  const std::unique_lock lock(mutex_);
  for (const uint32_t key : missing) table_.AddColumn(key);
}

RunPage RunBook::Search(const RunQuery& query) const {
  if (UsesMetrics(query)) {
    Refresh(StaleRuns(query));
    MakeColumns(query);
  }
  std::optional<std::set<int64_t>> experiments;
  if (query.experiments) experiments.emplace(query.experiments->begin(), query.experiments->end());
  const std::shared_lock lock(mutex_);
  std::vector<std::optional<uint32_t>> filter_keys;
  for (const auto& clause : query.filter) filter_keys.push_back(KnownKey(clause.key));
  std::vector<std::optional<uint32_t>> order_keys;
  for (const auto& order : query.order) order_keys.push_back(KnownKey(order.key));
  const auto rows = table_.rows();
  const auto passes = [&](const RunTable::Row& row) {
    if (!InView(row, query.view)) return false;
    if (experiments && !experiments->contains(row.experiment)) return false;
    for (size_t i = 0; i < query.filter.size(); ++i) {
      const auto& clause = query.filter[i];
      if (clause.type == FieldType::kMetric && filter_keys[i]) {
        const auto column = table_.Column(*filter_keys[i]);
        if (!column.empty()) {
          const double value = column[static_cast<size_t>(&row - rows.data())];
          if (RunTable::IsMissing(value) || !athanor::Passes(clause, value)) return false;
          continue;
        }
      }
      if (!Passes(*row.run, clause, filter_keys[i])) return false;
    }
    return true;
  };
  std::vector<const RunTable::Row*> found;
  found.reserve(rows.size());
  for (const auto& row : rows) {
    if (passes(row)) found.push_back(&row);
  }
  return Sorted(table_, found, query, order_keys);
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
      table_.Update(*at->second);
      resumes = at->second->resumes;
    }
    const auto summaries = series_.Summaries(id, resumes);
    const std::unique_lock lock(mutex_);
    const auto at = runs_.find(id);
    if (at == runs_.end()) continue;
    if (!summaries) {
      at->second->stale = true;
      table_.Update(*at->second);
      continue;
    }
    at->second->metrics =
        MetricsOf(*summaries, [this](std::string_view name) { return KeyOf(name); });
    table_.UpdateMetrics(*at->second);
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
