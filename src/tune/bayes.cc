// The Bayesian strategy: fits, in a schedule that depends on nothing but how many trials were
// told, and the search for the next point.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "tune/acquisition.h"
#include "tune/output.h"
#include "tune/search.h"
#include "tune/strategies.h"

namespace athanor::tune {

struct Memory::Fits {
  std::map<size_t, Theta> objective, labels;
};

Memory::Memory() : fits_(std::make_unique<Fits>()) {}
Memory::~Memory() = default;
Memory::Memory(Memory&&) noexcept = default;
Memory& Memory::operator=(Memory&&) noexcept = default;

namespace {

constexpr size_t kMostPoints = 300;   // a process is conditioned on
constexpr size_t kLeastDone = 4;      // before there is a model
constexpr size_t kMostRunning = 256;  // fantasised
constexpr size_t kRecent = 48;        // trials whose failures set how much failing weighs

struct Data {
  std::vector<Point> points;
  std::vector<double> values;
};

// The trial count whose fit serves n trials: every one at first, then ever fewer.
size_t RefitAt(size_t n) {
  const size_t step = n < 40 ? 1 : n < 64 ? 2 : n < 128 ? 4 : n < 512 ? 16 : 64;
  return n - n % step;
}

// The earlier fit that a fit at n starts from: so that a fit needs few others, however long the
// history. 0: none.
size_t AnchorBefore(size_t n) {
  size_t best = 0;
  for (size_t power = 8; power < n; power *= 2) {
    best = power;
    if (power + power / 2 < n) best = power + power / 2;
  }
  return best;
}

bool IsAnchor(size_t n) { return n >= 8 && AnchorBefore(n + 1) == n; }

// Of many trials, the best third of the room and an even choice of the others.
std::vector<size_t> Chosen(const std::vector<double>& values) {
  std::vector<size_t> all(values.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (all.size() <= kMostPoints) return all;
  std::stable_sort(all.begin(), all.end(),
                   [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<size_t> kept(all.begin(), all.begin() + kMostPoints / 3);
  std::vector<size_t> rest(all.begin() + kMostPoints / 3, all.end());
  std::sort(rest.begin(), rest.end());
  const size_t room = kMostPoints - kept.size();
  for (size_t i = 0; i < room; ++i) kept.push_back(rest[i * rest.size() / room]);
  std::sort(kept.begin(), kept.end());
  return kept;
}

Data Reduced(Data data) {
  const auto kept = Chosen(data.values);
  if (kept.size() == data.points.size()) return data;
  Data out;
  for (size_t i : kept) {
    out.points.push_back(std::move(data.points[i]));
    out.values.push_back(data.values[i]);
  }
  return out;
}

class Bayes {
 public:
  Bayes(const Space& space, const Settings& settings, const History& history, Memory& memory)
      : space_(space), settings_(settings), history_(history), fits_(memory.fits()) {
    for (size_t i = 0; i < space.size(); ++i) {
      const auto& p = space.parameters()[i];
      if (p.fixed()) continue;
      free_.push_back(i);
      categorical_.push_back(p.kind == Kind::kChoice);
    }
  }

  std::vector<Point> Points() {
    const size_t told = history_.told().size();
    size_t done = 0;
    for (size_t i : history_.told()) done += history_.trials()[i].state == Trial::State::kDone;
    const size_t first = std::clamp<size_t>(free_.size() + 2, 6, 16);
    if (free_.empty() || done < kLeastDone || history_.trials().size() < first) return {};
    running_ = history_.Running();
    if (running_.size() > kMostRunning) running_.resize(kMostRunning);

    const Data data = Reduced(Objective(told));
    Gp gp(categorical_, data.points.size() + running_.size() + 1);
    gp.SetData(data.points, WarpOutputs(data.values));
    if (!gp.Condition(ThetaFor(fits_.objective, told, false))) return {};
    std::optional<Gp> labels;
    Labels scale;
    if (told - done >= 2) {
      scale = LabelsOf(told);
      labels.emplace(categorical_, scale.data.points.size() + running_.size() + 1);
      labels->SetData(scale.data.points, scale.data.values);
      if (!labels->Condition(ThetaFor(fits_.labels, told, true))) labels.reset();
    }
    return Search(gp, data, labels ? &*labels : nullptr, scale);
  }

 private:
  struct Labels {
    Data data;  // values centred and scaled
    double offset = 0, scale = 1;
  };

  Point Free(const Point& point) const {
    Point out;
    for (size_t i : free_) out.push_back(point[i]);
    return out;
  }

  // Done trials among the first n told.
  Data Objective(size_t n) const {
    Data data;
    for (size_t i = 0; i < n; ++i) {
      const auto& trial = history_.trials()[history_.told()[i]];
      if (trial.state != Trial::State::kDone) continue;
      data.points.push_back(Free(trial.point));
      data.values.push_back(trial.value);
    }
    return data;
  }

  // All of the first n told, +1 for done and -1 for failed.
  Labels LabelsOf(size_t n) const {
    Labels out;
    const size_t from = n > kMostPoints ? n - kMostPoints : 0;
    for (size_t i = from; i < n; ++i) {
      const auto& trial = history_.trials()[history_.told()[i]];
      out.data.points.push_back(Free(trial.point));
      out.data.values.push_back(trial.state == Trial::State::kDone ? 1.0 : -1.0);
    }
    for (double v : out.data.values) out.offset += v / static_cast<double>(n - from);
    out.scale = std::sqrt(std::max(1.0 - out.offset * out.offset, 1e-4));
    for (double& v : out.data.values) v = (v - out.offset) / out.scale;
    return out;
  }

  Theta ThetaFor(std::map<size_t, Theta>& known, size_t told, bool labels) {
    return ThetaAt(known, RefitAt(told), labels);
  }

  Theta ThetaAt(std::map<size_t, Theta>& known, size_t n, bool labels) {
    if (const auto found = known.find(n); found != known.end()) return found->second;
    Data data = labels ? LabelsOf(n).data : Reduced(Objective(n));
    FitOptions options;
    options.smooth = labels;
    options.warped = !labels && data.points.size() >= 2 * free_.size();
    Gp gp(categorical_, data.points.size() + 1);
    gp.SetData(data.points, labels ? data.values : WarpOutputs(data.values));
    const Theta centre = gp.PriorCentre(options);
    if (data.points.size() < kLeastDone) return known[n] = centre;
    const size_t before = AnchorBefore(n);
    options.evaluations = n < 100 ? 40 : n < 160 ? 25 : n < 320 ? 15 : 10;
    if (before == 0) return known[n] = gp.Fit(centre, options).theta;
    auto fitted = gp.Fit(ThetaAt(known, before, labels), options);
    if (n < 32 || (IsAnchor(n) && n <= 64)) {
      const auto anew = gp.Fit(centre, options);
      if (anew.value < fitted.value) fitted = anew;
    }
    return known[n] = fitted.theta;
  }

  std::vector<Point> Search(Gp& gp, const Data& data, Gp* labels, const Labels& scale) {
    std::vector<Point> running;
    for (size_t i : running_) running.push_back(Free(history_.trials()[i].point));
    for (const auto& point : running) {
      gp.Fantasise(point);
      if (labels) labels->Fantasise(point);
    }
    std::vector<Point> known = data.points;
    known.insert(known.end(), running.begin(), running.end());
    std::vector<Prediction> predicted;
    gp.Predict(known, predicted);
    std::vector<size_t> order(known.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return predicted[a].mean < predicted[b].mean;
    });
    std::vector<Point> good;
    for (size_t i = 0; i < std::min<size_t>(5, order.size()); ++i) good.push_back(Whole(known[order[i]]));

    Acquisition acquisition(gp, free_, predicted[order.front()].mean);
    if (labels) acquisition.Feasible(*labels, scale.offset, scale.scale, LeastChance());
    Random random(settings_.seed, history_.asks(), kSearch);
    SearchSize size;
    return SearchMixed(space_, acquisition, good, random, size);
  }

  Point Whole(const Point& free) const {
    Point out(space_.size(), 0.0);
    for (size_t i = 0; i < space_.size(); ++i) {
      if (space_.parameters()[i].fixed() && space_.parameters()[i].kind != Kind::kConstant) out[i] = 0.5;
    }
    for (size_t i = 0; i < free_.size(); ++i) out[free_[i]] = free[i];
    space_.Snap(out);
    return out;
  }

  // A search that keeps failing is drawn back harder.
  double LeastChance() const {
    const auto& told = history_.told();
    const size_t from = told.size() > kRecent ? told.size() - kRecent : 0;
    double failed = 0;
    for (size_t i = from; i < told.size(); ++i) {
      failed += history_.trials()[told[i]].state == Trial::State::kFailed;
    }
    const double share = failed / static_cast<double>(told.size() - from);
    return std::clamp(0.5 + 2.5 * (share - 0.05), 0.5, 0.985);
  }

  const Space& space_;
  const Settings& settings_;
  const History& history_;
  Memory::Fits& fits_;
  std::vector<size_t> free_;
  std::vector<char> categorical_;
  std::vector<size_t> running_;
};

}  // namespace

std::vector<Point> BayesPoints(const Space& space, const Settings& settings,
                               const History& history, Memory& memory) {
  return Bayes(space, settings, history, memory).Points();
}

}  // namespace athanor::tune
