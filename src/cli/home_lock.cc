#include "cli/home_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

namespace athanor {

Result<UniqueFd> LockHome(const Home& home, std::string hint) {
  UniqueFd lock(::open(home.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return FailErrno("open " + home.lock(), errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  Error error;
  error.code = ErrorCode::kConflict;
  error.what = "a server runs for " + home.root;
  error.why = "it holds " + home.lock();
  error.hint = std::move(hint);
  error.id = "ATH-V0001";
  return Fail(std::move(error));
}

}  // namespace athanor
