#include "run/mlflow/metric_join.h"

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kMostBytes = 1 << 20;  // of the list; far below what the server takes
constexpr char kOne[] = "log-metric";
constexpr char kMany[] = "log-batch";

struct Metrics {
  std::string api;
  std::string run;
  std::string list;
  size_t count = 0;
};

// Takes the run's id from the call; empty: it is not clear what the server would read.
std::string TakeRun(Json& body) {
  std::string run;
  for (const char* name : {"run_id", "run_uuid"}) {
    const auto at = body.find(name);
    if (at == body.end()) continue;
    if (!at->is_string() || (!run.empty() && run != at->get_ref<const std::string&>())) return "";
    run = at->get<std::string>();
    body.erase(name);
  }
  return run;
}

// What the call logs; a count of 0: not only metrics, or it is not clear.
Metrics Read(const KeptCall& call) {
  Metrics found;
  const bool one = EndsWith(call.target, std::string("/") + kOne);
  if (call.method != "POST" || (!one && !EndsWith(call.target, std::string("/") + kMany))) {
    return found;
  }
  auto body = ParseJson(call.body);
  if (!body || !body->is_object()) return found;
  found.api = call.target.substr(0, call.target.rfind('/') + 1);
  found.run = TakeRun(*body);
  if (found.run.empty()) return found;
  if (one) {
    found.list = DumpJson(*body);
    found.count = 1;
    return found;
  }
  const auto metrics = body->find("metrics");
  if (body->size() != 1 || metrics == body->end() || !metrics->is_array()) return found;
  found.list = DumpJson(*metrics);
  found.list = found.list.substr(1, found.list.size() - 2);
  found.count = metrics->size();
  return found;
}

}  // namespace

bool MetricJoin::Add(const KeptCall& call) {
  if (!ends_.empty() && call.seq != last() + 1) return false;
  const uint32_t sum = ends_.empty() ? 0 : ends_.back();
  if (sum >= kMostKeptPoints) return false;
  Metrics found = Read(call);
  if (found.count == 0 || found.count > kMostKeptPoints - sum) return false;
  if (list_.size() + found.list.size() > kMostBytes) return false;
  if (ends_.empty()) {
    first_ = call.seq;
    api_ = std::move(found.api);
    run_ = std::move(found.run);
    list_ = std::move(found.list);
  } else if (found.api == api_ && found.run == run_) {
    list_ += "," + found.list;
  } else {
    return false;
  }
  ends_.push_back(sum + static_cast<uint32_t>(found.count));
  return true;
}

KeptCall MetricJoin::Joined() const {
  return {first_, "POST", api_ + kMany,
          "{\"run_id\":" + DumpJson(Json(run_)) + ",\"metrics\":[" + list_ + "]}"};
}

}  // namespace athanor
