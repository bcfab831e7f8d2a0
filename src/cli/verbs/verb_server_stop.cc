// ath server stop: asks the server to stop, and returns when it is gone.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/screen/refuse.h"
#include "cli/stop_server.h"
#include "cli/verbs/verbs.h"

namespace athanor {
namespace {

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
  if (auto body = client.Post("/api/v1/server/stop"); !body)
    return Refuse(body.error(), common.json);
  for (const auto until = clock.Monotonic() + limit; clock.Monotonic() < until;) {
    const auto now = client.Get("/api/v1/server");
    if (!now || now->value("started", "") != before->value("started", "")) return Gone(common);
    ::usleep(static_cast<useconds_t>(Millis(100) / std::chrono::microseconds(1)));
  }
  return Refuse(ServerStillThere("it still answers at " + client.address(), limit, 0), common.json);
}

}  // namespace

int ServerStopVerb(const Common& common, const std::string& timeout) {
  Millis limit = kServerStopLimit;
  if (!timeout.empty()) {
    auto parsed = ParseDuration(timeout);
    if (!parsed) return Refuse(parsed.error(), common.json);
    limit = *parsed;
  }
  auto client = Client::Connect(common.home, false);
  if (!client) return Refuse(client.error(), common.json);
  if (client->remote()) return StopRemote(*client, common, limit);
  bool was_running = false;
  if (auto done = StopServerHere(common.home, limit, &was_running); !done) {
    return Refuse(done.error(), common.json);
  }
  if (was_running) return Gone(common);
  std::puts(common.json ? "{\"stopping\":false}" : "no server was running");
  return 0;
}

}  // namespace athanor
