// The server's settings, from settings.yaml in its home; all optional. The table of keys is in
// settings.cc, and docs/settings.md is made from it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "price/catalogue.h"
#include "price/price.h"

namespace athanor {

// Where agents of other machines are heard.
struct AgentsSettings {
  std::string host;  // literal address to listen at; empty: nowhere
  uint16_t port = 0;
  // What agents are told: "HOST", then with the port that is listened at, or "HOST:PORT".
  std::string address;
  bool operator==(const AgentsSettings&) const = default;
};

struct Settings {
  bool simulate = false;
  bool webhooks_private = false;
  int64_t preflight_above_micros = -1;  // per hour; -1: never
  OwnRates rates;
  AgentsSettings agents;
};

Result<Settings> ReadSettings(const std::string& path);  // defaults if there is no file
std::string SettingsPage();                              // docs/settings.md
Result<Catalogue> LoadCatalogue(const std::string& overrides);

}  // namespace athanor
