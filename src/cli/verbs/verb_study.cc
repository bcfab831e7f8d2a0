// ath tune: tuning jobs. The search runs on the server; attached, its trials are shown as they end.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>

#include <nlohmann/json.hpp>

#include "base/ids.h"
#include "base/io/files.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/lost_server.h"
#include "cli/screen/refuse.h"
#include "cli/screen/study_screen.h"
#include "cli/submission.h"
#include "cli/verbs/verbs.h"
#include "job/codec.h"
#include "study/spec.h"
#include "submit/job_file.h"
#include "submit/yaml.h"
#include "tune/space.h"

namespace athanor {
namespace {

constexpr int kWaitMs = 5'000;

Error NoStudy(std::string what, std::string why) {
  return Error{
      ErrorCode::kInvalid, std::move(what),
      "tune:\n  metric: val_loss\n  space:\n    lr: {type: float, low: 1e-5, high: 1, scale: log}"}
      .Why(std::move(why))
      .Id("ATH-T0014");
}

// A flag's text as the JSON a file would have given.
Json Plain(const std::string& text) {
  auto json = ParseJson(text);
  return json && (json->is_number() || json->is_boolean()) ? std::move(*json) : Json(text);
}

// "lr=1e-5..1e-2" or "opt=sgd,adam", as tune::WithRanges takes it.
Result<Json> RangeIn(const std::string& text) {
  const auto equals = text.find('=');
  const auto dots = text.find("..", equals + 1);
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return Fail(Error{ErrorCode::kInvalid,
                      "a range has the form name=low..high or name=choice,choice",
                      "ath tune extend STUDY --range lr=1e-5..1e-2"}
                    .Why("got " + Printable(text))
                    .Id("ATH-C0010"));
  }
  const auto name = text.substr(0, equals);
  if (dots != std::string::npos) {
    return Json{{name,
                 {{"low", Plain(text.substr(equals + 1, dots - equals - 1))},
                  {"high", Plain(text.substr(dots + 2))}}}};
  }
  Json choices = Json::array();
  for (const auto& each : Split(text.substr(equals + 1), ',')) choices.push_back(Plain(each));
  return Json{{name, {{"choices", std::move(choices)}}}};
}

struct PreparedStudy {
  PreparedJob job;
  StudySpec spec;
};

Result<PreparedStudy> Prepare(const Common& common, const TuneOptions& options) {
  if (options.file.empty()) return Fail(NoStudy("nothing to tune", "no job file was given"));
  auto text = ReadFile(options.file, 16 << 20);
  if (!text) {
    Error error = text.error();
    error.hint = "ath init            writes a job file for the script in this folder";
    error.id = "ATH-S0100";
    return Fail(std::move(error));
  }
  ATHANOR_TRY(const auto plain, ParseJobFile(*text, options.file));
  ATHANOR_TRY(auto section, TuneSection(*text, options.file));
  if (section.is_null()) {
    return Fail(
        NoStudy(options.file + " has no tune section", "the tune section says what to search for"));
  }
  for (const auto& [key, value] : options.set) {
    section[key] = key == "name" || key == "strategy" ? Json(value) : Plain(value);
  }
  PreparedStudy study;
  auto spec = StudySpecFromJson(section);
  if (!spec) {
    Error error = spec.error();
    const auto flag = std::find_if(options.set.begin(), options.set.end(),
                                   [&](const auto& set) { return set.first == error.where; });
    error.where = flag == options.set.end() ? PlaceInTuneSection(*text, options.file, error.where)
                                            : "--" + ReplaceAll(flag->first, "_", "-");
    return Fail(std::move(error));
  }
  study.spec = std::move(*spec);
  // Parameters of the space appear in the command like all others; here they need some value.
  RunOptions run;
  run.file = options.file;
  std::map<std::string, bool> own;
  for (const auto& param : plain.params) own[param.name] = true;
  ATHANOR_TRY(const auto space_json, ParseJson(study.spec.space));
  ATHANOR_TRY(const auto space, tune::Space::Parse(space_json));
  for (const auto& parameter : space.parameters()) {
    if (!own[parameter.name]) run.flags.emplace_back("-p", parameter.name + "=0");
  }
  run.flags.insert(run.flags.end(), options.flags.begin(), options.flags.end());
  if (options.pass) run.flags.emplace_back("--pass", "flags");
  ATHANOR_TRY(study.job, PrepareJob(common.home, run));
  auto& params = study.job.spec.params;
  std::erase_if(params, [&](const Param& param) { return !own[param.name]; });
  study.spec.job = study.job.spec;
  if (study.spec.name.empty()) study.spec.name = study.job.spec.name;
  return study;
}

// Ctrl-C leaves; the study continues.
char g_left[512];
void Leave(int) {
  (void)!::write(STDERR_FILENO, g_left, std::char_traits<char>::length(g_left));
  ::_exit(130);
}

bool Over(const Json& study) {
  const auto state = study.value("state", "");
  return state == "Completed" || state == "Stopped" || state == "Failed";
}

// Shows what changed since the last look.
void ShowNews(const Json& study, std::map<int64_t, std::string>& seen, bool json,
              const Terminal& terminal) {
  for (const auto& trial : study["trials"]) {
    const auto state = trial["state"].get<std::string>();
    const bool over = state == "done" || state == "failed" || state == "stopped";
    auto& known = seen[trial["trial"].get<int64_t>()];
    if (known == state) continue;
    known = state;
    if (json) {
      std::printf("%s\n", DumpJson(trial).c_str());
    } else if (over) {
      std::printf("%s\n", TrialLine(study, trial, terminal).c_str());
    }
  }
  std::fflush(stdout);
}

// As soon as the first trial shows it: the rest of the search would be for nothing.
bool WarnOfUnread(const Json& study, const Common& common) {
  for (const auto& hint : study["hints"]) {
    if (hint.value("kind", "") != "unread") continue;
    if (!common.json && !common.quiet && !Over(study)) {
      std::fprintf(stderr, "  warning %s\n          %s\n",
                   Printable(hint.value("text", "")).c_str(),
                   Printable(hint.value("next", "")).c_str());
    }
    return true;
  }
  return false;
}

int Follow(const Common& common, Client& client, const std::string& id, const std::string& name) {
  std::snprintf(g_left, sizeof g_left, "\n%.200s keeps running: ath tune show %.200s\n",
                Printable(name).c_str(), Printable(name).c_str());
  ::signal(SIGINT, Leave);
  const auto terminal = DetectTerminal();
  std::map<int64_t, std::string> seen;
  uint64_t lines = 0;
  LostServer lost(client, name, common.quiet || common.json);
  bool warned = false;
  for (;;) {
    auto study = client.Get("/api/v1/studies/" + id + "?after=" + std::to_string(lines) +
                            "&wait_ms=" + std::to_string(kWaitMs));
    if (!study) {
      if (auto again = lost.Wait(study.error()); !again) return Refuse(again.error(), common.json);
      continue;
    }
    lost.Answered();
    lines = study->value("lines", lines);
    ShowNews(*study, seen, common.json, terminal);
    if (!warned) warned = WarnOfUnread(*study, common);
    if (!Over(*study)) continue;
    if (common.json) {
      std::printf("%s\n", DumpJson(*study).c_str());
    } else {
      std::printf("\n%s", StudyPage(*study, terminal).c_str());
      const auto cause = study->value("cause", Json::object());
      PrintHint(cause.value("hint", ""), common.quiet);
    }
    return study->value("state", "") == "Failed" ? 1 : 0;
  }
}

int WithStudy(const Common& common, const std::string& method, const std::string& target,
              const std::string& body, const std::function<void(const Json&)>& show) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto reply = method == "GET" ? client->Get(target) : client->Send(method, target, body);
  if (!reply) return Refuse(reply.error(), common.json);
  if (common.json) {
    std::printf("%s\n", DumpJson(*reply).c_str());
  } else {
    show(*reply);
  }
  return 0;
}

std::string Target(const TuneOptions& options, const char* more = "") {
  return "/api/v1/studies/" + UrlEncode(options.study) + more;
}

void ShowRow(const Json& study) {
  std::printf("%s  %s\n", study.value("name", "").c_str(), study.value("state", "").c_str());
}

}  // namespace

int TuneVerb(const Common& common, const TuneOptions& options) {
  auto study = Prepare(common, options);
  if (!study) return Refuse(study.error(), common.json);
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  const auto key = options.key.empty() ? NewUlid().ToString() : options.key;
  const auto body = DumpJson(Json{{"key", key}, {"spec", ToJson(study->spec)}});
  auto made = PostWithSource(*client, study->job, "/api/v1/studies", body, common.home);
  if (!made) return Refuse(made.error(), common.json);
  const auto id = made->value("id", ""), name = made->value("name", "");
  if (options.detach) {
    std::printf("%s\n", common.json ? DumpJson(*made).c_str() : id.c_str());
    if (!common.json) PrintHint("ath tune show " + ShellQuote(name), common.quiet);
    return 0;
  }
  if (!common.json && !common.quiet) {
    std::fprintf(stderr, "  study   %s (%s)   %s %s, at most %lld trials\n", name.c_str(),
                 id.substr(id.size() - 6).c_str(), study->spec.maximize ? "maximize" : "minimize",
                 Printable(study->spec.metric).c_str(),
                 static_cast<long long>(study->spec.max_trials));
  }
  return Follow(common, *client, id, name);
}

int TuneListVerb(const Common& common) {
  return WithStudy(common, "GET", "/api/v1/studies", "", [](const Json& reply) {
    Table table({"STUDY", "STATE", "TRIALS", "BEST", "METRIC", "STARTED"});
    for (const auto& study : reply["studies"]) {
      size_t trials = 0;
      for (const auto& [state, count] : study["counts"].items()) trials += count.get<size_t>();
      const auto best = study.value("best", Json::object());
      table.Add({Printable(study.value("name", "")), study.value("state", ""),
                 std::to_string(trials) + "/" + DumpJson(study["max_trials"]),
                 best.contains("value") ? DumpJson(best["value"]) : "-",
                 Printable(study.value("metric", "")), study.value("created", "").substr(0, 19)},
                {Ink::kPlain, InkOf(study.value("state", ""))});
    }
    if (table.empty()) {
      std::printf("no studies yet: ath tune job.yaml\n");
    } else {
      std::printf("%s", table.Format(DetectTerminal()).c_str());
    }
  });
}

int TuneShowVerb(const Common& common, const TuneOptions& options) {
  return WithStudy(common, "GET", Target(options), "", [](const Json& study) {
    std::printf("%s", StudyPage(study, DetectTerminal()).c_str());
  });
}

int TuneStopVerb(const Common& common, const TuneOptions& options) {
  return WithStudy(common, "POST", Target(options, "/stop"), "{}", ShowRow);
}

int TuneExtendVerb(const Common& common, const TuneOptions& options) {
  Json changes = Json::object();
  for (const auto& each : options.params) {
    auto range = RangeIn(each);
    if (!range) return Refuse(range.error(), common.json);
    changes["ranges"].update(*range);
  }
  for (const auto& [key, value] : options.set) changes[key] = Plain(value);
  if (!options.time.empty()) changes["budget"]["time"] = options.time;
  if (!options.money.empty()) changes["budget"]["money"] = Plain(options.money);
  if (changes.empty()) {
    return Refuse(
        Error{ErrorCode::kInvalid, "nothing to change", "ath tune extend STUDY --max-trials 100"}
            .Id("ATH-C0010"),
        common.json);
  }
  return WithStudy(common, "POST", Target(options, "/extend"), DumpJson(changes), ShowRow);
}

int TuneAddVerb(const Common& common, const TuneOptions& options) {
  Json params = Json::object();
  for (const auto& each : options.params) {
    const auto equals = each.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Refuse(Error{ErrorCode::kInvalid, "a parameter has the form name=value",
                          "ath tune add STUDY lr=0.1 layers=2"}
                        .Why("got " + Printable(each))
                        .Id("ATH-S0116"),
                    common.json);
    }
    params[each.substr(0, equals)] = Plain(each.substr(equals + 1));
  }
  return WithStudy(common, "POST", Target(options, "/trials"), DumpJson(Json{{"params", params}}),
                   ShowRow);
}

int TuneExportVerb(const Common& common, const TuneOptions& options) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto study = client->Get(Target(options));
  if (!study) return Refuse(study.error(), common.json);
  const bool json = common.json || options.format == "json";
  const auto text = json ? DumpJsonPretty((*study)["trials"]) + "\n" : StudyCsv(*study);
  if (options.to.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }
  if (auto written = WriteFileAtomic(options.to, text); !written)
    return Refuse(written.error(), common.json);
  return 0;
}

int TuneRemoveVerb(const Common& common, const TuneOptions& options) {
  return WithStudy(common, "DELETE", Target(options), "", [](const Json& reply) {
    std::printf("removed %s\n", reply.value("removed", "").c_str());
  });
}

}  // namespace athanor
