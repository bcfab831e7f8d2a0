// init, check, explain, schema: helping a person along; most need no server.
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "cli/errors.h"
#include "cli/screen/output.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"
#include "run/isolate/cgroup_driver.h"
#include "run/isolate/cgroup_policy.h"
#include "run/supervisor/launch_supervisor.h"
#include "serve/machine.h"
#include "serve/version.h"
#include "submit/job_file.h"

namespace athanor {
namespace {

// The script a person would start: train.py before main.py before the only one.
std::string GuessScript(const std::vector<std::string>& names) {
  std::vector<std::string> scripts;
  for (const auto& name : names) {
    if (EndsWith(name, ".py") && !StartsWith(name, "test_") && name != "setup.py") {
      scripts.push_back(name);
    }
  }
  for (const char* known : {"train.py", "main.py", "run.py"}) {
    for (const auto& name : scripts) {
      if (name == known) return name;
    }
  }
  return scripts.empty() ? std::string() : scripts.front();
}

std::string JobFileFor(const std::string& dir, const std::vector<std::string>& names) {
  auto script = GuessScript(names);
  auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  auto machine = CountThisMachine();
  std::string out = "# A job for Athanor: ath run athanor.yaml      (all keys: ath schema)\n";
  out += "name: " + ToLower(ReplaceAll(BaseName(dir), " ", "-")) + "\n";
  out += "experiment: " + ToLower(ReplaceAll(BaseName(dir), " ", "-")) + "\n\n";
  out += script.empty()
             ? "run: echo replace this with your training command\n"
             : "run: python3 " + script + "          # ${name} inserts a parameter from below\n";
  out += "# params: {lr: 0.1, epochs: 5}\n\n";
  if (has("requirements.txt")) {
    out +=
        "environment:\n  requirements: requirements.txt   # installed into a cached venv; add "
        "`base: system` to also use the system's packages\n";
  } else {
    out +=
        "# environment: {requirements: requirements.txt}   # without it: your shell's "
        "environment\n";
  }
  out += "\nresources:\n  cpus: 1                        # of " +
         fmt::format("{}", machine.cpu_millis / 1000) + " here\n";
  out += "  # memory: 4GB                  # reserved, and a limit; " +
         HumanBytes(machine.memory_bytes) + " here\n";
  out += machine.gpus > 0 ? "  gpus: 1\n" : "  # gpus: 1                      # none here\n";
  out += "\n# limits: {max_runtime: 2h}\n";
  if (has("data")) {
    out +=
        "source: {ignore: [data/]}\ndata:\n  train: ./data                  # copied before the "
        "job starts; "
        "{from: ./data, mode: shared} uses it in place\n";
  } else {
    out += "# data: {train: ./data}          # copied before the job starts, to ${channel.train}\n";
  }
  out +=
      "\n# metrics:                       # not needed with athanor.log(loss=x, step=i)\n"
      "#   - {name: loss, regex: 'loss=(\\S+)', step: 'step=(\\d+)'}\n"
      "# secrets: [HF_TOKEN]            # ath secret set HF_TOKEN\n"
      "\n# tune:                          # ath tune athanor.yaml: search for the best parameters\n"
      "#   metric: loss                 # minimize its last value\n"
      "#   max_trials: 30\n"
      "#   space:                       # parameters to search; use them as ${lr} in run\n"
      "#     lr: {type: float, low: 1e-5, high: 1, scale: log}\n";
  return out;
}

struct Finding {
  std::string name;
  bool ok;
  std::string text;
  std::string hint;
};

std::vector<Finding> Examine(const Home& home) {
  std::vector<Finding> out;
  auto machine = CountThisMachine();
  out.push_back({"machine", true,
                 fmt::format("{} CPUs, {} for jobs, {} GPUs", machine.cpu_millis / 1000.0,
                             HumanBytes(machine.memory_bytes), machine.gpus),
                 ""});
  auto made = MakeDirs(home.root);
  bool writable = made.ok() && ::access(home.root.c_str(), W_OK) == 0;
  auto free = FreeBytes(writable ? home.root : std::string("/"));
  out.push_back({"home", writable, home.root + (writable ? "" : " is not writable"),
                 writable ? "" : "set ATHANOR_HOME to a folder that you can write to"});
  bool room = free && *free > (1ull << 30);
  out.push_back({"disk", room, (free ? HumanBytes(*free) : "?") + " free",
                 room ? "" : "free some space: jobs are refused below 64 MiB"});
  auto isolation = ProbeIsolation();
  out.push_back(
      {"isolation", isolation.off.empty(),
       isolation.off.empty() ? "each job has its own /opt/ml, processes and host name"
                             : Join(isolation.off, "; "),
       isolation.off.empty() ? "" : "jobs still run; their paths are in the SM_* variables"});
  const auto limits = LimitsHere(CgroupDriver::Detect());
  out.push_back({"limits", limits.empty(),
                 limits.empty() ? "memory, CPUs and processes are limited by cgroups" : limits,
                 limits.empty()
                     ? ""
                     : "run the server as root, or give it a cgroup of its own (docs/limits.md)"});
  const auto supervisor = DefaultSupervisorPath();
  out.push_back({"supervisor", supervisor.has_value(),
                 supervisor ? *supervisor : supervisor.error().what,
                 supervisor ? "" : supervisor.error().hint});
  auto package = PythonPackageDir();
  out.push_back({"python", !package.empty(),
                 package.empty() ? "the athanor package was not found" : package,
                 package.empty() ? "import athanor will fail in jobs; pip install ./python" : ""});
  return out;
}

}  // namespace

int InitVerb(const Common& common, const std::string& file, bool force) {
  char cwd[4096];
  std::string dir = ::getcwd(cwd, sizeof cwd) ? cwd : ".";
  auto names = ListDir(dir);
  if (!names) return Refuse(names.error(), common.json);
  if (Exists(file) && !force) {
    return Refuse(Error{ErrorCode::kConflict, file + " already exists",
                        "ath init --force\nath run " + ShellQuote(file)}
                      .Id("ATH-C0030"),
                  common.json);
  }
  auto text = JobFileFor(dir, *names);
  if (auto status = ReplaceFile(file, text, 0644); !status)
    return Refuse(status.error(), common.json);
  if (common.json) {
    std::printf("%s\n", DumpJson(Json{{"file", file}}).c_str());
    return 0;
  }
  std::printf("wrote %s\n", file.c_str());
  PrintHint("ath run " + ShellQuote(file), common.quiet);
  return 0;
}

int CheckVerb(const Common& common) {
  auto findings = Examine(common.home);
  auto terminal = DetectTerminal();
  bool all = true;
  Json rows = Json::array();
  for (const auto& finding : findings) {
    all = all && finding.ok;
    if (common.json) {
      rows.push_back({{"check", finding.name},
                      {"ok", finding.ok},
                      {"text", finding.text},
                      {"hint", finding.hint}});
      continue;
    }
    std::printf("  %s %-10s  %s\n",
                Paint(terminal, finding.ok ? Ink::kGreen : Ink::kYellow,
                      finding.ok ? (terminal.ascii ? "ok" : "✔") : (terminal.ascii ? "!!" : "!"))
                    .c_str(),
                finding.name.c_str(), finding.text.c_str());
    if (!finding.hint.empty()) std::printf("               next: %s\n", finding.hint.c_str());
  }
  if (common.json) std::printf("%s\n", DumpJson(Json{{"ok", all}, {"checks", rows}}).c_str());
  return 0;
}

int ExplainVerb(const Common& common, const std::string& code) {
  auto row = ExplainCode(code);
  if (!row) {
    std::vector<std::string> known;
    for (const auto& each : AllCodes()) known.push_back(each.code);
    auto near = Nearest(ToUpper(code), known);
    return Refuse(
        Error{ErrorCode::kNotFound, "no such code: " + Printable(code),
              near ? "ath explain " + *near : "codes look like ATH-J0137; `ath why JOB` prints one"}
            .Id("ATH-C0031"),
        common.json);
  }
  auto title = row->code + ": " + row->title;
  const auto& text = row->text;
  if (common.json) {
    std::printf("%s\n", DumpJson(Json{{"title", title}, {"text", text}}).c_str());
    return 0;
  }
  std::printf("%s\n\n", title.c_str());
  std::string line;
  for (const auto& word : Split(text, ' ')) {
    if (DisplayWidth(line) + word.size() + 1 > 78) {
      std::printf("%s\n", line.c_str());
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  std::printf("%s\n", line.c_str());
  return 0;
}

int SchemaVerb(const Common& common) {
  const auto schema = JobFileSchema();
  std::printf("%s\n", (common.json ? DumpJson(schema) : DumpJsonPretty(schema)).c_str());
  return 0;
}

}  // namespace athanor
