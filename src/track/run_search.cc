// The searching half of RunBook: which runs pass, in what order, with fresh metrics.
#include <algorithm>
#include <cmath>
#include <deque>

#include "base/exec/shared_mutex.h"
#include "track/run_book.h"

namespace athanor {
namespace {

constexpr std::string_view kContextKey = "\"mlflow.data.context\"";
constexpr size_t kSeenAtOnce = 1 << 16;  // runs, before others get a turn
constexpr size_t kFilledAtOnce = 1 << 14;
constexpr int kMostTries = 3;

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

// The value of an attribute to sort by. An id is sorted by its bytes, as by its digits.
SortValue AttributeOf(const RunBook& book, const RunEntry& run, const std::string& key) {
  if (key == "start_time") return SortValue::Number(static_cast<double>(run.started_ms));
  if (key == "end_time") {
    if (run.ended_ms == 0) return {};
    return SortValue::Number(static_cast<double>(run.ended_ms));
  }
  if (key == "run_name") return SortValue::Text(run.name);
  if (key == "user_id") return SortValue::Text(book.UserOf(run));
  if (key == "status") return SortValue::Text(NameOf(run.status));
  const auto& bytes = run.id.value.bytes;
  return SortValue::Text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

bool PassesAttribute(const RunBook& book, const RunEntry& run, const Clause& clause) {
  if (clause.key == "start_time") return Passes(clause, static_cast<double>(run.started_ms));
  if (clause.key == "end_time") {
    return run.ended_ms != 0 && Passes(clause, static_cast<double>(run.ended_ms));
  }
  if (clause.key == "run_id") return Passes(clause, run.id.value.ToHex());
  if (clause.key == "artifact_uri") return Passes(clause, book.ArtifactsOf(run));
  return Passes(clause, AttributeOf(book, run, clause.key).text);
}

bool PassesDataset(const RunEntry& run, const Clause& clause) {
  const auto& inputs = run.more().inputs;
  return std::any_of(inputs.begin(), inputs.end(), [&](const InputRow& input) {
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

}  // namespace

// One search: goes through the table in parts, between which others have their turn. It holds at
// most twice as many runs as pages up to this one need (or some thousand): when it has so many, it
// keeps the better half, by quickselect (Hoare 1961), and from then on drops at once what sorts
// after the last of them. Only what is left at the end is sorted.
class RunBook::Finder {
 public:
  Finder(const RunBook& book, const RunQuery& query) : book_(book), query_(query) {
    if (query.experiments) {
      experiments_ = query.experiments;
      std::ranges::sort(*experiments_);
    }
    wanted_ = query.any_order || query.limit > SIZE_MAX - query.offset ? SIZE_MAX
                                                                       : query.offset + query.limit;
  }

  // False: a run has moved since the first part, so the search may have missed it.
  bool Part(size_t most) {
    const ReadLock lock(book_.mutex_);
    const RunTable& table = Table();
    if (!begun_) {
      begun_ = true;
      moves_ = table.moves();
      size_ = table.size();
    }
    if (moves_ != table.moves()) return false;
    FindKeys();
    const size_t end = at_ + std::min(most, size_ - at_);
    // Runs are added as they begin, and mostly asked for newest first: from the end, so that most
    // are known at once to come after the page.
    upwards_ = by_start_ && query_.order[0].ascending;
    if (!SeePlain(end)) {
      for (; at_ < end; ++at_) See(PlaceAt(at_));
    }
    if (at_ == size_) Finish();
    return true;
  }
  bool done() const { return done_; }
  RunPage& page() { return page_; }

 private:
  struct Found {
    uint64_t key = 0;  // by the first part of the order
    uint32_t place = 0;
  };

  // All of this is part of a Part, which holds the lock.
  const RunTable& Table() const {
    book_.mutex_.AssertHeldShared();
    return book_.table_;
  }

  // Again in each part, because names and columns come and go.
  void FindKeys() {
    book_.mutex_.AssertHeldShared();
    const RunTable& table = Table();
    filter_keys_.clear();
    order_keys_.clear();
    columns_.clear();
    for (const auto& clause : query_.filter) filter_keys_.push_back(book_.KnownKey(clause.key));
    for (const auto& order : query_.order) order_keys_.push_back(book_.KnownKey(order.key));
    for (size_t i = 0; i < query_.filter.size(); ++i) {
      const bool metric = query_.filter[i].type == FieldType::kMetric && filter_keys_[i];
      columns_.push_back(metric ? table.Column(*filter_keys_[i]) : std::span<const double>());
    }
    const bool metric =
        !query_.order.empty() && query_.order[0].type == FieldType::kMetric && order_keys_[0];
    first_column_ = metric ? table.Column(*order_keys_[0]) : std::span<const double>();
    by_start_ = !query_.order.empty() && query_.order[0].type == FieldType::kAttribute &&
                query_.order[0].key == "start_time";
    if (query_.after && !query_.after->values.empty()) {
      after_key_ = SortKey(query_.after->values[0].view(), query_.order[0].ascending);
    } else if (query_.after) {
      after_key_ = NewestFirst(query_.after->started_ms);
    }
  }

  bool IsAskedFor(int64_t experiment) const {
    return experiments_->size() == 1 ? experiments_->front() == experiment
                                     : std::ranges::binary_search(*experiments_, experiment);
  }

  bool Passes(size_t place) const {
    book_.mutex_.AssertHeldShared();
    const RunTable& table = Table();
    if (query_.view != ViewType::kAll &&
        ((table.flags()[place] & RunTable::kDeleted) != 0) != (query_.view == ViewType::kDeleted)) {
      return false;
    }
    if (experiments_ && !IsAskedFor(table.experiments()[place])) return false;
    for (size_t i = 0; i < query_.filter.size(); ++i) {
      const auto& clause = query_.filter[i];
      if (!columns_[i].empty()) {
        const double value = columns_[i][place];
        if (RunTable::IsMissing(value) || !athanor::Passes(clause, value)) return false;
      } else if (!book_.Passes(table.run(place), clause, filter_keys_[i])) {
        return false;
      }
    }
    return true;
  }

  size_t PlaceAt(size_t at) const { return upwards_ ? at : size_ - 1 - at; }

  // The most frequent searches, without a filter and by a number: what does not change from run to
  // run is computed once. False: it is another search.
  bool SeePlain(size_t end) {
    if (query_.any_order || !query_.filter.empty()) return false;
    const auto started = Table().started();
    if (query_.order.empty()) {
      SeeEach(end, [&](size_t place) { return NewestFirst(started[place]); });
    } else if (const bool ascending = query_.order[0].ascending; !first_column_.empty()) {
      SeeEach(end, [&](size_t place) { return NumberSortKey(first_column_[place], ascending); });
    } else if (by_start_) {
      SeeEach(end, [&](size_t place) {
        return NumberSortKey(static_cast<double>(started[place]), ascending);
      });
    } else {
      return false;
    }
    return true;
  }

  template <class Key>
  void SeeEach(size_t end, const Key& key_of) {
    const auto flags = Table().flags();
    const auto experiments = Table().experiments();
    const uint8_t looked_at = query_.view == ViewType::kAll ? 0 : RunTable::kDeleted;
    const uint8_t wanted = query_.view == ViewType::kDeleted ? RunTable::kDeleted : 0;
    const bool one = experiments_ && experiments_->size() == 1;
    const int64_t only = one ? experiments_->front() : 0;
    size_t matched = 0;
    for (; at_ < end; ++at_) {
      const size_t place = PlaceAt(at_);
      if ((flags[place] & looked_at) != wanted) continue;
      if (one ? experiments[place] != only : experiments_ && !IsAskedFor(experiments[place]))
        continue;
      ++matched;
      Hold({key_of(place), static_cast<uint32_t>(place)});
    }
    page_.matched += matched;
  }

  void See(size_t place) {
    if (!Passes(place)) return;
    ++page_.matched;
    if (query_.any_order) {
      page_.runs.push_back(Table().run(place).id);
      return;
    }
    Hold({KeyAt(place), static_cast<uint32_t>(place)});
  }

  void Hold(const Found& found) {
    if (query_.after && !IsBehind(found, *query_.after)) return;
    ++behind_;
    if (found.key > bound_ || wanted_ == 0) return;
    found_.push_back(found);
    if (found_.size() >= kLeastHeld && found_.size() / 2 >= wanted_) KeepWanted();
  }

  static uint64_t NewestFirst(int64_t started_ms) {
    return ~(static_cast<uint64_t>(started_ms) ^ 1ull << 63);
  }

  uint64_t KeyAt(size_t place) const {
    if (query_.order.empty()) return NewestFirst(Table().started()[place]);
    const bool ascending = query_.order[0].ascending;
    if (!first_column_.empty()) return NumberSortKey(first_column_[place], ascending);
    if (by_start_) {
      return NumberSortKey(static_cast<double>(Table().started()[place]), ascending);
    }
    return SortKey(ValueOf(Table().run(place), 0), ascending);
  }

  SortValue ValueOf(const RunEntry& run, size_t part) const {
    const OrderBy& order = query_.order[part];
    if (order.type == FieldType::kAttribute) {
      if (order.key != "artifact_uri") return AttributeOf(book_, run, order.key);
      return SortValue::Text(texts_.emplace_back(book_.ArtifactsOf(run)));
    }
    const auto& key = order_keys_[part];
    if (!key) return {};
    if (order.type == FieldType::kMetric) {
      const RunMetric* metric = FindMetric(run, *key);
      return metric == nullptr ? SortValue{} : SortValue::Number(metric->last);
    }
    const auto value = (order.type == FieldType::kParam ? run.params : run.tags).Find(*key);
    return value ? SortValue::Text(*value) : SortValue{};
  }

  // Whether runs that share this key are equal by the first part of the order. Numbers are; the key
  // of a text has only its first bytes, and NaN and missing values share the last key.
  bool SaysAll(uint64_t key) const {
    return (!first_column_.empty() || by_start_) && key != UINT64_MAX;
  }

  bool Before(const Found& a, const Found& b) const {
    if (a.key != b.key) return a.key < b.key;
    const auto started = Table().started();
    const size_t next = SaysAll(a.key) ? 1 : 0;
    if (next >= query_.order.size() && started[a.place] != started[b.place]) {
      return started[a.place] > started[b.place];
    }
    const RunEntry& one = Table().run(a.place);
    const RunEntry& two = Table().run(b.place);
    for (size_t i = next; i < query_.order.size(); ++i) {
      const int way = Compare(ValueOf(one, i), ValueOf(two, i), query_.order[i].ascending);
      texts_.clear();
      if (way != 0) return way < 0;
    }
    if (one.started_ms != two.started_ms) return one.started_ms > two.started_ms;
    return one.id < two.id;
  }

  bool IsBehind(const Found& found, const RunPlace& place) const {
    if (found.key != after_key_) return found.key > after_key_;
    const RunEntry& run = Table().run(found.place);
    for (size_t i = SaysAll(found.key) ? 1 : 0; i < query_.order.size(); ++i) {
      const int way = Compare(ValueOf(run, i), place.values[i].view(), query_.order[i].ascending);
      texts_.clear();
      if (way != 0) return way > 0;
    }
    if (run.started_ms != place.started_ms) return run.started_ms < place.started_ms;
    return place.id < run.id;
  }

  // Drops what will not be on the page, and sets the bound for what comes later.
  void KeepWanted() {
    if (found_.size() <= wanted_) return;
    const auto cut = found_.begin() + static_cast<ptrdiff_t>(wanted_);
    std::nth_element(found_.begin(), cut - 1, found_.end(),
                     [this](const Found& a, const Found& b) { return Before(a, b); });
    found_.erase(cut, found_.end());
    bound_ = found_.back().key;
  }

  void Finish() {
    done_ = true;
    if (query_.any_order) return;
    KeepWanted();
    std::sort(found_.begin(), found_.end(),
              [this](const Found& a, const Found& b) { return Before(a, b); });
    for (size_t i = std::min(query_.offset, found_.size()); i < found_.size(); ++i) {
      page_.runs.push_back(Table().run(found_[i].place).id);
      page_.places.push_back(found_[i].place);
    }
    if (behind_ > wanted_ && !page_.runs.empty()) {
      page_.next = PlaceOf(Table().run(found_.back().place));
    }
  }

  RunPlace PlaceOf(const RunEntry& run) const {
    RunPlace place;
    for (size_t i = 0; i < query_.order.size(); ++i) {
      const SortValue value = ValueOf(run, i);
      place.values.push_back({value.rank, value.number, std::string(value.text), value.is_text});
    }
    texts_.clear();
    place.started_ms = run.started_ms;
    place.id = run.id;
    return place;
  }

  static constexpr size_t kLeastHeld = 4096;  // for a short page, fewer would be selected too often

  const RunBook& book_;
  const RunQuery& query_;
  std::optional<std::vector<int64_t>> experiments_;  // in order
  size_t wanted_ = 0;
  bool begun_ = false;
  size_t size_ = 0;  // of the table when it began: later runs are not looked at
  size_t at_ = 0;    // how many were looked at
  uint64_t moves_ = 0;
  size_t behind_ = 0;            // runs that pass and are not on pages before
  uint64_t bound_ = UINT64_MAX;  // the highest key that may be on the page
  uint64_t after_key_ = 0;
  bool by_start_ = false;
  bool upwards_ = false;  // in the order of places, or against it
  bool done_ = false;
  std::vector<std::optional<uint32_t>> filter_keys_;
  std::vector<std::optional<uint32_t>> order_keys_;
  std::vector<std::span<const double>> columns_;  // of the filter's metrics
  std::span<const double> first_column_;
  mutable std::deque<std::string> texts_;  // that values are views of
  std::vector<Found> found_;
  RunPage page_;
};

bool RunBook::Passes(const RunEntry& run, const Clause& clause,
                     const std::optional<uint32_t>& key) const {
  switch (clause.type) {
    case FieldType::kAttribute:
      return PassesAttribute(*this, run, clause);
    case FieldType::kDataset:
      return PassesDataset(run, clause);
    case FieldType::kMetric: {
      const RunMetric* metric = key ? FindMetric(run, *key) : nullptr;
      return metric != nullptr && athanor::Passes(clause, metric->last);
    }
    case FieldType::kParam:
    case FieldType::kTag:
      break;
  }
  const auto value =
      key ? (clause.type == FieldType::kParam ? run.params : run.tags).Find(*key) : std::nullopt;
  // A run without the key passes only IS NULL.
  if (!value) return clause.comparator == Comparator::kIsNull;
  return athanor::Passes(clause, *value);
}

// For the metrics of the query that have no column yet; some rows at a time, because that needs the
// write lock.
void RunBook::MakeColumns(const RunQuery& query) const {
  std::vector<uint32_t> missing;
  const auto want = [&](const auto& part) {
    mutex_.AssertHeldShared();
    if (part.type != FieldType::kMetric) return;
    const auto key = KnownKey(part.key);
    if (key && table_.Column(*key).empty()) missing.push_back(*key);
  };
  {
    const ReadLock lock(mutex_);
    std::for_each(query.filter.begin(), query.filter.end(), want);
    std::for_each(query.order.begin(), query.order.end(), want);
  }
  for (const uint32_t key : missing) {
    for (bool more = true; more;) {
      const WriteLock lock(mutex_);
      more = table_.FillColumn(key, kFilledAtOnce);
    }
  }
}

RunPage RunBook::Search(const RunQuery& query) const {
  if (UsesMetrics(query)) {
    Refresh(StaleRuns(query.experiments, query.view));
    MakeColumns(query);
  }
  // Runs are rarely removed; if it happens all the time, the table is searched in one go.
  for (int tries = 0;; ++tries) {
    Finder finder(*this, query);
    while (finder.Part(tries < kMostTries ? kSeenAtOnce : SIZE_MAX)) {
      if (finder.done()) return std::move(finder.page());
    }
  }
}

}  // namespace athanor
