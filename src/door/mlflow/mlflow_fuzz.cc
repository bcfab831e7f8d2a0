// Bodies and queries of MLflow's calls come from anybody who can reach the port: reading them
// ends with a value or an error, and a path that is accepted leads nowhere else.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "door/mlflow/validate.h"
#include "door/mlflow/wire.h"
#include "door/native/artifact_places.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Request request;
  request.method = "POST";
  request.headers.Add("Content-Type", "application/json");
  request.body = bytes;
  if (const auto fields = Fields::Of(request)) {
    for (const char* name :
         {"run_id", "key", "value", "timestamp", "tags", "metrics", "order_by"}) {
      (void)fields->Text(name).has_value();
      (void)fields->Needed(name).has_value();
      (void)fields->Int(name).has_value();
      (void)fields->Texts(name).has_value();
      (void)fields->Pairs(name).has_value();
      if (const Json* value = fields->Find(name)) {
        if (const auto number = DoubleOf(*value, name); !number) (void)MlflowError(number.error());
      }
    }
    (void)fields->Run().has_value();
    if (const auto page = ReadPage(*fields, 10, 1000); page && page->limit > 1000) std::abort();
  }
  if (CheckArtifactPath(bytes).ok()) {
    if (bytes.empty() || bytes.front() == '/' || bytes.find('\0') != std::string::npos) {
      std::abort();
    }
    for (size_t at = bytes.find(".."); at != std::string::npos; at = bytes.find("..", at + 1)) {
      const bool begins = at == 0 || bytes[at - 1] == '/';
      const bool ends = at + 2 == bytes.size() || bytes[at + 2] == '/';
      if (begins && ends) std::abort();
    }
  }
  // A place that is shown is in a folder of the server.
  if (const auto place = PlaceOfUri("/own", "file:///srv/art", bytes)) {
    if (place->root != "/own" && place->root != "/srv/art") std::abort();
    if (("/" + place->path + "/").find("/../") != std::string::npos) std::abort();
  }
  if (CheckMlflowKey(bytes, "key").ok() && Characters(bytes) > kMostKeyChars) std::abort();
  return 0;
}
