// What bench/checkpoint times; not part of the program.
//   checkpoint_bench keep FILES HOME       keeps a folder as a checkpoint
//   checkpoint_bench restore HOME FILES    restores the newest one, verified
//   checkpoint_bench sync FILES HOME PID   syncs while PID trains, until stdin ends
// Each prints one JSON object.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/exec/clock.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "link/job_dir.h"
#include "link/local_job_files.h"
#include "run/checkpoint/checkpoint_sync.h"
#include "run/checkpoint/restore.h"
#include "run/supervisor/process_tree.h"

namespace athanor {
namespace {

[[noreturn]] void Die(const Error& error) {
  fmt::print(stderr, "{}: {}\n", error.what, error.why);
  std::exit(1);
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::unique_ptr<JobFiles> FilesIn(const std::string& home) {
  LocalJobFiles::Options options;
  options.blob_dir = home + "/blobs";
  options.job_dir = home;
  auto files = LocalJobFiles::Open(std::move(options));
  if (!files) Die(files.error());
  return std::move(*files);
}

CheckpointSyncOptions OptionsOf(const std::string& files) {
  CheckpointSyncOptions options;
  auto held = HeldFolder::At(files);
  if (!held) Die(held.error());
  options.dir = std::move(*held);
  options.log = [](const std::string& text) { fmt::print(stderr, "{}\n", text); };
  return options;
}

int Keep(const std::string& files, const std::string& home) {
  const SystemClock clock;
  auto sync = CheckpointSync::Open(OptionsOf(files), *FilesIn(home), clock);
  if (!sync) Die(sync.error());
  const double begin = Seconds();
  const auto kept = (*sync)->FinalSync(true);
  if (!kept) Die(kept.error());
  fmt::print("{{\"seconds\":{:.6f},\"bytes\":{}}}\n", Seconds() - begin,
             *kept ? (**kept).bytes : 0);
  return 0;
}

int Restore(const std::string& home, const std::string& files) {
  const auto from = FilesIn(home);
  const double begin = Seconds();
  const auto restored = RestoreCheckpoint({*from, job_dir::kManifests}, "", files);
  if (!restored) Die(restored.error());
  fmt::print("{{\"seconds\":{:.6f},\"bytes\":{}}}\n", Seconds() - begin,
             restored->checkpoint ? restored->checkpoint->bytes : 0);
  return 0;
}

int Sync(const std::string& files, const std::string& home, int pid) {
  const SystemClock clock;
  auto options = OptionsOf(files);
  options.pids = [pid] {
    std::vector<int> pids{pid};
    for (const auto& process : DescendantsOf(ListProcesses(), pid)) pids.push_back(process.pid);
    return pids;
  };
  size_t kept = 0;
  uint64_t bytes = 0;
  int64_t slowest_ms = 0;
  options.committed = [&](const CheckpointInfo& info) {
    ++kept;
    bytes += info.new_bytes;
    slowest_ms = std::max(slowest_ms, info.sync_ms);
  };
  auto sync = CheckpointSync::Open(options, *FilesIn(home), clock);
  if (!sync) Die(sync.error());
  (*sync)->Start();
  (void)ReadAll(STDIN_FILENO);
  (*sync)->Stop();
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  fmt::print("{{\"kept\":{},\"bytes\":{},\"slowest_ms\":{},\"cpu_seconds\":{:.3f}}}\n", kept, bytes,
             slowest_ms, seconds(usage.ru_utime) + seconds(usage.ru_stime));
  return 0;
}

int Main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "keep" && argc == 4) return Keep(argv[2], argv[3]);
  if (what == "restore" && argc == 4) return Restore(argv[2], argv[3]);
  if (what == "sync" && argc == 5) return Sync(argv[2], argv[3], std::atoi(argv[4]));
  fmt::print(stderr,
             "checkpoint_bench keep FILES HOME | restore HOME FILES | sync FILES HOME PID\n");
  return 2;
}

}  // namespace
}  // namespace athanor

int main(int argc, char** argv) { return athanor::Main(argc, argv); }
