// What our programs use of glibc 2.32 to 2.36, for systems that have 2.31 (Debian 11, Ubuntu 20.04).
//
// Linked only into packages. There the program is linked against glibc 2.31, whose shared library has
// none of these; each is written here with what 2.31 does have. On a newer system these are used too.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" {

// libstdc++ skips atomic operations while this is true. We always have threads.
char __libc_single_threaded = 0;

// In 2.31 these are inline functions around __xstat; a kernel call does the same on 64 bits.
int fstatat(int dir, const char* path, struct stat* out, int flags) noexcept {
  return static_cast<int>(::syscall(SYS_newfstatat, dir, path, out, flags));
}
int stat(const char* path, struct stat* out) noexcept { return fstatat(AT_FDCWD, path, out, 0); }
int lstat(const char* path, struct stat* out) noexcept {
  return fstatat(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}
int fstat(int fd, struct stat* out) noexcept { return static_cast<int>(::syscall(SYS_fstat, fd, out)); }
int fstatat64(int dir, const char* path, struct stat64* out, int flags) noexcept {
  return static_cast<int>(::syscall(SYS_newfstatat, dir, path, out, flags));
}
int stat64(const char* path, struct stat64* out) noexcept { return fstatat64(AT_FDCWD, path, out, 0); }
int lstat64(const char* path, struct stat64* out) noexcept {
  return fstatat64(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}
int fstat64(int fd, struct stat64* out) noexcept { return static_cast<int>(::syscall(SYS_fstat, fd, out)); }

// The older call counts in int and wraps at 2 GiB; the sizes are only used to decide when to trim.
struct mallinfo2 mallinfo2() noexcept {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const struct mallinfo old = ::mallinfo();
#pragma GCC diagnostic pop
  struct mallinfo2 now = {};
  const auto wide = [](int value) { return static_cast<size_t>(static_cast<unsigned>(value)); };
  now.arena = wide(old.arena);
  now.ordblks = wide(old.ordblks);
  now.hblks = wide(old.hblks);
  now.hblkhd = wide(old.hblkhd);
  now.uordblks = wide(old.uordblks);
  now.fordblks = wide(old.fordblks);
  now.keepcost = wide(old.keepcost);
  return now;
}

// In 2.31 the names are in an array that 2.32 took away.
const char* sigabbrev_np(int signal) noexcept {
  static const char* const names[] = {
      nullptr, "HUP",  "INT",    "QUIT", "ILL",  "TRAP", "ABRT",   "BUS",  "FPE",   "KILL",  "USR1",
      "SEGV",  "USR2", "PIPE",   "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP",  "TSTP",  "TTIN",
      "TTOU",  "URG",  "XCPU",   "XFSZ", "VTALRM", "PROF", "WINCH", "POLL", "PWR",  "SYS"};
  return signal > 0 && signal < static_cast<int>(sizeof names / sizeof *names) ? names[signal] : nullptr;
}

// 2.31 can close single files only: what is open now and would outlive the exec.
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t* actions, int from) noexcept {
  DIR* open_files = ::opendir("/proc/self/fd");
  if (open_files == nullptr) return errno;
  int failed = 0;
  while (const dirent* entry = ::readdir(open_files)) {
    char* end = nullptr;
    const long fd = std::strtol(entry->d_name, &end, 10);
    if (end == entry->d_name || *end != 0 || fd < from || fd == ::dirfd(open_files)) continue;
    const int flags = ::fcntl(static_cast<int>(fd), F_GETFD);
    if (flags < 0 || (flags & FD_CLOEXEC) != 0) continue;
    failed = ::posix_spawn_file_actions_addclose(actions, static_cast<int>(fd));
    if (failed != 0) break;
  }
  ::closedir(open_files);
  return failed;
}

uint32_t arc4random() noexcept {
  uint32_t value = 0;
  while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
    if (errno != EINTR) ::abort();  // an entropy source that fails must not give zeros
  }
  return value;
}

// How the unwinder of GCC 12 finds an exception's tables; in 2.31 the way is a walk over what is loaded.
int _dl_find_object(void* pc, struct dl_find_object* result) noexcept {
  struct Search {
    uintptr_t pc;
    struct dl_find_object* result;
  } search = {reinterpret_cast<uintptr_t>(pc), result};
  const auto look = [](struct dl_phdr_info* info, size_t, void* data) -> int {
    auto& wanted = *static_cast<Search*>(data);
    uintptr_t low = UINTPTR_MAX;
    uintptr_t high = 0;
    const ElfW(Phdr)* tables = nullptr;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& header = info->dlpi_phdr[i];
      const uintptr_t start = info->dlpi_addr + header.p_vaddr;
      if (header.p_type == PT_LOAD) {
        if (start < low) low = start;
        if (start + header.p_memsz > high) high = start + header.p_memsz;
      } else if (header.p_type == PT_GNU_EH_FRAME) {
        tables = &header;
      }
    }
    if (wanted.pc < low || wanted.pc >= high || tables == nullptr) return 0;
    std::memset(wanted.result, 0, sizeof *wanted.result);
    wanted.result->dlfo_map_start = reinterpret_cast<void*>(low);
    wanted.result->dlfo_map_end = reinterpret_cast<void*>(high);
    wanted.result->dlfo_eh_frame = reinterpret_cast<void*>(info->dlpi_addr + tables->p_vaddr);
    return 1;
  };
  return ::dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}

}  // extern "C"
