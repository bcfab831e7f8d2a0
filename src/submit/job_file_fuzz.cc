// Any bytes as a job file: an error with its texts, or a spec.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "submit/job_file.h"
#include "submit/spec_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = athanor::ParseJobFile(text, "job.yaml");
  if (spec) {
    (void)athanor::CheckSpec(*spec).ok();
  } else if (spec.error().id.empty() || spec.error().what.empty() || spec.error().hint.empty()) {
    std::abort();
  }
  return 0;
}
