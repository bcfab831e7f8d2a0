#include "run/supervisor/supervisor_status.h"

#include "run/supervisor/kv_record.h"

namespace athanor {
namespace {

constexpr std::string_view kStatusKind = "athanor-status";
constexpr std::string_view kStartedKind = "athanor-started";
constexpr int kVersion = 1;

}  // namespace

Result<std::string> SerializeStatus(const SupervisorStatus& status) {
  KvWriter writer(kStatusKind, kVersion);
  writer.Number("pid", status.pid);
  writer.Number("start_ticks", status.start_ticks);
  writer.Text("boot_id", status.boot_id);
  return std::move(writer).Finish();
}

Result<SupervisorStatus> ParseStatus(std::string_view bytes) {
  ATHANOR_TRY(const auto entries, ParseKv(kStatusKind, kVersion, bytes));
  SupervisorStatus status;
  for (const auto& e : entries) {
    if (e.key == "pid") {
      ATHANOR_TRY(status.pid, KvNumberIn(e, 1, INT32_MAX));
    } else if (e.key == "start_ticks") {
      ATHANOR_TRY(status.start_ticks, KvNumber(e));
    } else if (e.key == "boot_id") {
      status.boot_id = e.value;
    } else {
      return KvFail(e, "unknown key");
    }
  }
  if (status.pid == 0) return Fail(ErrorCode::kCorrupt, "supervisor status has no pid");
  return status;
}

Result<std::string> SerializeStarted(const StartedRecord& record) {
  KvWriter writer(kStartedKind, kVersion);
  writer.Number("wall_ms", record.wall_ms);
  writer.Number("boottime_ms", record.boottime_ms);
  for (const auto& text : record.off) writer.Text("off", text);
  for (size_t i = 0; i < record.ranks.size(); ++i) {
    const RankStart& rank = record.ranks[i];
    writer.Number("rank", static_cast<int64_t>(i));
    writer.Number("outer_pid", rank.outer_pid);
    writer.Number("inner_pid", rank.inner_pid);
    writer.Number("spawn_errno", rank.spawn_errno);
    writer.Text("spawn_step", rank.spawn_step);
    writer.Text("spawn_path", rank.spawn_path);
  }
  return std::move(writer).Finish();
}

Result<StartedRecord> ParseStarted(std::string_view bytes) {
  ATHANOR_TRY(const auto entries, ParseKv(kStartedKind, kVersion, bytes));
  StartedRecord record;
  for (const auto& e : entries) {
    if (e.key == "rank") {
      ATHANOR_TRY(const int64_t index, KvNumber(e));
      if (index != static_cast<int64_t>(record.ranks.size())) return KvFail(e, "out of order");
      record.ranks.emplace_back();
    } else if (e.key == "wall_ms") {
      ATHANOR_TRY(record.wall_ms, KvNumber(e));
    } else if (e.key == "boottime_ms") {
      ATHANOR_TRY(record.boottime_ms, KvNumber(e));
    } else if (e.key == "off") {
      record.off.emplace_back(e.value);
    } else if (record.ranks.empty()) {
      return KvFail(e, "unknown key");
    } else if (e.key == "spawn_step") {
      record.ranks.back().spawn_step = e.value;
    } else if (e.key == "spawn_path") {
      record.ranks.back().spawn_path = e.value;
    } else {
      RankStart& rank = record.ranks.back();
      int64_t* number = e.key == "outer_pid"     ? &rank.outer_pid
                        : e.key == "inner_pid"   ? &rank.inner_pid
                        : e.key == "spawn_errno" ? &rank.spawn_errno
                                                 : nullptr;
      if (number == nullptr) return KvFail(e, "unknown key");
      ATHANOR_TRY(*number, KvNumber(e));
    }
  }
  return record;
}

}  // namespace athanor
