#include "record/db/checked_vfs.h"

#include <sqlite3.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/text/format.h"
#include "record/db/log_walk.h"
#include "record/db/page_check.h"

namespace athanor {
namespace {

// SQLite locks bytes here; the page that contains them is never written.
constexpr uint64_t kLockedByte = 0x40000000;
constexpr int kWhatIsIt = 0x41746801;  // a file control of our own

thread_local BrokenPage last_broken;

struct CheckedFile {
  sqlite3_file base;
  sqlite3_file* real;  // allocated: only the current file system knows its size
  CheckedFile* main;   // of a log: the file that it belongs to
  const char* name;    // SQLite keeps it for as long as the file is open
  size_t page_size;
  bool is_main;
  bool checked;
  bool fresh;  // it was empty when it was opened
  bool taking_log_in;
};

CheckedFile* Of(sqlite3_file* file) { return reinterpret_cast<CheckedFile*>(file); }
sqlite3_file* Real(sqlite3_file* file) { return Of(file)->real; }
sqlite3_vfs* RealVfs() { return sqlite3_vfs_find(nullptr); }

int Broken(const char* name, uint64_t number, bool in_log) {
  last_broken = {name != nullptr ? name : "", number, in_log};
  return SQLITE_IOERR_DATA;
}

bool IsPage(const CheckedFile& file, int amount, sqlite3_int64 offset) {
  return static_cast<size_t>(amount) == file.page_size &&
         static_cast<size_t>(offset) % file.page_size == 0;
}

uint32_t NumberOf(const CheckedFile& file, sqlite3_int64 offset) {
  return static_cast<uint32_t>(static_cast<uint64_t>(offset) / file.page_size + 1);
}

// The header as it is in the file: if a page is newer in the log, SQLite never reads this one.
int LookAtHeader(CheckedFile& file) {
  sqlite3_int64 size = 0;
  int result = file.real->pMethods->xFileSize(file.real, &size);
  if (result != SQLITE_OK) return result;
  file.fresh = size == 0;
  file.checked = true;
  if (file.fresh) return SQLITE_OK;
  char header[kPageHeaderBytes] = {};
  result = file.real->pMethods->xRead(file.real, header, sizeof header, 0);
  if (result != SQLITE_OK && result != SQLITE_IOERR_SHORT_READ) return result;
  const auto format = FormatOfPages({header, sizeof header});
  file.checked = format.checked;
  file.page_size = format.page_size;
  return SQLITE_OK;
}

int Close(sqlite3_file* file) {
  const int result = Real(file)->pMethods->xClose(Real(file));
  std::free(Real(file));
  return result;
}

// `page` was read from a log at `offset`: whether the frame around it is valid.
int CheckFrame(CheckedFile& file, const void* page, int amount, sqlite3_int64 offset) {
  const auto size = static_cast<size_t>(amount);
  const auto frame = static_cast<uint64_t>(offset) - kLogFrameHeaderBytes;
  if (frame < kLogHeaderBytes || (frame - kLogHeaderBytes) % (size + kLogFrameHeaderBytes) != 0) {
    return SQLITE_OK;
  }
  const uint64_t number = (frame - kLogHeaderBytes) / (size + kLogFrameHeaderBytes) + 1;
  char log[kLogHeaderBytes];
  char before[kLogFrameHeaderBytes];
  char own[kLogFrameHeaderBytes];
  const auto read = [&](char* out, size_t bytes, uint64_t at) {
    return file.real->pMethods->xRead(file.real, out, static_cast<int>(bytes),
                                      static_cast<sqlite3_int64>(at));
  };
  int result = read(log, sizeof log, 0);
  if (result == SQLITE_OK) result = read(own, sizeof own, frame);
  if (result == SQLITE_OK && number > 1) {
    result = read(before, sizeof before, frame - size - kLogFrameHeaderBytes);
  }
  if (result != SQLITE_OK) return result;
  const bool fits =
      LogFrameFits({log, sizeof log}, number > 1 ? std::string_view(before, sizeof before) : "",
                   {own, sizeof own}, {static_cast<const char*>(page), size});
  return fits ? SQLITE_OK : Broken(file.name, number, true);
}

int Read(sqlite3_file* opened, void* out, int amount, sqlite3_int64 offset) {
  CheckedFile& file = *Of(opened);
  const int result = file.real->pMethods->xRead(file.real, out, amount, offset);
  // Another connection has filled it meanwhile.
  if (file.is_main && file.fresh && result == SQLITE_OK) {
    if (const int looked = LookAtHeader(file); looked != SQLITE_OK) return looked;
  }
  if (file.main != nullptr && file.main->taking_log_in && result == SQLITE_OK &&
      static_cast<size_t>(amount) == file.main->page_size) {
    return CheckFrame(file, out, amount, offset);
  }
  if (!file.is_main || !file.checked || file.fresh || !IsPage(file, amount, offset)) return result;
  // SQLite treats a page after the end as zeros; it asks for none that was never written.
  if (result != SQLITE_OK && result != SQLITE_IOERR_SHORT_READ) return result;
  const uint32_t number = NumberOf(file, offset);
  const bool fits = result == SQLITE_OK &&
                    PageFits({static_cast<const char*>(out), static_cast<size_t>(amount)}, number);
  return fits ? SQLITE_OK : Broken(file.name, number, false);
}

int Write(sqlite3_file* opened, const void* bytes, int amount, sqlite3_int64 offset) {
  CheckedFile& file = *Of(opened);
  if (file.is_main && file.checked && file.page_size == 0) {
    file.page_size = static_cast<size_t>(amount);
  }
  if (!file.is_main || !file.checked || !IsPage(file, amount, offset)) {
    return file.real->pMethods->xWrite(file.real, bytes, amount, offset);
  }
  // A copy: SQLite owns the buffer, and other threads may read it.
  thread_local std::vector<char> page;
  const auto* begin = static_cast<const char*>(bytes);
  page.assign(begin, begin + amount);
  if (offset == 0 && !FormatOfPages({page.data(), page.size()}).checked) {
    return SQLITE_IOERR_WRITE;  // its pages end in something else: do not overwrite it
  }
  StampPage(page, NumberOf(file, offset));
  const int result = file.real->pMethods->xWrite(file.real, page.data(), amount, offset);
  if (result == SQLITE_OK) file.fresh = false;
  return result;
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  return Real(file)->pMethods->xTruncate(Real(file), size);
}
int Sync(sqlite3_file* file, int flags) { return Real(file)->pMethods->xSync(Real(file), flags); }
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
  if (operation == kWhatIsIt) {
    *static_cast<CheckedFile**>(argument) = Of(file);
    return SQLITE_OK;
  }
  if (operation == SQLITE_FCNTL_CKPT_START) Of(file)->taking_log_in = true;
  if (operation == SQLITE_FCNTL_CKPT_DONE) Of(file)->taking_log_in = false;
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

// Version 2: with version 3, SQLite could map the file and bypass us.
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

int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  auto* made = Of(file);
  *made = CheckedFile{};
  sqlite3_vfs* vfs = RealVfs();
  made->real = static_cast<sqlite3_file*>(std::calloc(1, static_cast<size_t>(vfs->szOsFile)));
  if (made->real == nullptr) return SQLITE_NOMEM;
  int result = vfs->xOpen(vfs, name, made->real, flags, out_flags);
  made->name = name;
  made->is_main = (flags & SQLITE_OPEN_MAIN_DB) != 0;
  if (result == SQLITE_OK && made->is_main) {
    result = LookAtHeader(*made);
    if (result != SQLITE_OK) made->real->pMethods->xClose(made->real);
  }
  if (result != SQLITE_OK) {
    std::free(made->real);
    return result;
  }
  if ((flags & SQLITE_OPEN_WAL) != 0) {
    made->main = Of(sqlite3_database_file_object(name));
  }
  made->base.pMethods = &kMethods;
  return SQLITE_OK;
}

int Delete(sqlite3_vfs*, const char* name, int sync_dir) {
  sqlite3_vfs* vfs = RealVfs();
  return vfs->xDelete(vfs, name, sync_dir);
}
int Access(sqlite3_vfs*, const char* name, int flags, int* out) {
  sqlite3_vfs* vfs = RealVfs();
  return vfs->xAccess(vfs, name, flags, out);
}
int FullPathname(sqlite3_vfs*, const char* name, int size, char* out) {
  sqlite3_vfs* vfs = RealVfs();
  return vfs->xFullPathname(vfs, name, size, out);
}
int Randomness(sqlite3_vfs*, int size, char* out) {
  sqlite3_vfs* vfs = RealVfs();
  return vfs->xRandomness(vfs, size, out);
}
int Sleep(sqlite3_vfs*, int microseconds) {
  sqlite3_vfs* vfs = RealVfs();
  return vfs->xSleep(vfs, microseconds);
}
int CurrentTime(sqlite3_vfs*, double* out) {
  sqlite3_vfs* vfs = RealVfs();
  return vfs->xCurrentTime(vfs, out);
}
int GetLastError(sqlite3_vfs*, int size, char* out) {
  sqlite3_vfs* vfs = RealVfs();
  return vfs->xGetLastError(vfs, size, out);
}
int CurrentTimeInt64(sqlite3_vfs*, sqlite3_int64* out) {
  sqlite3_vfs* vfs = RealVfs();
  return vfs->xCurrentTimeInt64(vfs, out);
}

CheckedFile* MainOf(sqlite3* handle) {
  CheckedFile* file = nullptr;
  sqlite3_file_control(handle, "main", kWhatIsIt, &file);
  return file;
}

}  // namespace

const char* CheckedVfsName() {
  static sqlite3_vfs vfs = [] {
    sqlite3_vfs made{};
    made.iVersion = 2;
    made.szOsFile = static_cast<int>(sizeof(CheckedFile));
    made.mxPathname = RealVfs()->mxPathname;
    made.zName = "athanor-checked";
    made.xOpen = Open;
    made.xDelete = Delete;
    made.xAccess = Access;
    made.xFullPathname = FullPathname;
    made.xRandomness = Randomness;
    made.xSleep = Sleep;
    made.xCurrentTime = CurrentTime;
    made.xGetLastError = GetLastError;
    made.xCurrentTimeInt64 = CurrentTimeInt64;
    return made;
  }();
  static const int once = sqlite3_vfs_register(&vfs, 0);
  (void)once;
  return vfs.zName;
}

bool HasPageSums(sqlite3* handle) {
  const CheckedFile* file = MainOf(handle);
  return file != nullptr && file->checked;
}

bool IsFresh(sqlite3* handle) {
  const CheckedFile* file = MainOf(handle);
  return file != nullptr && file->fresh;
}

const BrokenPage& LastBrokenPage() { return last_broken; }

Result<std::vector<uint32_t>> BrokenPagesOf(sqlite3* handle) {
  std::vector<uint32_t> broken;
  CheckedFile* file = MainOf(handle);
  if (file == nullptr || !file->checked || file->fresh) return broken;
  const auto fail = [&] {
    return Fail(ErrorCode::kUnavailable, std::string("the disk does not give ") + file->name,
                "dmesg | tail    shows what the disk reported");
  };
  sqlite3_int64 size = 0;
  if (file->real->pMethods->xFileSize(file->real, &size) != SQLITE_OK) return fail();
  std::vector<char> page(file->page_size);
  for (uint64_t at = 0; at < static_cast<uint64_t>(size); at += page.size()) {
    if (at / page.size() == kLockedByte / page.size()) continue;
    const int result = file->real->pMethods->xRead(
        file->real, page.data(), static_cast<int>(page.size()), static_cast<sqlite3_int64>(at));
    if (result != SQLITE_OK && result != SQLITE_IOERR_SHORT_READ) return fail();
    const uint32_t number = NumberOf(*file, static_cast<sqlite3_int64>(at));
    if (!PageFits({page.data(), page.size()}, number)) broken.push_back(number);
  }
  return broken;
}

}  // namespace athanor
