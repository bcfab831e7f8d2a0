#include "cli/verbs/verb_ui.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "base/exec/process.h"
#include "base/io/fd.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/screen/output.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"

namespace athanor {
namespace {

bool HasScreen() {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  return ::isatty(STDOUT_FILENO) == 1 && (set("DISPLAY") || set("WAYLAND_DISPLAY"));
}

// If no browser can be started, that is not an error: the address was printed.
void OpenInBrowser(const std::string& url) {
  UniqueFd nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (nowhere) (void)SpawnDetached({"xdg-open", url}, nowhere.get());
}

}  // namespace

int UiVerb(const Common& common, const std::string& job, bool link, bool print) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  std::string place;
  if (!job.empty()) {
    auto record = client->Get("/api/v1/jobs/" + UrlEncode(job));
    if (!record) return Refuse(record.error(), common.json);
    place = "#/job/" + Text(*record, "id");
  }
  // A server on another machine cannot identify the Unix user: a link is needed there.
  link = link || client->remote();
  auto answer = link ? client->Post("/api/v1/session/link") : client->Get("/api/v1/server");
  if (!answer) return Refuse(answer.error(), common.json);
  const std::string base = client->remote() ? client->address() : Text(*answer, "url");
  const std::string url = base + "/" + (link ? Text(*answer, "path") : "") + place;
  if (common.json) {
    Json out = {{"url", url}};
    if (link) out["expires"] = Text(*answer, "expires");
    std::printf("%s\n", DumpJson(out).c_str());
    return 0;
  }
  std::printf("%s\n", url.c_str());
  std::fflush(stdout);
  if (link && !common.quiet) std::fputs("this link is good once, for two minutes\n", stderr);
  if (!print && HasScreen()) OpenInBrowser(url);
  return 0;
}

}  // namespace athanor
