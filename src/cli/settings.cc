#include "cli/settings.h"

#include <cmath>

#include "base/files.h"
#include "base/text.h"
#include "submit/yaml.h"

namespace athanor {
namespace {

Error Bad(const std::string& path, const YamlMark& mark, std::string what, std::string hint) {
  Error error;
  error.code = ErrorCode::kInvalid;
  error.what = std::move(what);
  error.hint = std::move(hint);
  error.where = WhereOf(path, mark);
  error.id = "ATH-V0010";
  return error;
}

Result<int64_t> Micros(const std::string& path, const YamlEntry& entry) {
  char* end = nullptr;
  double value = std::strtod(entry.value.text.c_str(), &end);
  if (entry.value.text.empty() || *end != '\0' || !(value >= 0) || value > 1e6) {
    return Fail(Bad(path, entry.mark, entry.key + " must be a price per hour, such as 0.25",
                    "edit " + path));
  }
  return static_cast<int64_t>(std::llround(value * 1e6));
}

Status ReadRates(const std::string& path, const YamlNode& node, OwnRates& rates) {
  for (const auto& entry : node.entries) {
    if (entry.key == "currency") {
      rates.currency = entry.value.text;
    } else if (entry.key == "cpu_hour") {
      ATHANOR_TRY(rates.cpu_hour_micros, Micros(path, entry));
    } else if (entry.key == "gib_hour") {
      ATHANOR_TRY(rates.gib_hour_micros, Micros(path, entry));
    } else if (entry.key == "gpu_hour") {
      ATHANOR_TRY(rates.gpu_hour_micros, Micros(path, entry));
    } else {
      return Fail(Bad(path, entry.mark, "unknown rate \"" + Printable(entry.key) + "\"",
                      "use cpu_hour, gib_hour, gpu_hour or currency"));
    }
  }
  return Ok();
}

Status ReadWebhooks(const std::string& path, const YamlEntry& group, Settings& settings) {
  for (const auto& entry : group.value.entries) {
    const auto& value = entry.value.text;
    if (entry.key != "allow_private" || (value != "true" && value != "false")) {
      return Fail(Bad(path, entry.mark, "webhooks takes allow_private: true or false",
                      "webhooks: {allow_private: true}"));
    }
    settings.webhooks_private = value == "true";
  }
  return Ok();
}

}  // namespace

Result<Settings> ReadSettings(const std::string& path) {
  Settings settings;
  if (!Exists(path)) return settings;
  ATHANOR_TRY(auto text, ReadFile(path, kYamlTextLimit));
  ATHANOR_TRY(auto node, ParseYaml(text, path));
  for (const auto& entry : node.entries) {
    if (entry.key == "instances") {
      if (entry.value.text != "simulate" && entry.value.text != "real") {
        return Fail(Bad(path, entry.mark, "instances must be \"simulate\" or \"real\"", "edit " + path));
      }
      settings.simulate = entry.value.text == "simulate";
    } else if (entry.key == "preflight_above") {
      ATHANOR_TRY(settings.preflight_above_micros, Micros(path, entry));
    } else if (entry.key == "webhooks") {
      ATHANOR_CHECK_OK(ReadWebhooks(path, entry, settings));
    } else if (entry.key == "rates") {
      ATHANOR_CHECK_OK(ReadRates(path, entry.value, settings.rates));
    } else {
      auto near = Nearest(entry.key, {"instances", "preflight_above", "rates", "webhooks"});
      return Fail(Bad(path, entry.mark, "unknown setting \"" + Printable(entry.key) + "\"",
                      near ? "did you mean \"" + *near + "\"?"
                           : "use instances, preflight_above, rates or webhooks"));
    }
  }
  return settings;
}

Result<Catalogue> LoadCatalogue(const std::string& overrides) {
  if (!Exists(overrides)) return Catalogue::Builtin();
  ATHANOR_TRY(auto csv, ReadFile(overrides, 8 << 20));
  return Catalogue::WithOverrides(csv, overrides);
}

}  // namespace athanor
