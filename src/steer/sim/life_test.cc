// The scenarios of tests/life in the simulator: the real engine, queue and store in virtual time.
// tests/life/README.md says what the lines mean; tests/life/test_scenarios.py plays the same files
// with real processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "base/text/text.h"
#include "job/codec.h"
#include "steer/sim/checker.h"
#include "steer/sim/cluster.h"
#include "steer/sim/server.h"
#include "steer/sim/world.h"

namespace athanor::sim {
namespace {

constexpr Millis kPatience = std::chrono::hours(2);  // virtual
constexpr size_t kMachines = 8;
constexpr size_t kManyTimes = 100;

struct Line {
  std::string text;
  std::string verb;
  std::vector<std::string> plain;
  std::map<std::string, std::string> keys;
};

std::vector<Line> ReadLines(const std::string& path) {
  std::vector<Line> lines;
  const std::string content = ReadFile(path).value_or("");
  for (const auto& raw : Split(content, '\n')) {
    Line line;
    line.text = std::string(Trim(raw.substr(0, raw.find('#'))));
    for (const auto& word : Split(line.text, ' ')) {
      const auto equals = word.find('=');
      if (word.empty()) continue;
      if (line.verb.empty()) {
        line.verb = word;
      } else if (equals == std::string::npos) {
        line.plain.emplace_back(word);
      } else {
        line.keys[std::string(word.substr(0, equals))] = word.substr(equals + 1);
      }
    }
    if (!line.verb.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

int64_t NumberIn(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// "300ms", "2s"
Millis Time(const std::string& text) {
  return Millis(EndsWith(text, "ms") ? NumberIn(text) : 1'000 * NumberIn(text));
}

Inventory Machines() {
  Inventory all;
  all.host = "cluster";
  all.cpu_millis = 100'000;  // a percent of it is one CPU
  all.memory_bytes = 1ull << 40;
  return all;
}

class Player {
 public:
  explicit Player(const std::string& dir)
      : world_(1, false),
        cluster_(world_, kMachines),
        checker_(world_, cluster_, Machines()),
        server_(world_, cluster_.backend(), {dir, Machines(), false},
                {[this](const JobRecord& record, const std::vector<StoredEvent>& events) {
                   checker_.Durable(record, events);
                   if (record.current()) cluster_.Nudge(record.current()->id);
                 },
                 [this](AttemptId attempt, uint32_t host, int64_t held) {
                   checker_.UsageTaken(attempt, host, held);
                 },
                 [this] { checker_.CameUp(); }}) {
    world_.faults = false;
    checker_.Use(server_);
    cluster_.Connect(server_, [this](const HostAttempt& at) { Began(at); });
    server_.Start();
  }

  // What went wrong; empty: nothing.
  std::string Play(const Line& line) {
    if (line.verb == "job") {
      wishes_[line.plain[0]] = line.keys;
    } else if (line.verb == "submit") {
      Submit(line);
    } else if (line.verb == "wait") {
      Wait(line);
    } else if (line.verb == "stop" || line.verb == "interrupt") {
      Ask(line);
    } else if (line.verb == "expect") {
      Expect(line);
    } else if (line.plain.size() == 1 && line.plain[0] == "server") {
      if (line.verb == "kill") server_.Crash();
      if (line.verb == "restart") server_.StopInOrder();
      if (line.verb != "kill") server_.Start();
    } else if (line.verb == "kill" || line.verb == "lose") {
      Hurt(line);
    } else {
      wrong_ = "no such command";
    }
    return wrong_.empty() ? world_.broken : wrong_;
  }

 private:
  void Began(const HostAttempt& at) {
    checker_.Began(at);
    if (at.script != HostAttempt::Script::kRunning || at.preparing) return;
    if (!seen_.insert({at.plan.attempt, at.plan.host}).second) return;
    starts_[at.plan.spec.name] += at.plan.spec.resources.processes;
  }

  static std::string Take(std::map<std::string, std::string>& keys, const std::string& key,
                          const std::string& otherwise) {
    const auto node = keys.extract(key);
    return node ? node.mapped() : otherwise;
  }

  JobSpec SpecOf(const std::string& name) {
    auto wish = wishes_[name];
    JobSpec spec;
    spec.name = name;
    spec.command = {"python3", "script.py", Join(Words(wish), " ")};
    auto& script = cluster_.PlanOf(name);
    script = {};
    script.work = Time(Take(wish, "work", "1s"));
    script.checkpoint_every = Time(Take(wish, "saves", "0ms"));
    const auto fails = Take(wish, "fails", "0");
    const auto times = static_cast<size_t>(NumberIn(Take(wish, "times", "100")));
    if (fails != "0") {
      script.failures.assign(std::min(times, kManyTimes),
                             {"nonzero_exit", "exit status " + fails, "", ""});
    }
    if (const auto on = Take(wish, "fails_on", ""); !on.empty()) {
      script.trouble_on = static_cast<uint32_t>(NumberIn(on));
    }
    script.ignores_notice = Take(wish, "deaf", "no") == "yes";
    auto& resources = spec.resources;
    resources.cpu_millis = 1'000 * static_cast<uint32_t>(NumberIn(Take(wish, "cpus", "5%")));
    resources.nodes = static_cast<uint32_t>(NumberIn(Take(wish, "nodes", "1")));
    resources.processes = static_cast<uint32_t>(NumberIn(Take(wish, "processes", "1")));
    resources.spot.use = Take(wish, "spot", "no") == "yes";
    resources.spot.preempt_after = Time(Take(wish, "preempt_after", "0ms"));
    spec.limits.max_runtime = Time(Take(wish, "max_time", "0ms"));
    spec.limits.stop_grace = Time(Take(wish, "grace", "120s"));
    spec.priority = static_cast<int32_t>(NumberIn(Take(wish, "priority", "0")));
    spec.retry.max = static_cast<uint32_t>(NumberIn(Take(wish, "retry", "0")));
    spec.retry.on = {"nonzero_exit"};
    if (!wish.empty()) wrong_ = "job " + name + ": nobody knows " + wish.begin()->first;
    return spec;
  }

  static std::vector<std::string> Words(const std::map<std::string, std::string>& keys) {
    std::vector<std::string> words;
    for (const auto& [key, value] : keys) words.push_back(key + "=" + value);
    return words;
  }

  // Until `ready`; false: in vain.
  bool Until(const std::function<bool()>& ready) {
    const auto end = world_.now() + kPatience;
    while (!ready()) {
      if (!world_.broken.empty() || world_.now() > end || !world_.executor.RunOne()) return false;
    }
    return true;
  }

  void Submit(const Line& line) {
    const auto& name = line.plain[0];
    const auto key = line.keys.find("key");
    JobRecord draft;
    draft.id.value.bytes[15] = static_cast<uint8_t>(++submits_);
    draft.key = key == line.keys.end() ? "key-" + std::to_string(submits_) : key->second;
    draft.spec = SpecOf(name);
    draft.spec_hash = SpecHash(draft.spec);
    draft.user = "ann";
    draft.created = draft.updated = world_.executor.clock().Wall();
    std::optional<Result<Engine::Accepted>> answer;
    server_.Submit(std::move(draft), [&answer](Result<Engine::Accepted> said) { answer = said; });
    if (!Until([&] { return answer.has_value(); })) return Fail("no answer");
    const bool refused = Has(line, "refused");
    if (answer->has_value() == refused) {
      return Fail(refused ? "it was accepted" : answer->error().what);
    }
    if (refused) return;
    const auto [at, fresh] = ids_.emplace(name, (*answer)->id);
    if (at->second != (*answer)->id) Fail("it is another job");
  }

  void Wait(const Line& line) {
    const auto& name = line.plain[0];
    const auto ready = [&] {
      const auto record = Record(name);
      if (!record) return false;
      const auto& attempts = record->attempts;
      if (const auto number = line.keys.find("attempt"); number != line.keys.end()) {
        return std::to_string(attempts.size()) == number->second &&
               record->state == JobState::kRunning;
      }
      if (const auto why = line.keys.find("waiting"); why != line.keys.end()) {
        return record->state == JobState::kQueued && record->cause.kind == why->second;
      }
      if (line.plain[1] == "saved") {
        return std::any_of(attempts.begin(), attempts.end(),
                           [](const Attempt& attempt) { return attempt.saved.has_value(); });
      }
      if (line.plain[1] == "Running") {
        return starts_[name] >= record->spec.resources.ranks() &&
               record->state == JobState::kRunning;
      }
      if (IsTerminal(record->state) && NameOf(record->state) != line.plain[1]) {
        wrong_ = name + " is " + std::string(NameOf(record->state)) + ": " + record->cause.kind;
        return true;
      }
      return NameOf(record->state) == line.plain[1];
    };
    if (!Until(ready)) Fail("waited in vain");
  }

  void Ask(const Line& line) {
    const auto& name = line.plain[0];
    const Millis patience = Time(wishes_[name].contains("grace") ? wishes_[name]["grace"] : "120s");
    std::optional<Status> answer;
    const auto done = [&answer](const Status& status) { answer = status; };
    if (line.verb == "stop") {
      server_.Ask(ids_[name], StopAsked{{"user_stop", "stopped by ann", "", ""}, "ann", patience},
                  done);
    } else {
      server_.Ask(ids_[name], InterruptAsked{{"preempted", "taken away", "", ""}, "ann", patience},
                  done);
    }
    if (!Until([&] { return answer.has_value(); })) return Fail("no answer");
    if (answer->has_value() == Has(line, "refused")) Fail("it was answered otherwise");
  }

  void Hurt(const Line& line) {
    const bool agent = line.verb == "kill";
    const auto record = Record(line.plain[agent ? 1 : 0]);
    const auto host = line.keys.find("host");
    const auto index = static_cast<uint32_t>(host == line.keys.end() ? 0 : NumberIn(host->second));
    const auto* at = record ? cluster_.Find(record->current()->id, index) : nullptr;
    if (!at) return Fail("it runs nowhere");
    if (agent) return cluster_.KillAgent(at->plan.attempt, index);
    const auto machine = at->machine;
    cluster_.Crash(machine);
    world_.executor.After(Millis(5'000), [this, machine] { cluster_.Restore(machine); });
  }

  void Expect(const Line& line) {
    const auto& name = line.plain[0];
    const auto record = Record(name);
    if (!record) return Fail("there is no such job");
    const auto* last = record->current();
    std::map<std::string, std::string> found = {
        {"state", std::string(NameOf(record->state))},
        {"attempts", std::to_string(record->attempts.size())},
        {"cause", record->cause.kind},
        {"starts", std::to_string(starts_[name])},
        {"resumed", last && !last->resumed_from.empty() ? "yes" : "no"},
        {"fell", last && last->fell ? std::to_string(last->fell->host) : "none"},
        {"hosts", std::to_string(last ? last->hosts.size() : 0)}};
    for (const auto& [key, value] : line.keys) {
      if (key == "before") {
        const auto other = Record(value);
        if (!other || other->attempts.front().started < record->attempts.front().started) {
          return Fail("it started later");
        }
      } else if (found[key] != value) {
        return Fail(key + " is " + found[key]);
      }
    }
  }

  std::optional<JobRecord> Record(const std::string& name) {
    if (!server_.up()) return std::nullopt;
    // Memory is newer than the store; an end counts once it is stored.
    const auto* live = server_.engine().Live(ids_[name]);
    if (live && !IsTerminal(live->state)) return *live;
    auto stored = server_.store().Find(ids_[name]);
    return stored ? std::optional(*stored) : std::nullopt;
  }
  static bool Has(const Line& line, std::string_view word) {
    return std::find(line.plain.begin(), line.plain.end(), word) != line.plain.end();
  }
  void Fail(const std::string& what) { wrong_ = what; }

  World world_;
  Cluster cluster_;
  Checker checker_;
  SimServer server_;
  std::map<std::string, std::map<std::string, std::string>> wishes_;
  std::map<std::string, JobId> ids_;
  std::map<std::string, uint32_t> starts_;  // of ranks, by job
  std::set<std::pair<AttemptId, uint32_t>> seen_;
  int submits_ = 0;
  std::string wrong_;
};

class Life : public testing::TestWithParam<std::string> {};

TEST_P(Life, GoesAsTold) {
  const TestDir dir;
  Player player(dir.path());
  for (const auto& line : ReadLines(GetParam())) {
    const auto wrong = player.Play(line);
    ASSERT_EQ(wrong, "") << line.text;
  }
}

std::vector<std::string> Scenarios() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(ATHANOR_LIFE_DIR)) {
    if (entry.path().extension() == ".life") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Life, testing::ValuesIn(Scenarios()), [](const auto& scenario) {
  return std::filesystem::path(scenario.param).stem().string();
});

}  // namespace
}  // namespace athanor::sim
