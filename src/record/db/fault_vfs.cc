#include "record/db/fault_vfs.h"

#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <new>

#include "base/exec/mutex.h"
#include "base/io/files.h"

namespace athanor {
namespace {

std::string Contents(const std::string& path) { return ReadFile(path).value_or(""); }

}  // namespace

struct FaultVfs::Parts {
  sqlite3_vfs vfs{};
  sqlite3_vfs* real = nullptr;
  // A store merges a long log on its own thread, while another one writes.
  Mutex mutex;
  int countdown GUARDED_BY(mutex) = -1;  // changes until the failure; -1: none armed
  int code GUARDED_BY(mutex) = SQLITE_OK;
  bool forever GUARDED_BY(mutex) = false;
  bool failed GUARDED_BY(mutex) = false;
  bool kill GUARDED_BY(mutex) = false;
  int changes GUARDED_BY(mutex) = 0;
  std::map<std::string, std::string> synced
      GUARDED_BY(mutex);  // path -> bytes that remain after a power cut

  int Change() {
    const MutexLock lock(mutex);
    ++changes;
    if (countdown < 0) return SQLITE_OK;
    if (countdown > 0) {
      --countdown;
      return SQLITE_OK;
    }
    if (failed && !forever) return SQLITE_OK;
    failed = true;
    return code;
  }
  void KillIfAsked() {
    const MutexLock lock(mutex);
    if (kill) ::kill(::getpid(), SIGKILL);
  }
};

namespace {

// What SQLite allocates for us: our head, then the real file system's own part.
struct FaultFile {
  sqlite3_file base;
  FaultVfs::Parts* parts;
  sqlite3_file* real;
  std::string* path;  // empty for temporary files
};

sqlite3_file* Real(sqlite3_file* file) { return reinterpret_cast<FaultFile*>(file)->real; }
FaultVfs::Parts& PartsOf(sqlite3_file* file) { return *reinterpret_cast<FaultFile*>(file)->parts; }

int Close(sqlite3_file* file) {
  const int result = Real(file)->pMethods->xClose(Real(file));
  delete reinterpret_cast<FaultFile*>(file)->path;
  return result;
}
int Read(sqlite3_file* file, void* out, int amount, sqlite3_int64 offset) {
  return Real(file)->pMethods->xRead(Real(file), out, amount, offset);
}
int Write(sqlite3_file* file, const void* bytes, int amount, sqlite3_int64 offset) {
  if (const int fault = PartsOf(file).Change(); fault != SQLITE_OK) {
    // Half of it is written: torn writes are what real disks leave.
    Real(file)->pMethods->xWrite(Real(file), bytes, amount / 2, offset);
    PartsOf(file).KillIfAsked();
    return fault;
  }
  return Real(file)->pMethods->xWrite(Real(file), bytes, amount, offset);
}
int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (const int fault = PartsOf(file).Change(); fault != SQLITE_OK) {
    PartsOf(file).KillIfAsked();
    return fault;
  }
  return Real(file)->pMethods->xTruncate(Real(file), size);
}
int Sync(sqlite3_file* file, int /*flags*/) {
  if (const int fault = PartsOf(file).Change(); fault != SQLITE_OK) {
    PartsOf(file).KillIfAsked();
    return fault;
  }
  // The real disk is not synced: what a power cut leaves is recorded here.
  const std::string& path = *reinterpret_cast<FaultFile*>(file)->path;
  if (path.empty()) return SQLITE_OK;
  const MutexLock lock(PartsOf(file).mutex);
  PartsOf(file).synced[path] = Contents(path);
  return SQLITE_OK;
}
int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  return Real(file)->pMethods->xFileSize(Real(file), size);
}
int Lock(sqlite3_file* file, int level) { return Real(file)->pMethods->xLock(Real(file), level); }
int Unlock(sqlite3_file* file, int level) {
  return Real(file)->pMethods->xUnlock(Real(file), level);
}
int CheckReservedLock(sqlite3_file* file, int* held) {
  return Real(file)->pMethods->xCheckReservedLock(Real(file), held);
}
int FileControl(sqlite3_file* file, int operation, void* argument) {
  return Real(file)->pMethods->xFileControl(Real(file), operation, argument);
}
int SectorSize(sqlite3_file* file) { return Real(file)->pMethods->xSectorSize(Real(file)); }
int DeviceCharacteristics(sqlite3_file* file) {
  return Real(file)->pMethods->xDeviceCharacteristics(Real(file));
}
int ShmMap(sqlite3_file* file, int region, int size, int extend, void volatile** out) {
  return Real(file)->pMethods->xShmMap(Real(file), region, size, extend, out);
}
int ShmLock(sqlite3_file* file, int offset, int count, int flags) {
  return Real(file)->pMethods->xShmLock(Real(file), offset, count, flags);
}
void ShmBarrier(sqlite3_file* file) { Real(file)->pMethods->xShmBarrier(Real(file)); }
int ShmUnmap(sqlite3_file* file, int remove) {
  return Real(file)->pMethods->xShmUnmap(Real(file), remove);
}

const sqlite3_io_methods kMethods = {2,
                                     Close,
                                     Read,
                                     Write,
                                     Truncate,
                                     Sync,
                                     FileSize,
                                     Lock,
                                     Unlock,
                                     CheckReservedLock,
                                     FileControl,
                                     SectorSize,
                                     DeviceCharacteristics,
                                     ShmMap,
                                     ShmLock,
                                     ShmBarrier,
                                     ShmUnmap,
                                     nullptr,
                                     nullptr};

int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  auto* parts = static_cast<FaultVfs::Parts*>(vfs->pAppData);
  auto* made = reinterpret_cast<FaultFile*>(file);
  made->base.pMethods = nullptr;
  made->parts = parts;
  made->real = reinterpret_cast<sqlite3_file*>(made + 1);
  const int result = parts->real->xOpen(parts->real, name, made->real, flags, out_flags);
  if (result != SQLITE_OK) return result;
  made->path = new std::string(name != nullptr ? name : "");
  made->base.pMethods = &kMethods;
  // The content of a file when it is first seen counts as being on the disk.
  if (!made->path->empty()) {
    const MutexLock lock(parts->mutex);
    parts->synced.try_emplace(*made->path, Contents(*made->path));
  }
  return SQLITE_OK;
}

int Delete(sqlite3_vfs* vfs, const char* name, int /*sync_dir*/) {
  auto* parts = static_cast<FaultVfs::Parts*>(vfs->pAppData);
  if (const int fault = parts->Change(); fault != SQLITE_OK) {
    parts->KillIfAsked();
    return fault;
  }
  {
    const MutexLock lock(parts->mutex);
    parts->synced.erase(name);
  }
  return parts->real->xDelete(parts->real, name, 0);
}

}  // namespace

FaultVfs::FaultVfs() : parts_(new Parts) {
  parts_->real = sqlite3_vfs_find(nullptr);
  // The rest of the real one works on any vfs object; only these two must be ours.
  parts_->vfs = *parts_->real;
  parts_->vfs.pNext = nullptr;
  parts_->vfs.zName = "athanor-fault";
  parts_->vfs.szOsFile = static_cast<int>(sizeof(FaultFile)) + parts_->real->szOsFile;
  parts_->vfs.pAppData = parts_.get();
  parts_->vfs.xOpen = Open;
  parts_->vfs.xDelete = Delete;
  sqlite3_vfs_register(&parts_->vfs, 1);
}

FaultVfs::~FaultVfs() {
  sqlite3_vfs_unregister(&parts_->vfs);
  sqlite3_vfs_register(parts_->real, 1);
}

void FaultVfs::FailAt(int nth, Fault fault, bool forever) {
  const MutexLock lock(parts_->mutex);
  parts_->countdown = nth;
  parts_->code = fault == Fault::kFull ? SQLITE_FULL : SQLITE_IOERR_WRITE;
  parts_->forever = forever;
  parts_->kill = fault == Fault::kKill;
  parts_->failed = false;
  parts_->changes = 0;
}

void FaultVfs::Heal() {
  const MutexLock lock(parts_->mutex);
  parts_->countdown = -1;
  parts_->changes = 0;
}

bool FaultVfs::failed() const {
  const MutexLock lock(parts_->mutex);
  return parts_->failed;
}
int FaultVfs::changes() const {
  const MutexLock lock(parts_->mutex);
  return parts_->changes;
}

void FaultVfs::CutPower() {
  const MutexLock lock(parts_->mutex);
  for (const auto& [path, bytes] : parts_->synced) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    // The shared index is memory and never survives; SQLite rebuilds it from the log.
    std::remove((path + "-shm").c_str());
  }
}

}  // namespace athanor
