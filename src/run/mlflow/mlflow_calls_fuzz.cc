#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/text/json.h"
#include "link/kept_call.h"
#include "run/mlflow/call_kinds.h"
#include "run/mlflow/metric_join.h"

#include <nlohmann/json.hpp>

// A path, a line break, a body. What is kept is an object whose answer is one, too; what leads out
// of MLflow's API is refused; a place that is read is written back as the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t line = text.find('\n');
  const auto path = text.substr(0, line);
  const auto body = line == std::string_view::npos ? std::string_view() : text.substr(line + 1);
  for (const char* method : {"GET", "POST", "PUT"}) {
    const auto kind = KindOf(method, path, body);
    if (path.starts_with("/api/v1/") && kind != CallKind::kRefused) std::abort();
    if (kind != CallKind::kLog && kind != CallKind::kTell) continue;
    if (!ParseJson(body)) std::abort();
    const auto answer = ParseJson(AnswerForKept(path, body));
    if (!answer || !answer->is_object()) std::abort();
  }
  MetricJoin join;
  for (uint64_t seq = 1; seq < 4; ++seq) {
    if (!join.Add({seq, "POST", std::string(path), std::string(body)})) break;
    if (!ParseJson(join.Joined().body)) std::abort();
  }
  if (const auto place = ParsePlace(text)) {
    if (ParsePlace(FormatPlace(*place)) != place) std::abort();
    for (size_t i = 0; i < kMostKeptPoints; ++i) {
      if (SeqOfPoint(*place, i + 1) <= SeqOfPoint(*place, i)) std::abort();
    }
  }
  return 0;
}
