#include "serve/settings.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cmath>
#include <optional>

#include "base/io/files.h"
#include "base/text/text.h"
#include "net/http/http_client.h"
#include "submit/yaml.h"

namespace athanor {
namespace {

Error Bad(const std::string& path, const YamlMark& mark, std::string what, std::string hint) {
  return Error{ErrorCode::kInvalid, std::move(what), std::move(hint)}
      .Id("ATH-V0010")
      .Where(WhereOf(path, mark));
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

// An address without its brackets, and what follows it; none: it has neither form.
struct HostAndPort {
  std::string host;
  std::string port;  // digits; empty: none
};
std::optional<HostAndPort> SplitAddress(const std::string& text) {
  const auto end = StartsWith(text, "[") ? text.find(']') : std::string::npos;
  const bool bracketed = end != std::string::npos;
  const auto colon = bracketed ? end + 1 : std::min(text.find(':'), text.size());
  HostAndPort parts{bracketed ? text.substr(1, end - 1) : text.substr(0, colon), ""};
  if (parts.host.empty()) return std::nullopt;
  if (colon == text.size()) return parts;
  parts.port = text.substr(colon + 1);
  const bool digits = !parts.port.empty() && parts.port.size() <= 5 &&
                      parts.port.find_first_not_of("0123456789") == std::string::npos;
  if (text[colon] != ':' || !digits || std::stoul(parts.port) > 65'535) return std::nullopt;
  return parts;
}

enum class AddressKind { kName, kLiteral, kWildcard };
AddressKind KindOf(const std::string& host) {
  in_addr v4{};
  in6_addr v6{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return v4.s_addr == INADDR_ANY ? AddressKind::kWildcard : AddressKind::kLiteral;
  }
  if (::inet_pton(AF_INET6, host.c_str(), &v6) != 1) return AddressKind::kName;
  return IN6_IS_ADDR_UNSPECIFIED(&v6) ? AddressKind::kWildcard : AddressKind::kLiteral;
}

Status TakeListen(const std::string& path, const YamlEntry& entry, Settings& settings) {
  const auto& text = entry.value.text;
  const auto parts = SplitAddress(text);
  if (!parts || parts->port.empty() || KindOf(parts->host) == AddressKind::kName) {
    Error error =
        Bad(path, entry.mark, "agents.listen must be an address of this machine and a port",
            "agents: {listen: \"10.0.0.5:7071\"}\nagents: {listen: \"[fd00::5]:7071\"}");
    error.why = "\"" + Printable(text) + "\" is not one";
    return Fail(std::move(error));
  }
  settings.agents.host = parts->host;
  settings.agents.port = static_cast<uint16_t>(std::stoul(parts->port));
  return Ok();
}

Status TakeAddress(const std::string& path, const YamlEntry& entry, Settings& settings) {
  const auto& text = entry.value.text;
  const auto parts = SplitAddress(text);
  const bool usable = parts && KindOf(parts->host) != AddressKind::kWildcard &&
                      parts->port != "0" && Endpoint::Parse("https://" + text).has_value();
  if (!usable) {
    Error error = Bad(path, entry.mark,
                      "agents.address must be a name or an address at which agents reach this "
                      "machine, perhaps with a port",
                      "agents: {listen: \"0.0.0.0:7071\", address: \"10.0.0.5\"}");
    error.why = "\"" + Printable(text) + "\" is not one";
    return Fail(std::move(error));
  }
  settings.agents.address = text;
  return Ok();
}

// What the keys mean together.
Status CheckAgents(const std::string& path, AgentsSettings& agents) {
  if (agents.host.empty() && agents.address.empty()) return Ok();
  if (agents.host.empty()) {
    Error error = Bad(path, {}, "agents.address is given, but not where to listen",
                      "agents: {listen: \"0.0.0.0:7071\", address: \"" + agents.address + "\"}");
    return Fail(std::move(error));
  }
  if (!agents.address.empty()) return Ok();
  if (KindOf(agents.host) == AddressKind::kWildcard) {
    const bool v6 = agents.host.find(':') != std::string::npos;
    Error error = Bad(path, {}, "agents.listen names every address, so agents must be told one",
                      "agents: {listen: \"" + (v6 ? "[" + agents.host + "]" : agents.host) + ":" +
                          std::to_string(agents.port) +
                          "\", address: \"10.0.0.5\"}\n"
                          "ip -brief address        shows the addresses of this machine");
    error.why = "agents.address is missing";
    return Fail(std::move(error));
  }
  agents.address =
      agents.host.find(':') == std::string::npos ? agents.host : "[" + agents.host + "]";
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
    {"agents.listen", "address and port", "nowhere",
     "Agents on other machines reach the server here, over TLS: an address of this machine, such "
     "as "
     "`10.0.0.5:7071`, or `0.0.0.0:7071` or `[::]:7071` for all of them. Port `0` takes a free "
     "one, "
     "which the home keeps. [Security](security.md#agents-on-other-machines) says who may call.",
     TakeListen},
    {"agents.address", "name or address, perhaps with a port", "that of `agents.listen`",
     "What agents are told, if it is not where the server listens: needed if that is all addresses "
     "of the machine, or if a router forwards the port.",
     TakeAddress},
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
  ATHANOR_CHECK_OK(CheckAgents(path, settings.agents));
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
         "webhooks:\n  allow_private: true\n"
         "agents: {listen: \"0.0.0.0:7071\", address: \"10.0.0.5\"}\n```\n\nSettings of a single "
         "job are keys of its "
         "[job file](job-file.md). Where a key takes a duration, "
         "[durations](glossary.md#durations) says how to write it.\n";
}

Result<Catalogue> LoadCatalogue(const std::string& overrides) {
  if (!Exists(overrides)) return Catalogue::Builtin();
  ATHANOR_TRY(auto csv, ReadFile(overrides, 8 << 20));
  return Catalogue::WithOverrides(csv, overrides);
}

}  // namespace athanor
