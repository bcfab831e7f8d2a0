#include "serve/home_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "net/unix_address.h"

namespace athanor {
namespace {

// A server may be killed while it starts an agent: until the child has become another program, it
// holds what its parent held.
constexpr std::chrono::milliseconds kChildren{2'000};
constexpr std::chrono::milliseconds kPause{10};

bool Answers(const Home& home) {
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = UnixAddress::For(home.socket());
  return fd && address && ::connect(fd.get(), address->get(), address->size) == 0;
}

}  // namespace

Result<UniqueFd> LockHome(const Home& home, std::string hint) {
  UniqueFd lock(::open(home.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return FailErrno("open " + home.lock(), errno);
  const auto until = std::chrono::steady_clock::now() + kChildren;
  for (;;) {
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
    if (Answers(home) || std::chrono::steady_clock::now() >= until) break;
    std::this_thread::sleep_for(kPause);
  }
  return Fail(Error{ErrorCode::kConflict, "a server runs for " + home.root, std::move(hint)}
                  .Why("it holds " + home.lock())
                  .Id("ATH-V0001"));
}

bool HomeIsFree(const Home& home) {
  const UniqueFd lock(::open(home.lock().c_str(), O_RDONLY | O_CLOEXEC));
  // Shared: two who only look do not see each other.
  return !lock || ::flock(lock.get(), LOCK_SH | LOCK_NB) == 0;
}

}  // namespace athanor
