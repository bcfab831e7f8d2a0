#include "track/diff.h"

#include <algorithm>
#include <map>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

using Facts = std::map<std::string, std::string>;

Facts Params(const RunFacts& run) {
  Facts facts;
  for (const auto& param : run.record.spec.params) facts[param.name] = param.value;
  return facts;
}

Facts Command(const RunFacts& run) {
  std::vector<std::string> words;
  for (const auto& word : run.record.spec.command) {
    words.push_back(run.record.spec.shell ? word : ShellQuote(word));
  }
  return {{"command", Join(words, " ")}, {"experiment", run.record.spec.experiment}};
}

Facts Source(const RunFacts& run) {
  Facts facts;
  const auto& source = run.record.spec.source;
  if (!source.git_commit.empty()) facts["git commit"] = source.git_commit.substr(0, 12);
  if (!source.git_diff.empty()) facts["uncommitted change"] = source.git_diff.substr(0, 12);
  if (!run.source) return facts;
  for (const auto& entry : run.source->entries) {
    switch (entry.kind) {
      case BundleEntry::Kind::kFile:
        facts[entry.path] =
            fmt::format("{} ({})", entry.sha256.substr(0, 8), HumanBytes(entry.size));
        break;
      case BundleEntry::Kind::kLink:
        facts[entry.path] = "-> " + entry.target;
        break;
      case BundleEntry::Kind::kFolder:
        facts[entry.path] = "folder";
        break;
    }
  }
  return facts;
}

Facts Packages(const RunFacts& run) {
  Facts facts;
  for (const auto& line : Split(run.packages, '\n')) {
    auto at = line.find("==");
    if (at != std::string::npos) facts[line.substr(0, at)] = line.substr(at + 2);
  }
  return facts;
}

Facts Environment(const RunFacts& run) {
  const auto& spec = run.record.spec;
  Facts facts(spec.env.begin(), spec.env.end());
  for (const auto& [name, value] : spec.inherited) facts[name] = value;
  facts["(base)"] = spec.environment.base;
  facts["(python)"] = spec.environment.python;
  facts["(requirements)"] = spec.environment.requirements;
  return facts;
}

Facts Data(const RunFacts& run) {
  Facts facts;
  for (const auto& channel : run.record.spec.data) {
    facts[channel.name] = channel.from + " (" + channel.mode + ")";
  }
  return facts;
}

Facts Hardware(const RunFacts& run) {
  Facts facts;
  const auto& resources = run.record.spec.resources;
  facts["type"] = resources.type;
  facts["nodes"] = resources.nodes_most == 0
                       ? std::to_string(resources.nodes)
                       : fmt::format("{}..{}", resources.nodes, resources.nodes_most);
  facts["processes"] = std::to_string(resources.processes);
  if (const auto* attempt = run.record.current()) {
    facts["cpus"] = fmt::format("{}", attempt->placement.cpu_millis / 1000.0);
    if (attempt->placement.memory_bytes > 0) {
      facts["memory"] = HumanBytes(attempt->placement.memory_bytes);
    }
    facts["gpus"] = std::to_string(attempt->placement.visible_gpus().size());
  }
  if (run.record.simulated) facts["simulated"] = "yes";
  return facts;
}

Facts Metrics(const RunFacts& run) {
  Facts facts;
  for (const auto& metric : run.metrics) facts[metric.name] = fmt::format("{:.6g}", metric.last);
  return facts;
}

Facts Outcome(const RunFacts& run) {
  Facts facts;
  facts["state"] = NameOf(run.record.state);
  if (run.record.state != JobState::kCompleted) facts["cause"] = run.record.cause.kind;
  return facts;
}

}  // namespace

std::vector<DiffRow> Differences(const std::vector<RunFacts>& runs) {
  struct Section {
    const char* name;
    Facts (*facts)(const RunFacts&);
  };
  static constexpr Section kSections[] = {
      {"outcome", Outcome}, {"params", Params},     {"command", Command},
      {"source", Source},   {"packages", Packages}, {"environment", Environment},
      {"data", Data},       {"hardware", Hardware}, {"metrics", Metrics}};
  std::vector<DiffRow> rows;
  for (const auto& section : kSections) {
    std::vector<Facts> all;
    Facts keys;
    for (const auto& run : runs) {
      all.push_back(section.facts(run));
      keys.insert(all.back().begin(), all.back().end());
    }
    for (const auto& [key, unused] : keys) {
      DiffRow row{section.name, key, {}};
      for (const auto& facts : all) {
        auto it = facts.find(key);
        row.values.push_back(it == facts.end() ? "" : it->second);
      }
      bool same = std::all_of(row.values.begin(), row.values.end(),
                              [&](const auto& value) { return value == row.values.front(); });
      if (!same) rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace athanor
