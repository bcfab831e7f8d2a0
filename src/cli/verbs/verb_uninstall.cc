// ath uninstall: ends and removes everything of this user. Programs stay: the way they were
// installed is the way to remove them.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/screen/output.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/service.h"
#include "cli/stop_server.h"
#include "cli/verbs/verbs.h"

namespace athanor {
namespace {

constexpr Millis kJobsEnd = std::chrono::minutes(5);
constexpr Millis kProcessesEnd{30'000};
constexpr Millis kPause{50};

// All that a server puts into its home. Somebody else's files there are left alone.
constexpr const char* kOurs[] = {"agents.port",   "attempts",   "artifacts",   "aws",
                                 "blobs",         "cache",      "jobs",        "lost+found",
                                 "objects",       "port",       "server",      "service",
                                 "server.lock",   "server.log", "server.sock", "server.started",
                                 "settings.yaml", "tb",         "types.csv"};

// On the disk; a file with several names counts once for each.
uint64_t BytesIn(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return 0;
  uint64_t bytes = static_cast<uint64_t>(info.st_blocks) * 512;
  if (!S_ISDIR(info.st_mode)) return bytes;
  for (const auto& name : ListDir(path).value_or(std::vector<std::string>())) {
    bytes += BytesIn(JoinPath(path, name));
  }
  return bytes;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Where completion scripts are put, if ours is there.
std::vector<std::string> CompletionFiles() {
  const auto home = Variable("HOME");
  const auto data = Variable("XDG_DATA_HOME"), config = Variable("XDG_CONFIG_HOME");
  std::vector<std::string> found;
  for (const auto& path :
       {(data.empty() ? home + "/.local/share" : data) + "/bash-completion/completions/ath",
        home + "/.zfunc/_ath",
        (config.empty() ? home + "/.config" : config) + "/fish/completions/ath.fish"}) {
    const auto text = ReadFile(path, 1 << 20);
    if (text && text->find("athanor") != std::string::npos) found.push_back(path);
  }
  return found;
}

// The command that removes the program itself, depending on where it is.
std::string ProgramRemoval() {
  const auto program = ProgramPath();
  if (program.find("-packages/") != std::string::npos) return "pip uninstall athanor";
  if (StartsWith(program, "/usr/bin/") || StartsWith(program, "/usr/lib/")) {
    return "sudo apt remove athanor";
  }
  const auto folder = ShellQuote(DirName(program));
  return "rm " + folder + "/ath " + folder + "/athanor " + folder + "/athanor-supervisor";
}

struct Findings {
  bool server = false;
  uint64_t jobs = 0;  // that are not over
  std::optional<InstalledService> service;
  std::vector<std::string> completions;
  std::vector<std::string> data;    // below the home
  std::vector<std::string> others;  // there too, and not ours
  uint64_t bytes = 0;
};

uint64_t ActiveJobs(Client& client) {
  const auto server = client.Get("/api/v1/server");
  if (!server || !server->contains("states")) return 0;
  uint64_t active = 0;
  for (const auto& [state, count] : (*server)["states"].items()) {
    if (state != "Completed" && state != "Failed" && state != "Stopped")
      active += count.get<uint64_t>();
  }
  return active;
}

Result<Findings> LookAround(const Home& home) {
  Findings found;
  ATHANOR_TRY(auto client, Client::ConnectHere(home, false));
  found.server = client.Reachable();
  // Without a server, each folder there belongs to an attempt that is still running.
  found.jobs = found.server ? ActiveJobs(client)
                            : ListDir(home.attempts()).value_or(std::vector<std::string>()).size();
  found.service = ServiceOf(home);
  found.completions = CompletionFiles();
  for (const auto& name : ListDir(home.root).value_or(std::vector<std::string>())) {
    const bool ours = std::ranges::find(kOurs, name) != std::end(kOurs);
    (ours ? found.data : found.others).push_back(name);
    if (ours) found.bytes += BytesIn(JoinPath(home.root, name));
  }
  return found;
}

void Show(const Findings& found, const Home& home, bool keep_data) {
  if (found.server) std::printf("  server      will be stopped\n");
  if (found.jobs > 0) {
    std::printf("  jobs        %s will be stopped\n", Counted(found.jobs, "job").c_str());
  }
  if (found.service) std::printf("  service     %s\n", found.service->file.c_str());
  for (const auto& path : found.completions) std::printf("  completion  %s\n", path.c_str());
  if (found.data.empty()) {
    std::printf("  data        none in %s\n", home.root.c_str());
  } else {
    std::printf("  data        %s, %s%s\n", home.root.c_str(), HumanBytes(found.bytes).c_str(),
                keep_data ? " (stays)" : ": all jobs, runs, models and checkpoints");
  }
  for (const auto& name : found.others) {
    std::printf("  not ours    %s (stays)\n", JoinPath(home.root, name).c_str());
  }
}

// So that the stored records say how they ended, and no study starts others.
Status EndJobs(const Home& home, bool with_grace) {
  ATHANOR_TRY(auto client, Client::ConnectHere(home, false));
  if (!client.Reachable()) ATHANOR_CHECK_OK(client.StartHere(true));
  if (const auto studies = client.Get("/api/v1/studies")) {
    for (const auto& study : (*studies)["studies"]) {
      if (Text(study, "state") != "Running") continue;
      if (auto stopped = client.Post("/api/v1/studies/" + Text(study, "id") + "/stop"); !stopped) {
        return Fail(stopped.error());
      }
    }
  }
  Json ask = {{"all", true}};
  if (!with_grace) ask["grace_ms"] = 0;
  if (auto stopped = client.Post("/api/v1/stop", DumpJson(ask)); !stopped)
    return Fail(stopped.error());
  const SystemClock clock;
  for (const auto until = clock.Monotonic() + kJobsEnd; ActiveJobs(client) > 0;) {
    if (clock.Monotonic() >= until) {
      return Fail(
          Error{ErrorCode::kTimeout, "some jobs have not ended yet", "ath ps\nath stop --all --now"}
              .Id("ATH-V0051"));
    }
    ::usleep(static_cast<useconds_t>(kPause / std::chrono::microseconds(1)));
  }
  return Ok();
}

// Processes of this home: agents carry their folder in their command line.
bool AnyProcessOf(const Home& home) {
  for (const auto& name : ListDir("/proc").value_or(std::vector<std::string>())) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto command = ReadFile("/proc/" + name + "/cmdline", 64 << 10);
    if (command && command->find(home.attempts() + "/") != std::string::npos &&
        std::strtol(name.c_str(), nullptr, 10) != ::getpid()) {
      return true;
    }
  }
  return false;
}

Status Remove(const Home& home, const Findings& found, bool keep_data) {
  if (found.jobs > 0) {
    auto ended = EndJobs(home, keep_data);
    // Data that goes takes its jobs with it: their agents end when their folders are gone.
    if (!ended && keep_data) return ended;
  }
  ATHANOR_CHECK_OK(RemoveService(home));
  if (!found.data.empty()) ATHANOR_CHECK_OK(StopServerHere(home, kServerStopLimit));
  for (const auto& path : found.completions) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return FailErrno("delete " + path, errno);
  }
  if (keep_data) return Ok();
  for (const auto& name : found.data) ATHANOR_CHECK_OK(RemoveTree(JoinPath(home.root, name)));
  const SystemClock clock;
  for (const auto until = clock.Monotonic() + kProcessesEnd; AnyProcessOf(home);) {
    if (clock.Monotonic() >= until) {
      return Fail(Error{ErrorCode::kTimeout, "some processes of " + home.root + " have not ended",
                        "pgrep -af " + ShellQuote(home.attempts())}
                      .Id("ATH-V0051"));
    }
    ::usleep(static_cast<useconds_t>(kPause / std::chrono::microseconds(1)));
  }
  // What agents wrote while they ended.
  for (const char* name : kOurs) ATHANOR_CHECK_OK(RemoveTree(JoinPath(home.root, name)));
  ::rmdir(home.root.c_str());  // stays if it contains other files
  return Ok();
}

bool Confirmed() {
  std::fputs("Continue? [y/N] ", stderr);
  const int answer = std::getchar();
  for (int c = answer; c != EOF && c != '\n';) c = std::getchar();
  return answer == 'y' || answer == 'Y';
}

}  // namespace

int UninstallVerb(const Common& common, const UninstallOptions& options) {
  auto found = LookAround(common.home);
  if (!found) return Refuse(found.error(), common.json);
  if (common.json) {
    if (!options.dry_run && !options.yes) {
      return Refuse(Error{ErrorCode::kInvalid, "uninstall needs --yes or --dry-run with --json",
                          "ath uninstall --dry-run --json"}
                        .Id("ATH-V0050"),
                    true);
    }
  } else {
    std::puts(options.dry_run ? "Would remove:" : "Removes:");
    Show(*found, common.home, options.keep_data);
    std::fflush(stdout);
  }
  if (!options.dry_run && !options.yes) {
    if (!::isatty(STDIN_FILENO) || !::isatty(STDERR_FILENO)) {
      return Refuse(Error{ErrorCode::kInvalid, "nothing was removed: confirm it with --yes",
                          "ath uninstall --yes\nath uninstall --keep-data --yes"}
                        .Why("this is not a terminal, so there is nobody to ask")
                        .Id("ATH-V0050"),
                    false);
    }
    if (!Confirmed()) {
      std::fputs("  nothing was removed\n", stderr);
      return 1;
    }
  }
  if (!options.dry_run) {
    if (auto removed = Remove(common.home, *found, options.keep_data); !removed) {
      return Refuse(removed.error(), common.json);
    }
  }
  if (common.json) {
    return PrintJson({{"removed", !options.dry_run},
                      {"home", common.home.root},
                      {"data_bytes", found->bytes},
                      {"data_kept", options.keep_data},
                      {"jobs", found->jobs},
                      {"service", found->service ? Json(found->service->file) : Json()},
                      {"completions", found->completions},
                      {"program", ProgramRemoval()}});
  }
  if (options.dry_run) {
    PrintHint("ath uninstall · ath uninstall --keep-data", common.quiet);
    return 0;
  }
  std::puts("Done.");
  PrintHint("to remove the program: " + ProgramRemoval(), common.quiet);
  return 0;
}

}  // namespace athanor
