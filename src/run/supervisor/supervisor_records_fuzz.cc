// Every file that agent and supervisor read from the attempt's directory: a
// script may have written there. What parses must come back the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "run/supervisor/exit_record.h"
#include "run/supervisor/memory_watch.h"
#include "run/supervisor/oom_log.h"
#include "run/supervisor/process_tree.h"
#include "run/supervisor/supervisor_plan.h"
#include "run/supervisor/supervisor_status.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto plan = athanor::ParsePlan(bytes)) {
    const auto again = athanor::SerializePlan(*plan);
    Require(again && athanor::ParsePlan(*again) == *plan);
  }
  if (const auto record = athanor::ParseExit(bytes)) {
    const auto again = athanor::SerializeExit(*record);
    Require(again && athanor::ParseExit(*again) == *record);
  }
  if (const auto started = athanor::ParseStarted(bytes)) {
    const auto again = athanor::SerializeStarted(*started);
    Require(again && athanor::ParseStarted(*again) == *started);
  }
  if (const auto status = athanor::ParseStatus(bytes)) {
    const auto again = athanor::SerializeStatus(*status);
    Require(again && athanor::ParseStatus(*again) == *status);
  }
  athanor::ProcessInfo info;
  (void)athanor::ParseProcStat(bytes, &info);
  // A process may call itself anything, and its name is in both.
  Require(athanor::ParseStatusMemory(bytes).sum() < uint64_t{1} << 60);
  (void)athanor::ParseRollupMemory(bytes);
  if (const auto kill = athanor::ParseOomKill(bytes)) Require(kill->pid > 0);
  return 0;
}
