// The server's settings, from settings.yaml in its home; all optional.
//
//   instances: simulate        # run types that are larger than this machine
//   webhooks: {allow_private: true}    # rules may tell addresses of the local network
//   preflight_above: 5.0       # dollars an hour: `ath run` of a dearer type does one first
//   rates: {cpu_hour: 0.01, gib_hour: 0.001, gpu_hour: 0.5, currency: USD}
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "price/catalogue.h"
#include "price/price.h"

namespace athanor {

struct Settings {
  bool simulate = false;
  bool webhooks_private = false;
  int64_t preflight_above_micros = -1;  // an hour; -1: never
  OwnRates rates;
};

Result<Settings> ReadSettings(const std::string& path);  // defaults when there is no file
Result<Catalogue> LoadCatalogue(const std::string& overrides);

}  // namespace athanor
