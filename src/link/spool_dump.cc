// spool_dump DIR: prints the content of a spool directory as JSON lines, with the counts last.
// Read-only. Values are also printed as their 64 bits, for tests that need all of them.
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/json.h"
#include "link/spool.h"

namespace {

using athanor::Json;

void Print(const Json& line) { std::puts(athanor::DumpJson(line).c_str()); }

void PrintBatch(const athanor::SpoolBatch& batch) {
  for (const auto& point : batch.points) {
    uint64_t bits;
    std::memcpy(&bits, &point.value, sizeof bits);
    Json line = {{"kind", "point"},         {"serial", batch.serial},
                 {"pid", batch.writer_pid}, {"seq", point.seq},
                 {"name", point.name},      {"step", nullptr},
                 {"value", point.value},    {"bits", fmt::format("{:016x}", bits)},
                 {"wall_ns", point.wall_ns}};
    if (point.step) line["step"] = *point.step;
    Print(line);
  }
  for (const auto& mark : batch.marks) {
    Print({{"kind", "mark"},
           {"serial", batch.serial},
           {"code", mark.code},
           {"wall_ns", mark.wall_ns}});
  }
  for (const auto& progress : batch.progress) {
    Print({{"kind", "progress"},
           {"serial", batch.serial},
           {"done", progress.done},
           {"total", progress.total},
           {"wall_ns", progress.wall_ns}});
  }
  for (const auto& saved : batch.checkpoints) {
    Print({{"kind", "checkpoint"},
           {"serial", batch.serial},
           {"step", saved.step},
           {"save_ns", saved.save_ns},
           {"wall_ns", saved.wall_ns}});
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: spool_dump DIR\n", stderr);
    return 2;
  }
  auto segments = athanor::SpoolSegments::Open(argv[1], {.spare = 0});
  if (!segments) {
    std::fprintf(stderr, "%s\n", segments.error().what.c_str());
    return 1;
  }
  (void)segments->Poll(PrintBatch);
  (void)segments->Poll(PrintBatch);  // judging a live writer takes two reads
  if (const auto control = athanor::ReadControl(argv[1])) {
    Print({{"kind", "control"},
           {"stop", control->stop},
           {"deadline_unix_ms", control->deadline_unix_ms},
           {"stop_at_step", control->stop_at_step},
           {"cause", control->cause},
           {"checkpoint_every_ms", control->checkpoint_every_ms},
           {"checkpoint_now", control->checkpoint_now},
           {"capture_now", control->capture_now}});
  }
  const auto& counts = segments->counts();
  Print({{"kind", "counts"},
         {"points", counts.points},
         {"dropped", counts.dropped},
         {"corrupt", counts.corrupt_segments},
         {"unknown", counts.unknown_records},
         {"drained", segments->Drained()}});
  return 0;
}
