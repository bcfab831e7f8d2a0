#include "place/queue.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "place/amounts.h"
#include "place/reasons.h"

namespace athanor {
namespace {

// A limit beyond this is as good as none.
constexpr Millis kLongest = std::chrono::hours(24 * 365 * 10);

class Planner {
 public:
  explicit Planner(const QueueView& view)
      : view_(view),
        all_(Amounts::Of(view.inventory)),
        free_(all_),
        device_taken_(view.inventory.gpus, false),
        seen_by_(view.inventory.gpus),
        decisions_(view.waiting.size()) {
    Amounts held;
    for (const RunningJob& job : view.running) {
      held = held.Plus(Amounts::Of(job.placement));
      for (uint32_t device : job.placement.gpus) {
        if (device < device_taken_.size()) device_taken_[device] = true;
      }
      Share(job.placement.auto_gpus);
      Hold hold{&job, job.ends_by};
      if (hold.ends_by && *hold.ends_by <= view.now) hold.ends_by.reset();
      holds_.push_back(hold);
    }
    free_ = all_.Minus(held);
    overfull_ = !all_.Holds(held);
    // A device that is held twice, or is not of this machine, must not count as free.
    free_.gpus = std::min<uint64_t>(free_.gpus,
                                    std::count(device_taken_.begin(), device_taken_.end(), false));
  }

  std::vector<Decision> Run() {
    for (size_t index : Line()) Consider(index);
    // After all reservations: no job sees a GPU that another is given in the same turn.
    for (size_t index : sharing_) {
      for (auto& host : decisions_[index].hosts) {
        host.auto_gpus = OpenDevices();
        Share(host.auto_gpus);
      }
    }
    Explain();
    return std::move(decisions_);
  }

 private:
  const WaitingJob& Job(size_t index) const { return view_.waiting[index]; }

  // If it were placed now.
  std::optional<WallTime> LatestEnd(const WaitingJob& job) const {
    if (job.hold_limit <= Millis(0) || job.hold_limit > kLongest) return std::nullopt;
    return WallTime{view_.now.ms + job.hold_limit.count()};
  }

  // Indexes of the jobs that may start today, in order; the others are answered here.
  std::vector<size_t> Line() {
    std::vector<size_t> line;
    for (size_t i = 0; i < view_.waiting.size(); ++i) {
      decisions_[i].job = Job(i).id;
      decisions_[i].overtaken = Job(i).overtaken;
      if (!all_.Holds(Amounts::Of(Job(i).need))) {
        decisions_[i].wait = NeverFits(Job(i), view_.inventory);
      } else if (Job(i).not_before > view_.now) {
        decisions_[i].wait = BackingOff(Job(i), view_.now);
      } else {
        line.push_back(i);
      }
    }
    std::sort(line.begin(), line.end(), [this](size_t a, size_t b) {
      const WaitingJob& x = Job(a);
      const WaitingJob& y = Job(b);
      // Ids increase, whatever the clock does.
      return std::tie(y.priority, x.id) < std::tie(x.priority, y.id);
    });
    return line;
  }

  void Consider(size_t index) {
    const Amounts need = Amounts::Of(Job(index).need);
    const bool fits = free_.Holds(need);
    if (fits && (blocked_.empty() || MayOvertake(Job(index)))) {
      Place(index);
      for (size_t earlier : blocked_) ++decisions_[earlier].overtaken;
      return;
    }
    if (blocked_.empty()) Reserve(Job(index));
    blocked_.push_back(index);
  }

  void Place(size_t index) {
    const WaitingJob& job = Job(index);
    auto& hosts = decisions_[index].hosts;
    hosts.resize(std::max(job.need.nodes, 1u));
    for (auto& placement : hosts) {
      placement.backend = view_.backend;
      placement.cpu_millis = job.need.cpu_millis;
      placement.memory_bytes = job.need.memory_bytes;
      placement.simulated = job.need.simulated;
      if (job.need.gpus == 0) continue;
      placement.gpus = OpenDevices();
      placement.gpus.resize(job.need.gpus);
      std::sort(placement.gpus.begin(), placement.gpus.end());
      for (uint32_t device : placement.gpus) device_taken_[device] = true;
    }
    if (job.need.auto_gpus) sharing_.push_back(index);
    free_ = free_.Minus(Amounts::Of(job.need));
    started_.push_back({job.id, job.name, Together(hosts), {}});
    started_.back().ends_by = LatestEnd(job);
  }

  // Devices that no job reserved, starting with those that the fewest jobs share: most scripts use
  // the first one they see.
  std::vector<uint32_t> OpenDevices() const {
    std::vector<uint32_t> open;
    for (uint32_t device = 0; device < device_taken_.size(); ++device) {
      if (!device_taken_[device]) open.push_back(device);
    }
    std::stable_sort(open.begin(), open.end(),
                     [this](uint32_t a, uint32_t b) { return seen_by_[a] < seen_by_[b]; });
    return open;
  }

  void Share(const std::vector<uint32_t>& devices) {
    for (size_t i = 0; i < devices.size(); ++i) {
      if (devices[i] >= seen_by_.size()) continue;
      if (i == 0) ++seen_by_[devices[i]].first;
      ++seen_by_[devices[i]].second;
    }
  }

  // When the head can start at the latest, and what it will leave free then.
  void Reserve(const WaitingJob& head) {
    head_starving_ =
        head.overtaken > kMaxOvertaken || view_.now.ms - head.created.ms > kMaxHeadWait.count();
    const Amounts need = Amounts::Of(head.need);
    head_need_ = need;
    // The machine became smaller than its jobs: an end frees less than was held.
    if (overfull_) return;
    Amounts room = free_;
    const std::vector<Hold> holds = AllHolds();
    for (size_t i = 0; i < holds.size() && holds[i].ends_by; ++i) {
      if (head_start_ && *holds[i].ends_by > *head_start_) break;
      room = room.Plus(Amounts::Of(holds[i].job->placement));
      if (room.Holds(need)) head_start_ = holds[i].ends_by;
    }
    left_at_start_ = room.Minus(need);
  }

  bool MayOvertake(const WaitingJob& job) {
    const Amounts need = Amounts::Of(job.need);
    if (head_start_ && !head_starving_) {
      const std::optional<WallTime> end = LatestEnd(job);
      if (end && *end <= *head_start_) return true;
      if (!left_at_start_.Holds(need)) return false;
      left_at_start_ = left_at_start_.Minus(need);
      return true;
    }
    // free_ shrinks with each job that starts, so this keeps the head's share complete.
    return free_.Minus(head_need_).Holds(need);
  }

  std::vector<Hold> AllHolds() const {
    std::vector<Hold> holds = holds_;
    for (const RunningJob& job : started_) holds.push_back({&job, job.ends_by});
    std::sort(holds.begin(), holds.end(), [](const Hold& a, const Hold& b) {
      if (a.ends_by.has_value() != b.ends_by.has_value()) return a.ends_by.has_value();
      return std::tie(a.ends_by, a.job->id) < std::tie(b.ends_by, b.job->id);
    });
    return holds;
  }

  // After all placements, so that all texts have the same free amounts.
  void Explain() {
    if (blocked_.empty()) return;
    const WaitingJob& head = Job(blocked_.front());
    decisions_[blocked_.front()].wait =
        HeadLacks(head, free_, view_.inventory, AllHolds(), view_.now);
    // Thousands wait with the same need; the text is made once for each kind of wait.
    std::map<std::tuple<uint32_t, uint32_t, uint64_t, uint32_t, bool, size_t>, Cause> made;
    for (size_t ahead = 1; ahead < blocked_.size(); ++ahead) {
      const WaitingJob& job = Job(blocked_[ahead]);
      const bool room = free_.Holds(Amounts::Of(job.need));
      // If there is room, the position in line is not shown; far back it is shown roughly.
      const size_t place = room ? 0 : std::min<size_t>(ahead, 101);
      Cause& cause = made[{job.need.nodes, job.need.cpu_millis, job.need.memory_bytes,
                           job.need.gpus, room && head.priority > job.priority, place}];
      if (cause.kind.empty()) {
        cause = room ? NotItsTurn(job, head, free_, view_.inventory)
                     : Lacks(job, free_, view_.inventory, place);
      }
      decisions_[blocked_[ahead]].wait = cause;
    }
  }

  const QueueView& view_;
  const Amounts all_;
  Amounts free_;
  bool overfull_ = false;
  std::vector<bool> device_taken_;
  // By how many jobs that reserved none each device is seen first, and at all.
  std::vector<std::pair<uint32_t, uint32_t>> seen_by_;
  std::vector<Hold> holds_;
  std::vector<RunningJob> started_;
  std::vector<Decision> decisions_;
  std::vector<size_t> sharing_;  // placed, and to see the GPUs that no job reserved
  std::vector<size_t> blocked_;  // in line order; the first is the head

  Amounts head_need_;
  Amounts left_at_start_;
  std::optional<WallTime> head_start_;
  bool head_starving_ = false;
};

}  // namespace

Placement Together(const std::vector<Placement>& hosts) {
  Placement all = hosts.front();
  for (size_t i = 1; i < hosts.size(); ++i) {
    all.cpu_millis += hosts[i].cpu_millis;
    all.memory_bytes += hosts[i].memory_bytes;
    all.gpus.insert(all.gpus.end(), hosts[i].gpus.begin(), hosts[i].gpus.end());
    all.simulated = all.simulated || hosts[i].simulated;
  }
  return all;
}

std::vector<Decision> Plan(const QueueView& view) { return Planner(view).Run(); }

}  // namespace athanor
