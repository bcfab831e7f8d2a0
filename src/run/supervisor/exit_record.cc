#include "run/supervisor/exit_record.h"

#include <iterator>

#include "run/supervisor/kv_record.h"

namespace athanor {
namespace {

constexpr std::string_view kKind = "athanor-exit";
constexpr int kExitVersion = 1;

// One table per struct: what is written is what is read.
template <class T>
struct NumberField {
  std::string_view key;
  int64_t T::*member;
};
template <class T>
struct FlagField {
  std::string_view key;
  bool T::*member;
};

constexpr NumberField<ExitRecord> kNumbers[] = {
    {"first_failed_rank", &ExitRecord::first_failed_rank},
    {"orphan_cpu_us", &ExitRecord::orphan_cpu_us},
    {"orphans", &ExitRecord::orphans},
    {"oom_pid", &ExitRecord::oom_pid},
    {"stop_signal", &ExitRecord::stop_signal},
    {"stop_to_end_ms", &ExitRecord::stop_to_end_ms},
    {"start_wall_ms", &ExitRecord::start_wall_ms},
    {"end_wall_ms", &ExitRecord::end_wall_ms},
    {"start_boottime_ms", &ExitRecord::start_boottime_ms},
    {"end_boottime_ms", &ExitRecord::end_boottime_ms},
};
constexpr FlagField<ExitRecord> kFlags[] = {
    {"disk_full", &ExitRecord::disk_full},
    {"fell_by_itself", &ExitRecord::fell_by_itself},
    {"killed", &ExitRecord::killed},
    {"leftovers_killed", &ExitRecord::leftovers_killed},
};
constexpr NumberField<CgroupEnd> kCgroupNumbers[] = {
    {"cgroup.oom_kills", &CgroupEnd::oom_kills},
    {"cgroup.limit_hits", &CgroupEnd::limit_hits},
    {"cgroup.memory_peak", &CgroupEnd::memory_peak},
    {"cgroup.memory_limit", &CgroupEnd::memory_limit},
    {"cgroup.cpu_ns", &CgroupEnd::cpu_ns},
};
constexpr NumberField<RankExit> kRankNumbers[] = {
    {"exit_code", &RankExit::exit_code},   {"signal", &RankExit::signal},
    {"wall_ms", &RankExit::wall_ms},       {"cpu_us", &RankExit::cpu_us},
    {"max_rss_kb", &RankExit::max_rss_kb}, {"ended", &RankExit::ended},
};
constexpr FlagField<RankExit> kRankFlags[] = {{"core", &RankExit::core}};
constexpr NumberField<RankStart> kStartNumbers[] = {
    {"outer_pid", &RankStart::outer_pid},
    {"inner_pid", &RankStart::inner_pid},
    {"spawn_errno", &RankStart::spawn_errno},
};
constexpr NumberField<StreamEnd> kStreamNumbers[] = {
    {"written", &StreamEnd::written},
    {"dropped", &StreamEnd::dropped},
    {"write_errno", &StreamEnd::write_errno},
};
constexpr FlagField<StreamEnd> kStreamFlags[] = {{"capped", &StreamEnd::capped}};

template <class T, size_t N>
void Write(KvWriter& writer, const T& object, const NumberField<T> (&fields)[N],
           std::string_view prefix = "") {
  for (const auto& field : fields) {
    writer.Number(std::string(prefix) += field.key, object.*field.member);
  }
}
template <class T, size_t N>
void Write(KvWriter& writer, const T& object, const FlagField<T> (&fields)[N],
           std::string_view prefix = "") {
  for (const auto& field : fields) {
    writer.Flag(std::string(prefix) += field.key, object.*field.member);
  }
}

// Sets `known` when some field has the key; the value may still be refused.
template <class T, size_t N>
Status Read(const KvEntry& e, std::string_view key, T& object, const NumberField<T> (&fields)[N],
            bool& known) {
  for (const auto& field : fields) {
    if (field.key != key) continue;
    known = true;
    ATHANOR_TRY(object.*field.member, KvNumber(e));
  }
  return Ok();
}
template <class T, size_t N>
Status Read(const KvEntry& e, std::string_view key, T& object, const FlagField<T> (&fields)[N],
            bool& known) {
  for (const auto& field : fields) {
    if (field.key != key) continue;
    known = true;
    ATHANOR_TRY(object.*field.member, KvFlag(e));
  }
  return Ok();
}

Status ReadTop(const KvEntry& e, ExitRecord& record, bool& known) {
  if (e.key == "oom_name") return known = true, record.oom_name = e.value, Ok();
  if (e.key == "setup_error") return known = true, record.setup_error = e.value, Ok();
  if (e.key == "setup_code") return known = true, record.setup_code = e.value, Ok();
  if (e.key == "off") return known = true, record.off.emplace_back(e.value), Ok();
  ATHANOR_CHECK_OK(Read(e, e.key, record, kNumbers, known));
  ATHANOR_CHECK_OK(Read(e, e.key, record, kFlags, known));
  return Read(e, e.key, record.cgroup, kCgroupNumbers, known);
}

Status ReadRank(const KvEntry& e, RankExit& rank, bool& known) {
  if (e.key == "spawn_step") return known = true, rank.start.spawn_step = e.value, Ok();
  if (e.key == "spawn_path") return known = true, rank.start.spawn_path = e.value, Ok();
  ATHANOR_CHECK_OK(Read(e, e.key, rank, kRankNumbers, known));
  ATHANOR_CHECK_OK(Read(e, e.key, rank, kRankFlags, known));
  ATHANOR_CHECK_OK(Read(e, e.key, rank.start, kStartNumbers, known));
  if (e.key.size() < 4) return Ok();
  const std::string_view stream = e.key.substr(0, 4);
  if (stream != "out." && stream != "err.") return Ok();
  StreamEnd& end = stream == "out." ? rank.out : rank.err;
  ATHANOR_CHECK_OK(Read(e, e.key.substr(4), end, kStreamNumbers, known));
  return Read(e, e.key.substr(4), end, kStreamFlags, known);
}

}  // namespace

Result<std::string> SerializeExit(const ExitRecord& record) {
  KvWriter writer(kKind, kExitVersion);
  Write(writer, record, kNumbers);
  Write(writer, record, kFlags);
  Write(writer, record.cgroup, kCgroupNumbers);
  writer.Text("oom_name", record.oom_name);
  writer.Text("setup_error", record.setup_error);
  writer.Text("setup_code", record.setup_code);
  for (const auto& text : record.off) writer.Text("off", text);
  for (size_t i = 0; i < record.ranks.size(); ++i) {
    const RankExit& rank = record.ranks[i];
    writer.Number("rank", static_cast<int64_t>(i));
    Write(writer, rank, kRankNumbers);
    Write(writer, rank, kRankFlags);
    Write(writer, rank.start, kStartNumbers);
    writer.Text("spawn_step", rank.start.spawn_step);
    writer.Text("spawn_path", rank.start.spawn_path);
    Write(writer, rank.out, kStreamNumbers, "out.");
    Write(writer, rank.out, kStreamFlags, "out.");
    Write(writer, rank.err, kStreamNumbers, "err.");
    Write(writer, rank.err, kStreamFlags, "err.");
  }
  return std::move(writer).Finish();
}

Result<ExitRecord> ParseExit(std::string_view bytes) {
  ATHANOR_TRY(const auto entries, ParseKv(kKind, kExitVersion, bytes));
  ExitRecord record;
  for (const auto& e : entries) {
    if (e.key == "rank") {
      ATHANOR_TRY(const int64_t index, KvNumber(e));
      if (index != static_cast<int64_t>(record.ranks.size())) return KvFail(e, "out of order");
      record.ranks.emplace_back();
      continue;
    }
    bool known = false;
    ATHANOR_CHECK_OK(record.ranks.empty() ? ReadTop(e, record, known)
                                          : ReadRank(e, record.ranks.back(), known));
    if (!known) return KvFail(e, "unknown key");
  }
  return record;
}

}  // namespace athanor
