// The Bayesian strategy: fits, in a schedule that depends only on how many trials were told, and
// the search for the next point. Follows Jones et al. 1998 (EGO: a Gaussian process, then the point
// of the greatest expected improvement). The turns, the schedule and the least chance not to fail
// are ours; bench/tune measures the whole.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>

#include "tune/gp/acquisition.h"
#include "tune/output.h"
#include "tune/search.h"
#include "tune/strategies.h"

namespace athanor::tune {

struct Memory::Fits {
  std::map<size_t, Theta> objective, plain, labels;  // plain: without the additive part
};

Memory::Memory() : fits_(std::make_unique<Fits>()) {}
Memory::~Memory() = default;
Memory::Memory(Memory&&) noexcept = default;
Memory& Memory::operator=(Memory&&) noexcept = default;

namespace {

constexpr size_t kMostPoints = 300;   // a process is conditioned on
constexpr size_t kMostFitted = 200;   // hyper-parameters are fitted to
constexpr size_t kLeastDone = 4;      // before there is a model
constexpr size_t kMostRunning = 256;  // fantasised
constexpr size_t kRecent = 48;        // trials whose failures set how much failing weighs
constexpr size_t kPatience = 8;       // trials, and one a dimension, that may bring nothing

// The most likely model is too sure of itself: a parameter that made no difference where trials
// were is taken to make none anywhere, and the search would refine one place for ever. So asks take
// turns, from close to the best to bold.
struct Turn {
  double margin;  // by which a trial is to beat the best, in deviations of the values
  bool additive;  // whether the kernel has its additive part
  bool doubting;  // no length scale is longer than its prior expects: no parameter is ignored
};
constexpr Turn kTurns[] = {
    {0.0, true, false}, {0.01, false, false}, {0.05, true, false}, {0.1, false, true}};

struct Data {
  std::vector<Point> points;
  std::vector<double> values;
};

// The trial count whose fit serves n trials: every one at first, then ever fewer, because a fit
// costs more then and one more trial changes it less.
size_t RefitAt(size_t n) {
  const size_t step = n < 40 ? 1 : n < 64 ? 2 : n < 128 ? 4 : n < 512 ? 16 : 64;
  return n - n % step;
}

// The earlier fit from which a fit at n starts: the power of two below, so that a process that
// knows no fit yet makes one for each doubling and gets the same bytes. 0: none.
size_t AnchorBefore(size_t n) {
  size_t best = 0;
  for (size_t at = 8; at < n; at *= 2) best = at;
  return best;
}

bool IsAnchor(size_t n) { return n >= 8 && AnchorBefore(n + 1) == n; }

// Of many trials, the best third of the room, around which the model must be good, and an even
// choice of the others, in the order of telling.
std::vector<size_t> Chosen(const std::vector<double>& values, size_t most) {
  std::vector<size_t> all(values.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (all.size() <= most) return all;
  std::stable_sort(all.begin(), all.end(),
                   [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<size_t> kept(all.begin(), all.begin() + most / 3);
  std::vector<size_t> rest(all.begin() + most / 3, all.end());
  std::sort(rest.begin(), rest.end());
  const size_t room = most - kept.size();
  for (size_t i = 0; i < room; ++i) kept.push_back(rest[i * rest.size() / room]);
  std::sort(kept.begin(), kept.end());
  return kept;
}

Data Reduced(Data data, size_t most) {
  const auto kept = Chosen(data.values, most);
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
    // First a Sobol sequence, about a point for each dimension.
    const size_t first = std::clamp<size_t>(free_.size() + 2, 6, 16);
    if (free_.empty() || done < kLeastDone || history_.trials().size() < first) return {};
    running_ = history_.Running();
    if (running_.size() > kMostRunning) running_.resize(kMostRunning);

    const Data data = Reduced(Objective(told), kMostPoints);
    Gp gp(categorical_, data.points.size() + running_.size() + 1);
    gp.SetData(data.points, WarpOutputs(data.values));
    TakeTurn();
    Theta theta = ThetaFor(turn_.additive ? fits_.objective : fits_.plain, told, false);
    if (turn_.doubting) {
      const double centre = gp.PriorCentre({}).front();
      for (size_t d = 0; d < free_.size(); ++d) theta[d] = std::min(theta[d], centre);
    }
    if (!gp.Condition(theta)) return {};
    // From the second failure on, there is also a model of where trials fail.
    std::optional<Gp> labels;
    Labels scale;
    if (told - done >= 2) {
      scale = LabelsOf(told, kMostPoints);
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
  Labels LabelsOf(size_t n, size_t most) const {
    Labels out;
    const size_t from = n > most ? n - most : 0;
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
    Data data = labels ? LabelsOf(n, kMostFitted).data : Reduced(Objective(n), kMostFitted);
    FitOptions options;
    options.smooth = labels;
    // Few points cannot tell a warp from a length scale.
    options.warped = !labels && data.points.size() >= 2 * free_.size();
    options.additive = !labels && turn_.additive;
    Gp gp(categorical_, data.points.size() + 1);
    gp.SetData(data.points, labels ? data.values : WarpOutputs(data.values));
    const Theta centre = gp.PriorCentre(options);
    if (data.points.size() < kLeastDone) return known[n] = centre;
    const size_t before = AnchorBefore(n);
    // It starts close, so that few steps do where each is expensive.
    options.evaluations = n < 48 ? 40 : n < 100 ? 25 : n < 160 ? 15 : 10;
    if (before == 0) return known[n] = gp.Fit(centre, options).theta;
    auto fitted = gp.Fit(ThetaAt(known, before, labels), options);
    // Few points, or labels, may fit in several ways, and later fits start from anchors: here also
    // from the prior's centre, and the better one counts.
    if (n < 32 || labels || (IsAnchor(n) && n <= 64)) {
      const auto anew = gp.Fit(centre, options);
      if (anew.value < fitted.value) fitted = anew;
    }
    return known[n] = fitted.theta;
  }

  std::vector<Point> Search(Gp& gp, const Data& data, Gp* labels, const Labels& scale) {
    // Running trials first: what they will show is not to be looked for again.
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
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return predicted[a].mean < predicted[b].mean; });
    std::vector<Point> good;
    for (size_t i = 0; i < std::min<size_t>(5, order.size()); ++i)
      good.push_back(Whole(known[order[i]]));

    // The best prediction at a trial, not the best value, which may be luck.
    Acquisition acquisition(gp, free_, predicted[order.front()].mean - turn_.margin);
    if (labels) acquisition.Feasible(*labels, scale.offset, scale.scale, LeastChance());
    Random random(settings_.seed, history_.asks(), kSearch);
    return SearchMixed(space_, acquisition, good, random, size_);
  }

  Point Whole(const Point& free) const {
    Point out(space_.size(), 0.0);
    for (size_t i = 0; i < space_.size(); ++i) {
      if (space_.parameters()[i].fixed() && space_.parameters()[i].kind != Kind::kConstant)
        out[i] = 0.5;
    }
    for (size_t i = 0; i < free_.size(); ++i) out[free_[i]] = free[i];
    space_.Snap(out);
    return out;
  }

  // Trials done since the best improved by more than a hundredth of the distance between it and the
  // median.
  size_t Fruitless() const {
    std::vector<double> values;
    for (size_t i : history_.told()) {
      const auto& trial = history_.trials()[i];
      if (trial.state == Trial::State::kDone) values.push_back(trial.value);
    }
    auto sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const double little = 0.01 * (sorted[sorted.size() / 2] - sorted.front());
    double best = values.front();
    size_t since = 0;
    for (double value : values) {
      ++since;
      if (!(value < best - little)) continue;
      best = value;
      since = 0;
    }
    return since;
  }

  // The longer nothing improves, the more turns leave the area of the good trials. First the
  // boldest (3): it climbs from 16 random points. Then 1 and later 2: the best of 8 random points.
  void TakeTurn() {
    const size_t number = history_.asks() % std::size(kTurns);
    const size_t lean = Fruitless() / (kPatience + free_.size());
    turn_ = kTurns[number];
    if (number == 3 && lean >= 1) {
      size_ = {16, 0, 0, 16, 30, 0};
    } else if ((number == 1 && lean >= 2) || (number == 2 && lean >= 4)) {
      size_ = {8, 0, 0, 0, 0, 0};
      turn_.doubting = true;
    }
  }

  // The more of the recent trials failed (beyond 4 %), the surer a point must be not to fail. In a
  // bold turn it must be, too: the most hope is left where trials failed and showed nothing.
  double LeastChance() const {
    const auto& told = history_.told();
    const size_t from = told.size() > kRecent ? told.size() - kRecent : 0;
    double failed = 0;
    for (size_t i = from; i < told.size(); ++i) {
      failed += history_.trials()[told[i]].state == Trial::State::kFailed;
    }
    const double share = failed / static_cast<double>(told.size() - from);
    const double least = turn_.margin > 0 ? 0.75 : 0.5;
    return std::clamp(least + 4.0 * (share - 0.04), least, 0.985);
  }

  const Space& space_;
  const Settings& settings_;
  const History& history_;
  Memory::Fits& fits_;
  std::vector<size_t> free_;
  std::vector<char> categorical_;
  std::vector<size_t> running_;
  Turn turn_ = kTurns[0];
  SearchSize size_;
};

}  // namespace

std::vector<Point> BayesPoints(const Space& space, const Settings& settings, const History& history,
                               Memory& memory) {
  return Bayes(space, settings, history, memory).Points();
}

}  // namespace athanor::tune
