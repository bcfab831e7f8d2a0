// ath server stop: asks the server to stop, and returns when it is gone.
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/client.h"
#include "cli/home_lock.h"
#include "cli/refuse.h"
#include "cli/verbs.h"
#include "net/unix_address.h"

namespace athanor {
namespace {

constexpr Millis kLongest{60'000};
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

Error StillThere(const std::string& why, Millis limit, pid_t pid) {
  Error error;
  error.code = ErrorCode::kTimeout;
  error.what = "the server was asked to stop but is still running after " + HumanDuration(limit);
  error.why = why;
  error.hint = "ath server stop            waits again";
  if (pid > 0) {
    error.hint += "\nkill -9 " + std::to_string(pid) +
                  "    ends it at once; nothing that it confirmed is lost, and jobs continue";
  }
  error.id = "ATH-V0004";
  return error;
}

int Gone(const Common& common) {
  std::puts(common.json ? "{\"stopping\":true,\"stopped\":true}"
                        : "the server has stopped; running jobs continue");
  return 0;
}

// Elsewhere nothing but its answers can be seen: it is gone when it gives none, or when another
// one does in its place.
int StopRemote(Client& client, const Common& common, Millis limit) {
  const SystemClock clock;
  const auto before = client.Get("/api/v1/server");
  if (!before) return Refuse(before.error(), common.json);
  if (auto body = client.Post("/api/v1/server/stop"); !body) return Refuse(body.error(), common.json);
  for (const auto until = clock.Monotonic() + limit; clock.Monotonic() < until;) {
    const auto now = client.Get("/api/v1/server");
    if (!now || now->value("started", "") != before->value("started", "")) return Gone(common);
    ::usleep(static_cast<useconds_t>(Millis(100) / std::chrono::microseconds(1)));
  }
  return Refuse(StillThere("it still answers at " + client.address(), limit, 0), common.json);
}

}  // namespace

int ServerStopVerb(const Common& common, const std::string& timeout) {
  Millis limit = kLongest;
  if (!timeout.empty()) {
    auto parsed = ParseDuration(timeout);
    if (!parsed) return Refuse(parsed.error(), common.json);
    limit = *parsed;
  }
  auto client = Client::Connect(common.home, false);
  if (!client) return Refuse(client.error(), common.json);
  if (client->remote()) return StopRemote(*client, common, limit);
  const SystemClock clock;
  const auto until = clock.Monotonic() + limit;
  const auto server = ServerProcess::Of(common.home);
  const auto body = client->Post("/api/v1/server/stop");
  if (!body && body.error().code != ErrorCode::kUnavailable) {
    return Refuse(body.error(), common.json);
  }
  // One that answers no more may still be on its way out: the lock is the last thing it holds.
  if (!body && server.gone() && HomeIsFree(common.home)) {
    std::puts(common.json ? "{\"stopping\":false}" : "no server was running");
    return 0;
  }
  while (!server.gone() || !HomeIsFree(common.home)) {
    if (clock.Monotonic() >= until) {
      return Refuse(StillThere("it holds " + common.home.lock(), limit, server.pid), common.json);
    }
    pollfd waits{server.pidfd.get(), POLLIN, 0};
    const bool ended = server.gone();
    ::poll(&waits, ended ? 0 : 1, static_cast<int>(kPause.count()));
  }
  return Gone(common);
}

}  // namespace athanor
