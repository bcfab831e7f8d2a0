// ath service: the server as a systemd service, which starts when the machine does.
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "base/exec/process.h"
#include "base/io/files.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/screen/output.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/service.h"
#include "cli/stop_server.h"
#include "cli/verbs/verbs.h"
#include "link/server_record.h"
#include "serve/service_unit.h"

namespace athanor {
namespace {

constexpr int kStartWaitMs = 30'000;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string UserConfig() {
  const auto config = Variable("XDG_CONFIG_HOME");
  return config.empty() ? Variable("HOME") + "/.config" : config;
}

std::string UserName() {
  if (const auto* entry = ::getpwuid(::geteuid())) return entry->pw_name;
  return std::to_string(::geteuid());
}

struct Wanted {
  std::string name;
  std::string file;
  std::string text;
};

Wanted UnitFor(const Home& home, bool system) {
  Wanted wanted;
  wanted.name = UnitName(home.root, UsualHome());
  wanted.file = UnitFolder(system, UserConfig()) + "/" + wanted.name;
  wanted.text = UnitText({system, ProgramPath(), home.root, Variable("PATH")}, wanted.name);
  return wanted;
}

// systemd answers also where it is "degraded" or still starting: something else failed there.
bool SystemdRuns(bool system) {
  std::vector<std::string> argv = {"systemctl"};
  if (!system) argv.emplace_back("--user");
  argv.emplace_back("is-system-running");
  const auto asked = RunCommand(argv);
  if (!asked) return false;
  const std::string state(Trim(asked->output));
  static constexpr std::array<std::string_view, 4> kUp = {"running", "degraded", "starting",
                                                          "initializing"};
  return std::ranges::find(kUp, state) != kUp.end();
}

Error NoSystemd(const Home& home, bool system) {
  // cron gives a job hardly any environment.
  const std::string line = "@reboot ATHANOR_HOME=" + ShellQuote(home.root) + " " +
                           ShellQuote(ProgramPath()) + " server start";
  std::string hint = "(crontab -l; echo " + ShellQuote(line) +
                     ") | crontab -    starts it with cron\n" +
                     "ath serve    in a container, as its main program";
  if (!system && ::geteuid() == 0) hint = "ath service install --system\n" + hint;
  return Error{ErrorCode::kUnavailable,
               system ? "systemd does not run on this machine"
                      : "systemd does not run services for " + UserName(),
               std::move(hint)}
      .Why(std::string("systemctl ") + (system ? "" : "--user ") +
           "is-system-running did not answer")
      .Id("ATH-V0040");
}

// The running server makes room for the service; jobs continue.
Status MakeRoom(const Home& home) {
  const auto record = ReadServerRecord(home.root);
  if (HomeIsFree(home)) return Ok();
  if (record && record->by == StartedBy::kHand) {
    return Fail(Error{ErrorCode::kConflict,
                      "a server that was started by hand runs for " + home.root, "ath server stop"}
                    .Why("`ath serve`, process " + std::to_string(record->pid))
                    .Id("ATH-V0042"));
  }
  return StopServerHere(home, kServerStopLimit);
}

Status Install(const Home& home, bool system) {
  const auto wanted = UnitFor(home, system);
  if (system && ::geteuid() != 0) {
    return Fail(Error{ErrorCode::kDenied, "only root can install a service for the machine",
                      "ath service install            for your user alone\n"
                      "sudo ath service install --system"}
                    .Why("--system writes " + wanted.file)
                    .Id("ATH-V0043"));
  }
  if (!SystemdRuns(system)) return Fail(NoSystemd(home, system));
  ATHANOR_CHECK_OK(MakeDirs(home.root));
  ATHANOR_CHECK_OK(MakeRoom(home));
  ATHANOR_CHECK_OK(MakeDirs(DirName(wanted.file), 0755));
  ATHANOR_CHECK_OK(WriteFileAtomic(wanted.file, wanted.text, 0644));
  ATHANOR_CHECK_OK(NoteService(home, {MarkOf(system, wanted.name), wanted.file}));
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"daemon-reload"}, {"enable", wanted.name}, {"restart", wanted.name}}) {
    if (auto done = Systemctl(system, words); !done) return Fail(std::move(done).error());
  }
  ATHANOR_TRY(const auto client, Client::ConnectHere(home, false));
  for (int waited = 0; waited < kStartWaitMs && !client.Reachable(); waited += 20) ::usleep(20'000);
  if (client.Reachable()) return Ok();
  return Fail(Error{ErrorCode::kUnavailable,
                    "the service was installed, but its server does not answer",
                    SystemctlFor(MarkOf(system, wanted.name), "status")}
                  .Id("ATH-V0041"));
}

// Without lingering, systemd ends a user's services when the user logs out.
bool Lingers() {
  const auto asked = RunCommand({"loginctl", "show-user", UserName(), "--property=Linger"});
  return asked && Trim(asked->output) == "Linger=yes";
}

std::string FirstWord(bool system, std::vector<std::string> words, const std::string& otherwise) {
  const auto said = Systemctl(system, std::move(words));
  if (said) return *said;
  return said.error().why.empty() || said.error().why.find(' ') != std::string::npos
             ? otherwise
             : said.error().why;
}

}  // namespace

int ServiceInstallVerb(const Common& common, bool system, bool print) {
  const auto wanted = UnitFor(common.home, system);
  if (print) {
    if (common.json) {
      PrintJson({{"unit", wanted.name}, {"file", wanted.file}, {"text", wanted.text}});
    } else {
      std::fputs(wanted.text.c_str(), stdout);
      PrintHint("save it as " + wanted.file + ", then: systemctl " + (system ? "" : "--user ") +
                    "enable --now " + wanted.name,
                common.quiet);
    }
    return 0;
  }
  if (auto done = Install(common.home, system); !done) return Refuse(done.error(), common.json);
  const bool lingers = system || Lingers();
  if (common.json) {
    PrintJson({{"unit", wanted.name}, {"file", wanted.file}, {"lingers", lingers}});
    return 0;
  }
  std::printf("installed %s\nthe server runs, and starts again %s\n", wanted.file.c_str(),
              system ? "when the machine does" : "when you log in");
  if (!lingers) {
    PrintHint("loginctl enable-linger    keeps it running when you log out, and starts it at boot",
              common.quiet);
  }
  return 0;
}

int ServiceStatusVerb(const Common& common) {
  const auto service = ServiceOf(common.home);
  if (!service) {
    if (common.json) {
      PrintJson({{"installed", false}});
    } else {
      std::puts("no service is installed");
      PrintHint("ath service install", common.quiet);
    }
    return 0;
  }
  const bool system = StartsWith(service->mark, "system/");
  const auto name = BaseName(service->file);
  const auto enabled = FirstWord(system, {"is-enabled", name}, "unknown");
  const auto active = FirstWord(system, {"is-active", name}, "unknown");
  if (common.json) {
    PrintJson({{"installed", true},
               {"unit", name},
               {"file", service->file},
               {"system", system},
               {"enabled", enabled},
               {"active", active}});
    return 0;
  }
  std::printf("%s  %s, %s\n  unit  %s\n  log   journalctl %s%s\n", name.c_str(), active.c_str(),
              enabled.c_str(), service->file.c_str(), system ? "-u " : "--user-unit ",
              name.c_str());
  if (!system && !Lingers()) {
    PrintHint("loginctl enable-linger    keeps it running when you log out, and starts it at boot",
              common.quiet);
  }
  return 0;
}

int ServiceRemoveVerb(const Common& common) {
  const auto service = ServiceOf(common.home);
  if (auto done = RemoveService(common.home); !done) return Refuse(done.error(), common.json);
  if (common.json) {
    PrintJson({{"removed", service.has_value()}});
  } else if (service) {
    std::printf("removed %s; the server has stopped, running jobs continue\n",
                service->file.c_str());
  } else {
    std::puts("no service was installed");
  }
  return 0;
}

}  // namespace athanor
