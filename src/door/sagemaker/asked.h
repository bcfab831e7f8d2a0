// A call of an operation. Holds a document by value: for .cc files that include
// nlohmann/json.hpp before.
#pragma once

#include <string>

#include "base/text/json.h"

namespace athanor::sagemaker {

// What an operation works with, however it was called.
struct Asked {
  Json body;
  std::string user;
  std::string region;
  bool from_sdk = false;  // the SageMaker Python SDK: we know how it polls
};

}  // namespace athanor::sagemaker
