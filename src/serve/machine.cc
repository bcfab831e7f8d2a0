#include "serve/machine.h"

#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/io/files.h"
#include "base/text/text.h"

namespace athanor {
namespace {

// A container's own limit counts when it is below the machine's memory.
uint64_t MemoryLimit(uint64_t total) {
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    auto text = ReadFile(path);
    if (!text) continue;
    auto limit = std::strtoull(text->c_str(), nullptr, 10);
    if (limit > 0) total = std::min<uint64_t>(total, limit);
  }
  return total;
}

void CountGpus(Inventory& inventory) {
  // Another driver's folder is for tests: this machine need not have a GPU.
  const char* driver = std::getenv("ATHANOR_NVIDIA_DRIVER");
  const std::string root =
      std::string(driver && *driver ? driver : "/proc/driver/nvidia") + "/gpus";
  auto devices = ListDir(root);
  if (!devices) return;
  inventory.gpus = static_cast<uint32_t>(devices->size());
  for (const auto& device : *devices) {
    auto text = ReadFile(root + "/" + device + "/information");
    if (!text) continue;
    for (const auto& line : Split(*text, '\n')) {
      if (StartsWith(line, "Model:")) inventory.gpu_model = std::string(Trim(line.substr(6)));
    }
  }
}

}  // namespace

Inventory CountThisMachine() {
  Inventory inventory;
  char name[256] = "localhost";
  ::gethostname(name, sizeof name - 1);
  inventory.host = name;
  cpu_set_t set;
  CPU_ZERO(&set);
  int cpus = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : ::get_nprocs();
  inventory.cpu_millis = static_cast<uint32_t>(cpus) * 1000;
  struct sysinfo info {};
  ::sysinfo(&info);
  uint64_t total = MemoryLimit(static_cast<uint64_t>(info.totalram) * info.mem_unit);
  // A tenth stays with the system, the server and the page cache.
  inventory.memory_bytes = total - total / 10;
  CountGpus(inventory);
  return inventory;
}

}  // namespace athanor
