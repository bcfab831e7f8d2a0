// events_bench DIR [THREADS]: loads the runs below a folder, asks for one series of each, and
// says as JSON what that took. events_bench --make DIR RUNS MEGABYTES: writes a folder of
// scalars to load. Built when bench/events asks for it.
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/json.h"
#include "eventfile/event_writer.h"
#include "eventfile/proto.h"
#include "eventfile/run_loader.h"
#include "eventfile/tfrecord.h"

namespace {

using namespace athanor;

// As torch's SummaryWriter writes them: old style, one value an event, ten tags in turn.
int Make(const std::string& dir, int runs, uint64_t bytes) {
  constexpr int kTags = 10;
  uint64_t points = 0;
  for (int run = 0; run < runs; ++run) {
    const auto folder = JoinPath(dir, fmt::format("run-{:03}", run));
    if (!MakeDirs(folder, 0755)) return 1;
    std::string file;
    std::string event;
    proto::PutDouble(event, 1, 1.7e9);
    proto::PutBytes(event, 3, "brain.Event:2");
    AppendTfRecord(file, event);
    for (int64_t step = 0; file.size() < bytes / static_cast<uint64_t>(runs); ++step) {
      for (int tag = 0; tag < kTags; ++tag) {
        std::string value;
        proto::PutBytes(value, 1, fmt::format("train/metric_{}", tag));
        proto::PutFloat(value, 2,
                        static_cast<float>(std::exp(-1e-4 * static_cast<double>(step)) + tag));
        std::string summary;
        proto::PutBytes(summary, 1, value);
        event.clear();
        proto::PutDouble(event, 1, 1.7e9 + 0.01 * static_cast<double>(step));
        if (step != 0) proto::PutInt(event, 2, step);
        proto::PutBytes(event, 5, summary);
        AppendTfRecord(file, event);
        ++points;
      }
    }
    if (!ReplaceFile(JoinPath(folder, "events.out.tfevents.1700000000.bench"), file, 0644))
      return 1;
  }
  std::printf("{\"points\": %llu}\n", static_cast<unsigned long long>(points));
  return 0;
}

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && std::strcmp(argv[1], "--make") == 0) {
    return Make(argv[2], std::atoi(argv[3]), std::strtoull(argv[4], nullptr, 10) * 1'000'000);
  }
  if (argc < 2) return 2;
  const auto begun = std::chrono::steady_clock::now();
  const auto runs = LoadRuns(argv[1], argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 0);
  if (!runs) {
    std::fprintf(stderr, "%s\n", runs.error().what.c_str());
    return 1;
  }
  uint64_t points = 0;
  uint64_t bytes = 0;
  uint64_t answered = 0;
  double last = 0;
  for (const auto& run : *runs) {
    for (const auto& file : run.files) bytes += file.bytes;
    for (const auto& column : run.scalars) points += column.size();
    if (run.scalars.empty()) continue;
    const auto counted = PointsThatCount(run.scalars.front());
    answered += counted.size();
    last += run.scalars.front().values[counted.back()];
  }
  const double seconds = Seconds(begun);
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  std::puts(DumpJson(Json{{"seconds", seconds},
                          {"runs", runs->size()},
                          {"points", points},
                          {"bytes", bytes},
                          {"answered", answered},
                          {"last", last},
                          {"cpu_seconds",
                           static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                               1e-6 * static_cast<double>(usage.ru_utime.tv_usec +
                                                          usage.ru_stime.tv_usec)},
                          {"peak_mb", usage.ru_maxrss / 1024}})
                .c_str());
  return 0;
}
