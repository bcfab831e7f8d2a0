#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <functional>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
#include "base/ids.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "cli/fetch.h"
#include "cli/preflight.h"
#include "cli/screen/output.h"
#include "cli/screen/preflight_report.h"
#include "cli/screen/reading.h"
#include "job/codec.h"
#include "run/supervisor/launch_supervisor.h"

namespace athanor {
namespace {

constexpr Millis kPoll{100};
constexpr Millis kShortest{3'000};      // of the first attempt: below this, the speed is unknown
constexpr Millis kAfterResume{10'000};  // at most, once the script runs again
constexpr Millis kGrace{20'000};
constexpr size_t kReadings = 4;  // of progress, to continue early

std::atomic<bool> interrupted{false};

// Ctrl-C ends the short run too: its data is about to go.
class CatchInterrupt {
 public:
  CatchInterrupt() {
    interrupted = false;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    ::sigaction(SIGINT, &action, &before_);
  }
  ~CatchInterrupt() { ::sigaction(SIGINT, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

struct Seen {
  JobRecord record;
  Json view;

  const Attempt* attempt(uint32_t number) const {
    return record.attempts.size() >= number ? &record.attempts[number - 1] : nullptr;
  }
  std::optional<int64_t> last_step() const {
    std::optional<int64_t> last;
    if (!view.contains("metrics")) return last;
    for (const auto& metric : view["metrics"]) {
      if (metric.contains("last_step")) {
        last = std::max(last.value_or(INT64_MIN), Number(metric, "last_step"));
      }
    }
    return last;
  }
};

class Preflight {
 public:
  Preflight(const Common& common, const RunOptions& options, const PreparedJob& prepared,
            Client& client)
      : common_(common), options_(options), prepared_(prepared), client_(client) {}

  Result<PreflightOutcome> Run();

 private:
  Result<JobSpec> Derive(const std::string& data_dir);
  Status Limits(Json& machine);
  Result<Seen> Look();
  Result<Seen> Until(const std::function<bool(const Seen&)>& done);
  Status Watch();
  Status GoOn();
  Status GoOnAsNewJob();
  void Judge(const Seen& seen, bool second);
  void Stop();
  void Report(const std::vector<PreflightCheck>& checks, const RunEstimate& estimate, bool passed);
  void Say(const std::string& text) const {
    if (!common_.quiet && !common_.json) std::fprintf(stderr, "  preflight   %s\n", text.c_str());
  }
  static bool Over(const Seen& seen) { return IsTerminal(seen.record.state); }

  const Common& common_;
  const RunOptions& options_;
  const PreparedJob& prepared_;
  Client& client_;
  SystemClock clock_;
  Millis budget_{30'000};
  PreflightFacts facts_;
  std::string job_;                // id of what runs now
  std::vector<std::string> jobs_;  // all that were made
};

// What the real machine has, and what it costs.
Status Preflight::Limits(Json& machine) {
  const auto& resources = prepared_.spec.resources;
  facts_.nodes = resources.nodes;
  ATHANOR_TRY(auto server, client_.Get("/api/v1/server"));
  machine = server["machine"];
  if (!resources.type.empty()) {
    ATHANOR_TRY(auto catalogue, LoadCatalogue(common_.home.root + "/types.csv"));
    ATHANOR_TRY(auto type, catalogue.Find(resources.type));
    facts_.memory_limit = type.memory_bytes;
    facts_.limit_of = type.name;
    facts_.price = PriceOfType(type, resources.spot.use);
    return Ok();
  }
  facts_.memory_limit = resources.memory_bytes;
  facts_.limit_of = "resources.memory";
  if (facts_.memory_limit == 0) {
    facts_.memory_limit = static_cast<uint64_t>(Number(machine, "memory_bytes"));
    facts_.limit_of = "this machine";
  }
  return Ok();
}

Result<JobSpec> Preflight::Derive(const std::string& data_dir) {
  Json machine;
  ATHANOR_CHECK_OK(Limits(machine));
  JobSpec spec = prepared_.spec;
  if (!spec.name.empty()) spec.name = spec.name.substr(0, 40) + "-preflight";
  spec.tags["preflight"] = prepared_.spec.name.empty() ? "1" : prepared_.spec.name;
  if (!spec.resources.type.empty()) {
    ATHANOR_TRY(auto catalogue, LoadCatalogue(common_.home.root + "/types.csv"));
    ATHANOR_TRY(auto type, catalogue.Find(spec.resources.type));
    spec.resources.type.clear();
    spec.resources.gpus =
        std::min<uint32_t>(type.gpus, static_cast<uint32_t>(Number(machine, "gpus")));
    spec.resources.no_gpus = spec.resources.gpus == 0;
  }
  // One node shows what the others would; this machine may not have room for all of them.
  spec.resources.nodes = 1;
  spec.resources.nodes_most = 0;
  spec.resources.spot = {};
  spec.retry = {};
  // Ends by itself should this program be killed.
  spec.limits.max_runtime = 3 * budget_ + Millis(60'000);
  spec.limits.stop_grace = std::min(spec.limits.stop_grace, kGrace);
  spec.limits.hang_action = "note";
  // Soon enough to be seen; never where the real run keeps its own.
  spec.checkpoints.every = Millis(1'000);
  if (spec.checkpoints.store == "shared") spec.checkpoints.store = "objects";
  if (!ProbeIsolation().mount) spec.checkpoint_dir.clear();
  spec.env["ATHANOR_PREFLIGHT"] = "1";
  SampleLimits limits;
  if (!options_.preflight_sample.empty()) {
    ATHANOR_TRY(limits.bytes, ParseBytes(options_.preflight_sample));
    limits.files = UINT64_MAX;
  }
  for (auto& channel : spec.data) {
    if (channel.mode != "file") continue;
    const auto to = JoinPath(data_dir, channel.name);
    ATHANOR_TRY(auto sample, TakeSample(channel.from, to, limits));
    facts_.channels.emplace_back(channel.name, sample);
    channel.from = to;
  }
  return spec;
}

Result<Seen> Preflight::Look() {
  ATHANOR_TRY(auto view, client_.Get("/api/v1/jobs/" + job_));
  ATHANOR_TRY(auto record, RecordFromJson(view));
  return Seen{std::move(record), std::move(view)};
}

// Looks again and again; kCancelled on Ctrl-C.
Result<Seen> Preflight::Until(const std::function<bool(const Seen&)>& done) {
  for (;;) {
    ATHANOR_TRY(auto seen, Look());
    if (Over(seen) || done(seen)) return seen;
    if (interrupted) return Fail(ErrorCode::kCancelled, "interrupted");
    ::usleep(static_cast<useconds_t>(std::chrono::microseconds(kPoll).count()));
  }
}

// What is known of the job, for the report.
void Preflight::Judge(const Seen& seen, bool second) {
  if (seen.view.contains("metrics")) {
    for (const auto& metric : seen.view["metrics"]) {
      const auto name = Text(metric, "name");
      if (std::find(facts_.metrics.begin(), facts_.metrics.end(), name) == facts_.metrics.end()) {
        facts_.metrics.push_back(name);
      }
    }
  }
  if (seen.view.contains("usage")) {
    facts_.memory_peak = std::max(facts_.memory_peak,
                                  static_cast<uint64_t>(Number(seen.view["usage"], "memory_peak")));
  }
  for (const auto& attempt : seen.record.attempts) {
    if (attempt.exit) facts_.memory_peak = std::max(facts_.memory_peak, attempt.exit->memory_peak);
    if (attempt.saved && !second) facts_.saved = attempt.saved;
  }
  auto& steps = second ? facts_.steps_after : facts_.steps;
  if (auto last = seen.last_step()) steps = std::max(steps.value_or(*last), *last);
  if (seen.record.state == JobState::kFailed) {
    (second ? facts_.resume_failure : facts_.failure) = seen.record.cause;
  }
}

// The first attempt: until enough was seen, the budget is spent, or it is over.
Status Preflight::Watch() {
  std::optional<Millis> started;
  auto enough = [&](const Seen& seen) {
    const auto* attempt = seen.attempt(1);
    if (!attempt || attempt->started.ms == 0) return false;
    if (!started) started = clock_.Monotonic();
    const auto ran = clock_.Monotonic() - *started;
    if (seen.view.contains("progress")) {
      const int64_t done = Number(seen.view["progress"], "done");
      facts_.total = Number(seen.view["progress"], "total");
      if (facts_.progress.empty() || facts_.progress.back().second != done) {
        facts_.progress.emplace_back(ran.count(), done);
      }
    }
    if (ran >= budget_) return true;
    const bool speed =
        facts_.total > 0 ? facts_.progress.size() >= kReadings : ran >= 2 * kShortest;
    return ran >= kShortest && attempt->saved && seen.view.contains("metrics") && speed;
  };
  ATHANOR_TRY(auto seen, Until(enough));
  Judge(seen, false);
  facts_.completed = seen.record.state == JobState::kCompleted;
  if (const auto* attempt = seen.attempt(1)) facts_.setup_ms = attempt->setup_ms;
  facts_.job = seen.record.spec.name;
  if (facts_.price.source.empty()) facts_.price = seen.record.price;
  return Ok();
}

// Takes its machine away, as a real loss would, and watches how it continues.
Status Preflight::GoOn() {
  Say("interrupting it, to see it resume");
  ATHANOR_TRY([[maybe_unused]] auto reply,
              client_.Post("/api/v1/jobs/" + job_ +
                           "/interrupt?grace_ms=" + std::to_string(kGrace.count())));
  std::optional<Millis> started;
  auto enough = [&](const Seen& seen) {
    const auto* attempt = seen.attempt(2);
    if (!attempt || attempt->started.ms == 0) return false;
    if (!started) started = clock_.Monotonic();
    const auto last = seen.last_step();
    const bool further = attempt->resumed_step && last && *last > *attempt->resumed_step;
    return attempt->resumed_from.empty() || further ||
           clock_.Monotonic() - *started >= std::min(budget_, kAfterResume);
  };
  ATHANOR_TRY(auto seen, Until(enough));
  facts_.interrupted = seen.attempt(2) != nullptr;
  // Also what it saved on the notice.
  if (const auto* first = seen.attempt(1)) {
    if (first->saved) facts_.saved = first->saved;
  }
  if (const auto* second = seen.attempt(2)) facts_.resumed_from = second->resumed_from;
  Judge(seen, facts_.interrupted);
  return Ok();
}

// It ended: a job that continues from it loads what it stored.
Status Preflight::GoOnAsNewJob() {
  Say("going on from its last checkpoint, to see it load");
  ATHANOR_TRY(auto reply,
              client_.Post("/api/v1/jobs/" + job_ + "/resume?key=" + NewUlid().ToString()));
  job_ = Text(reply, "id");
  jobs_.push_back(job_);
  std::optional<Millis> started;
  ATHANOR_TRY(auto seen, Until([&](const Seen& now) {
                const auto* attempt = now.attempt(1);
                if (!attempt || attempt->started.ms == 0) return false;
                if (!started) started = clock_.Monotonic();
                return clock_.Monotonic() - *started >= std::min(budget_, kAfterResume);
              }));
  if (const auto* attempt = seen.attempt(1)) facts_.resumed_from = attempt->resumed_from;
  Judge(seen, true);
  return Ok();
}

void Preflight::Stop() {
  if (job_.empty()) return;
  auto seen = Look();
  if (!seen || Over(*seen)) return;
  (void)client_.Post("/api/v1/jobs/" + job_ + "/stop?grace_ms=2000").has_value();
  interrupted = false;
  (void)Until([](const Seen&) { return false; }).has_value();
}

void Preflight::Report(const std::vector<PreflightCheck>& checks, const RunEstimate& estimate,
                       bool passed) {
  if (common_.json) {
    Json rows = Json::array();
    for (const auto& check : checks) {
      Json row = {{"name", check.name},
                  {"verdict", std::string(NameOf(check.verdict))},
                  {"text", check.text}};
      if (!check.hint.empty()) row["hint"] = check.hint;
      rows.push_back(std::move(row));
    }
    Json out = {{"preflight", passed ? "passed" : "failed"},
                {"job", jobs_.front()},
                {"name", facts_.job},
                {"checks", std::move(rows)}};
    if (facts_.failure) {
      out["estimate"] = {{"why_not", "it did not run"}};
    } else if (estimate.why_not.empty()) {
      out["estimate"] = {{"steps_per_second", estimate.steps_per_second},
                         {"steps", facts_.total},
                         {"low_ms", estimate.low_ms},
                         {"high_ms", estimate.high_ms},
                         {"low_cost_micros", estimate.low_micros},
                         {"high_cost_micros", estimate.high_micros},
                         {"micros_per_hour", facts_.price.micros_per_hour * facts_.nodes},
                         {"nodes", facts_.nodes},
                         {"currency", facts_.price.currency}};
    } else {
      out["estimate"] = {{"why_not", estimate.why_not}};
    }
    std::printf("%s\n", DumpJson(out).c_str());
    return;
  }
  const auto terminal = DetectTerminal();
  for (const auto& check : checks) {
    const Ink ink = check.verdict == Verdict::kOk     ? Ink::kGreen
                    : check.verdict == Verdict::kWarn ? Ink::kYellow
                                                      : Ink::kRed;
    std::printf("  %-10s  %s  %s\n", check.name.c_str(),
                Paint(terminal, ink, fmt::format("{:<4}", NameOf(check.verdict))).c_str(),
                Printable(check.text).c_str());
    for (const auto& line : Split(check.hint, '\n')) {
      if (!line.empty()) std::printf("                    next: %s\n", Printable(line).c_str());
    }
  }
  if (facts_.failure) return;
  if (!estimate.why_not.empty()) {
    std::printf("  %-10s        %s\n", "time", estimate.why_not.c_str());
    return;
  }
  auto range = [](const std::string& low, const std::string& high) {
    return low == high ? low : low + " to " + high;
  };
  const auto& price = facts_.price;
  std::printf("  %-10s        about %s: %lld steps at %.3g a second here%s\n", "time",
              range(HumanDuration(Millis(estimate.low_ms)), HumanDuration(Millis(estimate.high_ms)))
                  .c_str(),
              static_cast<long long>(facts_.total), estimate.steps_per_second,
              estimate.high_ms > estimate.low_ms ? "; more if they are counted by the data" : "");
  const std::string nodes =
      facts_.nodes > 1 ? fmt::format(" for each of {} nodes", facts_.nodes) : "";
  std::printf("  %-10s        about %s at %s an hour%s (%s)\n", "cost",
              range(HumanMoney(estimate.low_micros, price.currency),
                    HumanMoney(estimate.high_micros, price.currency))
                  .c_str(),
              HumanMoney(price.micros_per_hour, price.currency).c_str(), nodes.c_str(),
              price.source.c_str());
}

Result<PreflightOutcome> Preflight::Run() {
  if (!options_.preflight_time.empty()) {
    ATHANOR_TRY(budget_, ParseDuration(options_.preflight_time));
    budget_ = std::max(budget_, kShortest);
  }
  Scratch scratch("preflight");
  if (scratch.path().empty()) return FailErrno("make a temporary folder", errno);
  PreparedJob derived = prepared_;
  ATHANOR_TRY(derived.spec, Derive(scratch.path()));
  ATHANOR_TRY(auto submitted, SubmitJob(client_, derived, NewUlid().ToString(), common_.home));
  job_ = submitted.id;
  jobs_.push_back(job_);
  facts_.job = submitted.name;
  Say(submitted.name + " runs for at most " + HumanDuration(budget_) + " on this machine" +
      (facts_.nodes > 1 ? fmt::format(", as one of its {} nodes", facts_.nodes) : ""));
  auto watched = Watch();
  if (watched && !facts_.failure) {
    watched = facts_.completed ? (facts_.saved ? GoOnAsNewJob() : Ok()) : GoOn();
  }
  Stop();
  if (!watched && watched.error().code == ErrorCode::kCancelled) {
    return PreflightOutcome{false, true};
  }
  ATHANOR_CHECK_OK(watched);
  const auto checks = JudgePreflight(prepared_.spec, facts_);
  PreflightOutcome outcome;
  outcome.passed = std::none_of(checks.begin(), checks.end(), [](const PreflightCheck& check) {
    return check.verdict == Verdict::kFail;
  });
  Report(checks, EstimateRun(facts_), outcome.passed);
  std::fflush(stdout);  // before what is reported about it
  if (outcome.passed) {
    // Newest first: a job that was gone on from cannot go before.
    for (auto id = jobs_.rbegin(); id != jobs_.rend(); ++id) {
      (void)client_.Send("DELETE", "/api/v1/jobs/" + *id, "").has_value();
    }
  }
  return outcome;
}

}  // namespace

Result<PreflightOutcome> RunPreflight(const Common& common, const RunOptions& options,
                                      const PreparedJob& prepared) {
  ATHANOR_TRY(auto client, Client::ConnectHere(common.home));
  CatchInterrupt guard;
  return Preflight(common, options, prepared, client).Run();
}

Result<bool> WantsPreflight(const Home& home, const JobSpec& spec) {
  if (spec.resources.type.empty()) return false;
  ATHANOR_TRY(auto settings, ReadSettings(home.settings()));
  if (settings.preflight_above_micros < 0) return false;
  ATHANOR_TRY(auto catalogue, LoadCatalogue(home.root + "/types.csv"));
  auto type = catalogue.Find(spec.resources.type);
  if (!type) return false;  // refused by the server, with its message
  return PriceOfType(*type, spec.resources.spot.use).micros_per_hour * spec.resources.nodes >
         settings.preflight_above_micros;
}

}  // namespace athanor
