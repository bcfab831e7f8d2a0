// A CreateTrainingJob body may be anything; what is taken must make a view.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "door/sagemaker/request.h"
#include "door/sagemaker/search.h"
#include "door/sagemaker/view.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  static const auto images = *sagemaker::ImageMap::Read("/nonexistent/images.yaml");
  auto body = ParseJson({reinterpret_cast<const char*>(data), size});
  if (!body) return 0;
  auto read = sagemaker::ReadTrainingRequest(*body, {images, {"3.11", "1.13.1"}, false});
  if (read) {
    JobRecord record;
    record.spec = read->spec;
    (void)sagemaker::DescribeView({record, {}, {}, "us-west-2", nullptr}).size();
  }
  if (body->is_object()) {
    try {
      (void)sagemaker::ReadSearch(*body).has_value();
    } catch (const Json::exception&) {  // the service answers these
    }
  }
  return 0;
}
