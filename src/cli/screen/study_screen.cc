#include "cli/screen/study_screen.h"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kShownTrials = 30;
constexpr size_t kTrend = 40;

std::string Value(const Json& value) {
  if (value.is_number()) return fmt::format("{:.6g}", value.get<double>());
  return value.is_string() ? Printable(value.get<std::string>()) : DumpJson(value);
}

std::string ValueIn(const Json& trial) {
  return trial.contains("value") ? Value(trial["value"]) : "-";
}

std::string ParamsText(const Json& trial) {
  std::vector<std::string> words;
  const auto params = trial.value("params", Json::object());
  for (const auto& [name, value] : params.items())
    words.push_back(Printable(name) + "=" + Value(value));
  return Join(words, " ");
}

Ink InkOfTrial(const std::string& state) {
  if (state == "done") return Ink::kGreen;
  if (state == "failed") return Ink::kRed;
  if (state == "running" || state == "stopping") return Ink::kBlue;
  return Ink::kGrey;
}

std::string TextIn(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_string() ? at->get<std::string>() : std::string();
}

// Trials in the order of their value, the best first; then those without one, newest first.
std::vector<const Json*> Ordered(const Json& study) {
  std::vector<const Json*> trials;
  for (const auto& trial : study["trials"]) trials.push_back(&trial);
  const double sign = TextIn(study, "goal") == "maximize" ? -1 : 1;
  std::stable_sort(trials.begin(), trials.end(), [&](const Json* a, const Json* b) {
    const auto rank = [&](const Json& t) {
      return TextIn(t, "state") == "done" && t.contains("value") && t["value"].is_number() ? 0 : 1;
    };
    if (rank(*a) != rank(*b)) return rank(*a) < rank(*b);
    if (rank(*a) == 0)
      return sign * (*a)["value"].get<double>() < sign * (*b)["value"].get<double>();
    return (*a)["trial"].get<int64_t>() > (*b)["trial"].get<int64_t>();
  });
  return trials;
}

std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  return "\"" + ReplaceAll(text, "\"", "\"\"") + "\"";
}

}  // namespace

std::string TrialLine(const Json& study, const Json& trial, const Terminal& terminal) {
  const auto state = TextIn(trial, "state");
  std::string line =
      fmt::format("  trial {:<4} {} {:>12}", trial["trial"].get<int64_t>(),
                  Paint(terminal, InkOfTrial(state), fmt::format("{:<8}", state)), ValueIn(trial));
  if (study.contains("best")) {
    line += fmt::format("   best {} (trial {})", ValueIn(study["best"]),
                        study["best"]["trial"].get<int64_t>());
  }
  line += "   " + ParamsText(trial);
  const auto cause = trial.value("cause", Json::object());
  if (state != "done" && !TextIn(cause, "text").empty())
    line += "   " + Printable(TextIn(cause, "text"));
  return line;
}

std::string StudyPage(const Json& study, const Terminal& terminal) {
  std::string out;
  const auto& counts = study["counts"];
  out +=
      fmt::format("{}  {}   {} {}   {} of {} trials, {} at a time   {} seed {}\n",
                  Paint(terminal, Ink::kBold, Printable(TextIn(study, "name"))),
                  Paint(terminal, InkOf(TextIn(study, "state")), TextIn(study, "state")),
                  TextIn(study, "goal"), Printable(TextIn(study, "metric")), study["trials"].size(),
                  study["max_trials"].get<int64_t>(), study["parallel"].get<int64_t>(),
                  TextIn(study, "strategy"), study["seed"].get<uint64_t>());
  const auto cause = study.value("cause", Json::object());
  if (!TextIn(cause, "text").empty()) out += "  " + Printable(TextIn(cause, "text")) + "\n";
  if (const auto detail = TextIn(cause, "detail"); !detail.empty()) {
    for (const auto& line : Split(detail, '\n')) out += "    | " + Printable(line) + "\n";
  }
  out += fmt::format("  running {}  done {}  stopped {}  failed {}",
                     counts["running"].get<size_t>(), counts["done"].get<size_t>(),
                     counts["stopped"].get<size_t>(), counts["failed"].get<size_t>());
  if (const auto paused = counts.value("paused", size_t{0}); paused > 0) {
    out += fmt::format("  paused {}", paused);
  }
  if (study["imported"].get<int64_t>() > 0) {
    out += fmt::format("  from earlier studies {}", study["imported"].get<int64_t>());
  }
  out += "\n";
  if (study.contains("best")) {
    const auto& best = study["best"];
    out += fmt::format("\nbest  {}  {}  {}\n", Paint(terminal, Ink::kGreen, ValueIn(best)),
                       TextIn(best, "name"), ParamsText(best));
    std::vector<double> trend;
    for (const auto& each : study["best_so_far"]) trend.push_back(each.get<double>());
    if (trend.size() > 1) out += "      " + Sparkline(trend, kTrend, terminal.ascii) + "\n";
  }
  const auto trials = Ordered(study);
  if (!trials.empty()) {
    Table table({"TRIAL", "STATE", "VALUE", "PARAMETERS"});
    for (size_t i = 0; i < std::min(trials.size(), kShownTrials); ++i) {
      const auto state = TextIn(*trials[i], "shown_state");
      table.Add({std::to_string((*trials[i])["trial"].get<int64_t>()), state, ValueIn(*trials[i]),
                 ParamsText(*trials[i])},
                {Ink::kPlain, InkOfTrial(state)});
    }
    out += "\n" + table.Format(terminal);
    if (trials.size() > kShownTrials) {
      out += fmt::format("  and {} more: ath tune export {}\n", trials.size() - kShownTrials,
                         ShellQuote(TextIn(study, "name")));
    }
  }
  if (!study["importance"].empty()) {
    out += "\nwhat matters\n";
    for (const auto& row : study["importance"]) {
      out += fmt::format("  {:<20} {:>3.0f} %\n", Printable(TextIn(row, "parameter")),
                         100 * row["share"].get<double>());
    }
  }
  for (const auto& hint : study["hints"]) {
    out += "\n" + Paint(terminal, Ink::kYellow, "hint") + "  " + Printable(TextIn(hint, "text")) +
           "\n";
    if (!TextIn(hint, "next").empty()) out += "      " + Printable(TextIn(hint, "next")) + "\n";
  }
  return out;
}

std::string StudyCsv(const Json& study) {
  std::vector<std::string> names;
  for (const auto& parameter : study["spec"]["space"]) names.push_back(TextIn(parameter, "name"));
  std::string out = "trial,state,job,value,step,cost,held_s";
  for (const auto& name : names) out += "," + Quoted(name);
  out += "\n";
  for (const auto& trial : study["trials"]) {
    out += fmt::format("{},{},{},{},{},{:.6f},{:.3f}", trial["trial"].get<int64_t>(),
                       TextIn(trial, "state"), TextIn(trial, "job"),
                       trial.contains("value") ? DumpJson(trial["value"]) : "",
                       trial.contains("step") ? DumpJson(trial["step"]) : "",
                       static_cast<double>(trial["cost_micros"].get<int64_t>()) / 1e6,
                       static_cast<double>(trial["held_ms"].get<int64_t>()) / 1e3);
    for (const auto& name : names) {
      const auto& params = trial["params"];
      out += ",";
      if (!params.contains(name)) continue;
      out += Quoted(params[name].is_string() ? params[name].get<std::string>()
                                             : DumpJson(params[name]));
    }
    out += "\n";
  }
  return out;
}

}  // namespace athanor
