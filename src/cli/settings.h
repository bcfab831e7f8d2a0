// The server's settings, from settings.yaml in its home; all optional.
//
//   instances: simulate        # run types that are larger than this machine
//   rates: {cpu_hour: 0.01, gib_hour: 0.001, gpu_hour: 0.5, currency: USD}
#pragma once

#include <string>

#include "base/result.h"
#include "price/catalogue.h"
#include "price/price.h"

namespace athanor {

struct Settings {
  bool simulate = false;
  OwnRates rates;
};

Result<Settings> ReadSettings(const std::string& path);  // defaults when there is no file
Result<Catalogue> LoadCatalogue(const std::string& overrides);

}  // namespace athanor
