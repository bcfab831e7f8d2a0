#include "study/fake_trials.h"

#include <nlohmann/json.hpp>

#include "base/text/json.h"

namespace athanor {

double FakeTrials::Objective(const std::string& params) {
  const auto json = ParseJson(params).value_or(Json::object());
  const double x = json.at("x").get<double>(), n = json.at("n").get<double>();
  return (x - 0.3) * (x - 0.3) + 0.01 * (n - 4) * (n - 4);
}

}  // namespace athanor
