#include "cli/stop_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "link/server_record.h"
#include "net/unix_address.h"

namespace athanor {
namespace {

constexpr Millis kPause{10};

// The process that listens at the home's socket, as the kernel knows it: the number is right in
// our own pid namespace, and absent when the server is in one that we do not see.
struct ServerProcess {
  pid_t pid = 0;
  UniqueFd pidfd;  // empty: not known

  static ServerProcess Of(const Home& home) {
    ServerProcess found;
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = UnixAddress::For(home.socket());
    if (!fd || !address || ::connect(fd.get(), address->get(), address->size) != 0) return found;
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0) {
      return found;
    }
    found.pid = peer.pid;
    found.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
    return found;
  }

  bool gone() const {
    pollfd waits{pidfd.get(), POLLIN, 0};
    return !pidfd || ::poll(&waits, 1, 0) > 0;
  }
};

}  // namespace

Error ServerStillThere(const std::string& why, Millis limit, pid_t pid) {
  std::string hint = "ath server stop            waits again";
  if (pid > 0) {
    hint += "\nkill -9 " + std::to_string(pid) +
            "    ends it at once; nothing that it confirmed is lost, and jobs continue";
  }
  return Error{ErrorCode::kTimeout,
               "the server was asked to stop but is still running after " + HumanDuration(limit),
               std::move(hint)}
      .Why(why)
      .Id("ATH-V0004");
}

Status StopServerHere(const Home& home, Millis limit, bool* was_running) {
  const SystemClock clock;
  const auto until = clock.Monotonic() + limit;
  ATHANOR_TRY(auto client, Client::ConnectHere(home, false));
  const auto server = ServerProcess::Of(home);
  auto body = client.Post("/api/v1/server/stop");
  if (!body && body.error().code != ErrorCode::kUnavailable) return Fail(body.error());
  // One that was killed is not to be started again; and one that is being started at this moment
  // answers soon, or sees that it is not wanted.
  RemoveServerRecord(home.root);
  // A server that no longer answers may still be ending: the lock is the last thing it releases.
  if (was_running) *was_running = body || !server.gone() || !HomeIsFree(home);
  while (!server.gone() || !HomeIsFree(home)) {
    if (clock.Monotonic() >= until) {
      return Fail(ServerStillThere("it holds " + home.lock(), limit, server.pid));
    }
    if (!body) body = client.Post("/api/v1/server/stop");
    pollfd waits{server.pidfd.get(), POLLIN, 0};
    const bool ended = server.gone();
    ::poll(&waits, ended ? 0 : 1, static_cast<int>(kPause.count()));
  }
  RemoveServerRecord(home.root);
  return Ok();
}

}  // namespace athanor
