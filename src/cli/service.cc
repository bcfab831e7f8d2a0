#include "cli/service.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "base/exec/process.h"
#include "base/io/files.h"
#include "base/text/text.h"
#include "serve/service_unit.h"

namespace athanor {
namespace {

constexpr std::chrono::seconds kPatience(60);

std::string NoteOf(const Home& home) { return home.root + "/service"; }

}  // namespace

std::optional<InstalledService> ServiceOf(const Home& home) {
  const auto text = ReadFile(NoteOf(home), 8 << 10);
  if (!text) return std::nullopt;
  const auto lines = Split(*text, '\n');
  if (lines.size() < 2 || !Exists(lines[1])) return std::nullopt;
  return InstalledService{lines[0], lines[1]};
}

Status NoteService(const Home& home, const InstalledService& service) {
  return ReplaceFile(NoteOf(home), service.mark + "\n" + service.file + "\n");
}

Result<std::string> Systemctl(bool system, std::vector<std::string> words) {
  std::vector<std::string> argv = {"systemctl"};
  if (!system) argv.emplace_back("--user");
  argv.insert(argv.end(), words.begin(), words.end());
  CommandOptions options;
  options.timeout = kPatience;
  ATHANOR_TRY(const auto done, RunCommand(argv, options));
  const std::string said(Trim(Split(done.output, '\n').front()));
  if (done.ok()) return said;
  std::string typed;
  for (const auto& word : argv) typed += (typed.empty() ? "" : " ") + ShellQuote(word);
  return Fail(Error{ErrorCode::kUnavailable, typed + " failed"}.Why(said).Id("ATH-V0041"));
}

bool StartService(const Home& home) {
  const auto service = ServiceOf(home);
  if (!service) return false;
  const bool system = StartsWith(service->mark, "system/");
  // The machine's services are root's to start.
  if (system && ::geteuid() != 0) return false;
  return Systemctl(system, {"start", BaseName(service->file)}).has_value();
}

Status RemoveService(const Home& home) {
  const auto service = ServiceOf(home);
  if (!service) {
    ::unlink(NoteOf(home).c_str());
    return Ok();
  }
  const bool system = StartsWith(service->mark, "system/");
  // Where systemd does not run any more, the file alone is left to delete.
  (void)Systemctl(system, {"disable", "--now", BaseName(service->file)});
  if (::unlink(service->file.c_str()) != 0) return FailErrno("delete " + service->file, errno);
  (void)Systemctl(system, {"daemon-reload"});
  ::unlink(NoteOf(home).c_str());
  return Ok();
}

}  // namespace athanor
