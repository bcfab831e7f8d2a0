#include "serve/settings.h"

#include <cmath>

#include "base/io/files.h"
#include "base/text/text.h"
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

// How a value is read into its member; `path` is for the error.
using Take = Status (*)(const std::string& path, const YamlEntry& entry, Settings& settings);

Status TakeMicros(const std::string& path, const YamlEntry& entry, int64_t& micros) {
  char* end = nullptr;
  double value = std::strtod(entry.value.text.c_str(), &end);
  if (entry.value.text.empty() || *end != '\0' || !(value >= 0) || value > 1e6) {
    return Fail(Bad(path, entry.mark, entry.key + " must be a price per hour, such as 0.25",
                    "edit " + path));
  }
  micros = static_cast<int64_t>(std::llround(value * 1e6));
  return Ok();
}

Status TakeInstances(const std::string& path, const YamlEntry& entry, Settings& settings) {
  if (entry.value.text != "simulate" && entry.value.text != "real") {
    return Fail(
        Bad(path, entry.mark, "instances must be \"simulate\" or \"real\"", "edit " + path));
  }
  settings.simulate = entry.value.text == "simulate";
  return Ok();
}

Status TakeAllowPrivate(const std::string& path, const YamlEntry& entry, Settings& settings) {
  if (entry.value.text != "true" && entry.value.text != "false") {
    return Fail(Bad(path, entry.mark, "webhooks takes allow_private: true or false",
                    "webhooks: {allow_private: true}"));
  }
  settings.webhooks_private = entry.value.text == "true";
  return Ok();
}

// Every key there is; docs/settings.md is made from it. A dot leads into a group.
struct SettingKey {
  std::string_view key;
  const char* value;
  const char* usual;
  const char* text;
  Take take;
};

constexpr SettingKey kKeys[] = {
    {"instances", "`real` or `simulate`", "`real`",
     "`simulate` runs instance types that are larger than this machine on the resources it has. "
     "`ath serve --simulate` does the same.",
     TakeInstances},
    {"preflight_above", "price per hour", "never",
     "`ath run` with an instance type that costs more per hour than this does a preflight first.",
     [](const std::string& path, const YamlEntry& entry, Settings& settings) {
       return TakeMicros(path, entry, settings.preflight_above_micros);
     }},
    {"rates.cpu_hour", "price per hour", "`0`",
     "What one CPU of this machine costs, for jobs that ask for amounts and not for a type.",
     [](const std::string& path, const YamlEntry& entry, Settings& settings) {
       return TakeMicros(path, entry, settings.rates.cpu_hour_micros);
     }},
    {"rates.gib_hour", "price per hour", "`0`", "The same for one GiB of memory.",
     [](const std::string& path, const YamlEntry& entry, Settings& settings) {
       return TakeMicros(path, entry, settings.rates.gib_hour_micros);
     }},
    {"rates.gpu_hour", "price per hour", "`0`", "The same for one GPU.",
     [](const std::string& path, const YamlEntry& entry, Settings& settings) {
       return TakeMicros(path, entry, settings.rates.gpu_hour_micros);
     }},
    {"rates.currency", "text", "`USD`", "The currency of these rates.",
     [](const std::string&, const YamlEntry& entry, Settings& settings) {
       settings.rates.currency = entry.value.text;
       return Ok();
     }},
    {"webhooks.allow_private", "`true` or `false`", "`false`",
     "Rules may send webhooks to loopback addresses and addresses of the local network.",
     TakeAllowPrivate},
};

// "rates." for a key below `rates`, "" for one at the top: reads the value.
Status Read(const std::string& path, const std::string& group, const YamlNode& node,
            Settings& settings) {
  for (const auto& entry : node.entries) {
    const std::string key = group + entry.key;
    bool known = false;
    for (const auto& row : kKeys) {
      if (row.key == key) {
        known = true;
        ATHANOR_CHECK_OK(row.take(path, entry, settings));
      } else if (!known && StartsWith(row.key, key + ".")) {
        known = true;
        if (entry.value.kind != YamlNode::Kind::kMap) {
          return Fail(
              Bad(path, entry.mark, key + " must be a group of keys", "see docs/settings.md"));
        }
        ATHANOR_CHECK_OK(Read(path, key + ".", entry.value, settings));
      }
    }
    if (known) continue;
    std::vector<std::string> names;
    for (const auto& row : kKeys) {
      if (!StartsWith(row.key, group)) continue;
      const auto rest = row.key.substr(group.size());
      const std::string name(rest.substr(0, rest.find('.')));
      if (names.empty() || names.back() != name) names.push_back(name);
    }
    const auto near = Nearest(entry.key, names);
    return Fail(Bad(path, entry.mark, "unknown setting \"" + Printable(key) + "\"",
                    near ? "did you mean \"" + *near + "\"?" : "use " + Join(names, ", ")));
  }
  return Ok();
}

}  // namespace

Result<Settings> ReadSettings(const std::string& path) {
  Settings settings;
  if (!Exists(path)) return settings;
  ATHANOR_TRY(auto text, ReadFile(path, kYamlTextLimit));
  ATHANOR_TRY(auto node, ParseYaml(text, path));
  ATHANOR_CHECK_OK(Read(path, "", node, settings));
  return settings;
}

std::string SettingsPage() {
  std::string out =
      "# Settings of a server\n\nGenerated by `athanor docs settings`; a test compares it with the "
      "program.\n\nA server reads `settings.yaml` in its home (`ATHANOR_HOME`) when it starts. All "
      "keys "
      "are optional. An unknown key or an invalid value is an error (ATH-V0010), and the server "
      "does "
      "not start. After a change, restart the server with `ath server stop`; the next command "
      "starts "
      "it again.\n\n| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const auto& row : kKeys) {
    out += "| `" + std::string(row.key) + "` | " + row.value + " | " + row.usual + " | " +
           row.text + " |\n";
  }
  return out +
         "\nA dot in a key means a group:\n\n```yaml\ninstances: simulate\npreflight_above: 5.0\n"
         "rates: {cpu_hour: 0.01, gib_hour: 0.001, gpu_hour: 0.5, currency: USD}\n"
         "webhooks:\n  allow_private: true\n```\n\nSettings of a single job are keys of its "
         "[job file](job-file.md). Where a key takes a duration, "
         "[durations](glossary.md#durations) says how to write it.\n";
}

Result<Catalogue> LoadCatalogue(const std::string& overrides) {
  if (!Exists(overrides)) return Catalogue::Builtin();
  ATHANOR_TRY(auto csv, ReadFile(overrides, 8 << 20));
  return Catalogue::WithOverrides(csv, overrides);
}

}  // namespace athanor
