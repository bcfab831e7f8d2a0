#include "study/spec.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "job/codec.h"
#include "tune/space.h"

namespace athanor {
namespace {

constexpr EarlyStopSpec::Rule kRules[] = {
    EarlyStopSpec::Rule::kNone, EarlyStopSpec::Rule::kAsha, EarlyStopSpec::Rule::kHyperband,
    EarlyStopSpec::Rule::kMedian, EarlyStopSpec::Rule::kCurve};

// `key` is what the error is about, within the object that is read; empty: all of it.
tl::unexpected<Error> Bad(std::string key, std::string what, std::string why, std::string hint) {
  return Fail(Error{ErrorCode::kInvalid, std::move(what), std::move(hint)}
                  .Why(std::move(why))
                  .Id("ATH-T0011")
                  .Where(std::move(key)));
}

std::string SeenText(const Json& value) {
  auto text = DumpJson(value);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return "got " + Printable(text);
}

// An error about something below `key` says so.
template <class Outcome>
Outcome Below(const std::string& key, Outcome outcome) {
  if (!outcome) {
    auto& where = outcome.error().where;
    where = where.empty() ? key : key + "." + where;
  }
  return outcome;
}

// One object, key by key; keys that were never asked for are unknown.
class Members {
 public:
  Members(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  // Keys that a program adds are not shown to a person.
  const Json* Find(const char* key, bool told = true) {
    (told ? known_ : untold_).emplace_back(key);
    const auto at = json_.find(key);
    return at == json_.end() || at->is_null() ? nullptr : &*at;
  }
  Status Text(const char* key, std::string& to, bool told = true) {
    const auto* value = Find(key, told);
    if (!value) return Ok();
    if (!value->is_string())
      return Bad(key, where_ + key + " must be a text", SeenText(*value), "");
    to = value->get<std::string>();
    return Ok();
  }
  Status Whole(const char* key, int64_t low, int64_t high, int64_t& to) {
    const auto* value = Find(key);
    if (!value) return Ok();
    const bool whole =
        value->is_number_integer() ||
        (value->is_number_float() && value->get<double>() == std::floor(value->get<double>()) &&
         std::fabs(value->get<double>()) < 9e15);
    const int64_t number = !whole ? 0
                           : value->is_number_integer()
                               ? value->get<int64_t>()
                               : static_cast<int64_t>(value->get<double>());
    if (!whole || number < low || number > high) {
      return Bad(key,
                 where_ + key + " must be a whole number from " + std::to_string(low) + " to " +
                     std::to_string(high),
                 SeenText(*value), "");
    }
    to = number;
    return Ok();
  }
  Status Number(const char* key, std::optional<double>& to) {
    const auto* value = Find(key);
    if (!value) return Ok();
    if (!value->is_number() || !std::isfinite(value->get<double>())) {
      return Bad(key, where_ + key + " must be a number", SeenText(*value), "");
    }
    to = value->get<double>();
    return Ok();
  }
  Status Flag(const char* key, bool& to) {
    const auto* value = Find(key);
    if (!value) return Ok();
    if (!value->is_boolean())
      return Bad(key, where_ + key + " must be true or false", SeenText(*value), "");
    to = value->get<bool>();
    return Ok();
  }
  // One of two words.
  Status Either(const char* key, std::string_view no, std::string_view yes, bool& to) {
    std::string word(to ? yes : no);
    ATHANOR_CHECK_OK(Text(key, word));
    if (word != no && word != yes) {
      return Bad(key, fmt::format("{}{} is neither {} nor {}", where_, key, no, yes),
                 "got " + Printable(word), "");
    }
    to = word == yes;
    return Ok();
  }
  Status End() const {
    for (const auto& [key, value] : json_.items()) {
      const auto is_in = [&key = key](const auto& keys) {
        return std::find(keys.begin(), keys.end(), key) != keys.end();
      };
      if (is_in(known_) || is_in(untold_)) continue;
      const auto near = Nearest(key, known_);
      return Bad(Printable(key), "unknown key " + where_ + Printable(key), "",
                 near ? "did you mean " + *near + "?" : "known here: " + Join(known_, ", "));
    }
    return Ok();
  }

 private:
  const Json& json_;
  std::string where_;
  std::vector<std::string> known_, untold_;
};

// An object of names becomes the list form of a space; a list under a name is its choices, a plain
// value a constant.
Result<std::string> ReadSpace(const Json* space) {
  constexpr char kHint[] = "space:\n  lr: {type: float, low: 1e-5, high: 1, scale: log}";
  if (!space) return Bad("", "there is no space to search", "space is not given", kHint);
  Json list = Json::array();
  if (space->is_array()) {
    list = *space;
  } else if (space->is_object()) {
    for (const auto& [name, entry] : space->items()) {
      Json parameter = Json::object();
      parameter["name"] = name;
      if (entry.is_array()) {
        parameter["type"] = "cat";
        parameter["choices"] = entry;
      } else if (entry.is_object()) {
        for (const auto& [key, value] : entry.items()) parameter[key] = value;
      } else {
        parameter["type"] = "const";
        parameter["value"] = entry;
      }
      list.push_back(std::move(parameter));
    }
  } else {
    return Bad("", "space must be a map of parameters", SeenText(*space), kHint);
  }
  ATHANOR_CHECK_OK(tune::Space::Parse(list));
  return DumpJson(list);
}

Status ReadBudget(const Json* budget, StudySpec& spec) {
  if (!budget) return Ok();
  if (!budget->is_object())
    return Bad("", "budget must be a map", SeenText(*budget), "budget: {time: 2h}");
  Members members(*budget, "budget.");
  std::optional<double> money;
  ATHANOR_CHECK_OK(members.Number("money", money));
  if (money && (*money <= 0 || *money > 1e9)) {
    return Bad("money", "budget.money must be above 0", fmt::format("got {}", *money),
               "budget: {money: 5}");
  }
  if (money) spec.budget_micros = std::llround(*money * 1e6);
  if (const auto* time = members.Find("time")) {
    const auto text = time->is_string() ? time->get<std::string>() : DumpJson(*time);
    auto duration = ParseDuration(text);
    if (!duration || duration->count() <= 0) {
      return Bad("time", "budget.time is no duration", "got " + Printable(text),
                 "budget: {time: 2h}");
    }
    spec.budget_time = *duration;
  }
  return members.End();
}

Status ReadEarly(const Json* early, EarlyStopSpec& spec) {
  if (!early) return Ok();
  Json object = early->is_string() ? Json({{"rule", *early}}) : *early;
  constexpr char kHint[] =
      "early_stopping: {rule: asha, first: 1, last: 81}\nearly_stopping: median";
  constexpr char kForms[] = "early_stopping: {rule: asha, first: 1, last: 81, form: promotion}";
  if (!object.is_object()) return Bad("", "early_stopping must be a rule", SeenText(*early), kHint);
  Members members(object, "early_stopping.");
  std::string rule;
  ATHANOR_CHECK_OK(members.Text("rule", rule));
  if (rule == "auto") rule = "median";
  const auto known = std::find_if(std::begin(kRules), std::end(kRules),
                                  [&](auto each) { return NameOf(each) == rule; });
  if (known == std::end(kRules)) {
    return Bad("rule", "early_stopping has no rule " + Printable(rule),
               "none, asha, hyperband, median, curve", kHint);
  }
  spec.rule = *known;
  ATHANOR_CHECK_OK(members.Whole("first", 0, 1'000'000'000, spec.first));
  ATHANOR_CHECK_OK(members.Whole("last", 1, 1'000'000'000, spec.last));
  std::string form;
  ATHANOR_CHECK_OK(members.Text("form", form));
  spec.promote = form == "promotion";
  if (!form.empty() && form != "stopping" && !spec.promote) {
    return Bad("form", "early_stopping has no form " + Printable(form), "stopping, promotion",
               kForms);
  }
  if (spec.promote && spec.rule != EarlyStopSpec::Rule::kAsha &&
      spec.rule != EarlyStopSpec::Rule::kHyperband) {
    return Bad("form", "only asha and hyperband have rungs to be promoted from",
               "the rule is " + rule, kForms);
  }
  std::optional<double> eta, chance;
  ATHANOR_CHECK_OK(members.Number("eta", eta));
  ATHANOR_CHECK_OK(members.Number("chance", chance));
  spec.eta = eta.value_or(spec.eta);
  spec.chance = chance.value_or(spec.chance);
  if (!(spec.eta >= 1.5 && spec.eta <= 100)) {
    return Bad("eta", "early_stopping.eta must be 1.5 to 100", fmt::format("got {}", spec.eta),
               kHint);
  }
  if (!(spec.chance > 0 && spec.chance < 1)) {
    return Bad("chance", "early_stopping.chance must lie between 0 and 1",
               fmt::format("got {}", spec.chance), kHint);
  }
  const bool needs_last = spec.rule == EarlyStopSpec::Rule::kAsha ||
                          spec.rule == EarlyStopSpec::Rule::kHyperband ||
                          spec.rule == EarlyStopSpec::Rule::kCurve;
  if (needs_last && spec.last <= spec.first) {
    return Bad("last",
               "early_stopping needs `last`, the step at which a trial is complete, above `first`",
               fmt::format("first {}, last {}", spec.first, spec.last), kHint);
  }
  return members.End();
}

Status ReadWarmStart(const Json* warm, StudySpec& spec) {
  if (!warm) return Ok();
  const Json list = warm->is_string() ? Json::array({*warm}) : *warm;
  for (const auto& each : list) {
    if (!each.is_string() || spec.warm_start.size() >= 100) {
      return Bad("", "warm_start must name studies", SeenText(*warm), "warm_start: [digits]");
    }
    spec.warm_start.push_back(each.get<std::string>());
  }
  return Ok();
}

}  // namespace

std::string_view NameOf(EarlyStopSpec::Rule rule) {
  switch (rule) {
    case EarlyStopSpec::Rule::kNone:
      return "none";
    case EarlyStopSpec::Rule::kAsha:
      return "asha";
    case EarlyStopSpec::Rule::kHyperband:
      return "hyperband";
    case EarlyStopSpec::Rule::kMedian:
      return "median";
    case EarlyStopSpec::Rule::kCurve:
      return "curve";
  }
  return "";
}

Result<StudySpec> StudySpecFromJson(const Json& json) {
  if (!json.is_object())
    return Bad("", "a study must be a map", SeenText(json), "see docs/tuning.md");
  StudySpec spec;
  Members members(json, "");
  ATHANOR_CHECK_OK(members.Text("name", spec.name));
  if (spec.name.size() > 200 || Printable(spec.name) != spec.name) {
    return Bad("name", "a bad name for a study", "got " + Printable(spec.name),
               "at most 200 characters");
  }
  ATHANOR_CHECK_OK(members.Text("metric", spec.metric));
  if (spec.metric.empty()) {
    return Bad("metric", "which metric is to be optimised?", "metric is not given",
               "metric: val_loss");
  }
  ATHANOR_CHECK_OK(members.Either("goal", "minimize", "maximize", spec.maximize));
  ATHANOR_CHECK_OK(members.Either("value", "last", "best", spec.best_value));
  ATHANOR_TRY(spec.space, Below("space", ReadSpace(members.Find("space"))));
  std::string strategy(NameOf(spec.strategy));
  ATHANOR_CHECK_OK(members.Text("strategy", strategy));
  ATHANOR_TRY(spec.strategy, Below("strategy", tune::StrategyNamed(strategy)));
  int64_t seed = -1;
  ATHANOR_CHECK_OK(members.Whole("seed", 0, INT64_MAX, seed));
  if (seed >= 0) spec.seed = static_cast<uint64_t>(seed);
  ATHANOR_CHECK_OK(members.Whole("max_trials", 1, kMostTrials, spec.max_trials));
  ATHANOR_CHECK_OK(members.Whole("parallel", 1, kMostParallel, spec.parallel));
  ATHANOR_CHECK_OK(Below("budget", ReadBudget(members.Find("budget"), spec)));
  ATHANOR_CHECK_OK(members.Number("target", spec.target));
  ATHANOR_CHECK_OK(members.Whole("no_improvement", 0, kMostTrials, spec.no_improvement));
  ATHANOR_CHECK_OK(members.Flag("converge", spec.converge));
  ATHANOR_CHECK_OK(members.Whole("max_failures", 1, kMostTrials, spec.max_failures));
  ATHANOR_CHECK_OK(Below("early_stopping", ReadEarly(members.Find("early_stopping"), spec.early)));
  ATHANOR_CHECK_OK(Below("warm_start", ReadWarmStart(members.Find("warm_start"), spec)));
  ATHANOR_CHECK_OK(members.Flag("transfer", spec.transfer));
  ATHANOR_CHECK_OK(members.Text("origin", spec.origin, false));
  ATHANOR_CHECK_OK(members.Text("request", spec.request, false));
  if (const auto* job = members.Find("job", false)) {
    ATHANOR_TRY(spec.job, Below("job", SpecFromCaller(*job)));
  }
  ATHANOR_CHECK_OK(members.End());
  return spec;
}

Json ToJson(const StudySpec& spec) {
  Json out = {{"name", spec.name},
              {"metric", spec.metric},
              {"goal", spec.maximize ? "maximize" : "minimize"},
              {"value", spec.best_value ? "best" : "last"}};
  auto space = ParseJson(spec.space);
  out["space"] = space ? std::move(*space) : Json::array();
  out["strategy"] = NameOf(spec.strategy);
  if (spec.seed) out["seed"] = *spec.seed;
  out["max_trials"] = spec.max_trials;
  out["parallel"] = spec.parallel;
  Json budget = Json::object();
  if (spec.budget_micros > 0) budget["money"] = static_cast<double>(spec.budget_micros) / 1e6;
  if (spec.budget_time.count() > 0)
    budget["time"] = std::to_string(spec.budget_time.count()) + "ms";
  if (!budget.empty()) out["budget"] = std::move(budget);
  if (spec.target) out["target"] = *spec.target;
  if (spec.no_improvement > 0) out["no_improvement"] = spec.no_improvement;
  if (spec.converge) out["converge"] = true;
  out["max_failures"] = spec.max_failures;
  if (spec.early.rule != EarlyStopSpec::Rule::kNone) {
    Json early = {{"rule", NameOf(spec.early.rule)}, {"first", spec.early.first}};
    if (spec.early.last > 0) early["last"] = spec.early.last;
    early["eta"] = spec.early.eta;
    if (spec.early.promote) early["form"] = "promotion";
    early["chance"] = spec.early.chance;
    out["early_stopping"] = std::move(early);
  }
  if (!spec.warm_start.empty()) out["warm_start"] = spec.warm_start;
  if (spec.transfer) out["transfer"] = true;
  out["origin"] = spec.origin;
  if (!spec.request.empty()) out["request"] = spec.request;
  out["job"] = ToJson(spec.job);
  return out;
}

Status ChangeStudySpec(StudySpec& spec, const Json& changes) {
  if (!changes.is_object()) return Bad("", "changes must be a map", SeenText(changes), "");
  StudySpec changed = spec;
  Members members(changes, "");
  ATHANOR_CHECK_OK(members.Whole("max_trials", 1, kMostTrials, changed.max_trials));
  ATHANOR_CHECK_OK(members.Whole("parallel", 1, kMostParallel, changed.parallel));
  ATHANOR_CHECK_OK(Below("budget", ReadBudget(members.Find("budget"), changed)));
  ATHANOR_CHECK_OK(members.Number("target", changed.target));
  ATHANOR_CHECK_OK(members.Whole("no_improvement", 0, kMostTrials, changed.no_improvement));
  if (const auto* ranges = members.Find("ranges")) {
    ATHANOR_TRY(const auto space, ParseJson(spec.space));
    ATHANOR_TRY(const auto with, Below("ranges", tune::WithRanges(space, *ranges)));
    changed.space = DumpJson(with);
  }
  ATHANOR_CHECK_OK(members.End());
  spec = std::move(changed);
  return Ok();
}

JobSpec TrialJob(const StudySpec& spec, const Json& params, int64_t number) {
  JobSpec job = spec.job;
  for (const auto& [name, value] : params.items()) {
    Param param{name, value.is_string() ? value.get<std::string>() : DumpJson(value),
                Param::Kind::kString};
    if (value.is_number()) param.kind = Param::Kind::kNumber;
    if (value.is_boolean()) param.kind = Param::Kind::kBool;
    if (value.is_null()) param = {name, "", Param::Kind::kNull};
    const auto same =
        std::find_if(job.params.begin(), job.params.end(),
                     [&param](const Param& other) { return other.name == param.name; });
    if (same == job.params.end()) {
      job.params.push_back(std::move(param));
    } else {
      *same = std::move(param);
    }
  }
  job.name = fmt::format("{}-{}", spec.name, number);
  if (job.experiment.empty()) job.experiment = spec.name;
  job.tags["athanor.study"] = spec.name;
  job.tags["athanor.trial"] = std::to_string(number);
  return job;
}

}  // namespace athanor
