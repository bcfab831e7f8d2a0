#include "run/agent/param_reads.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/io/files.h"
#include "base/text/text.h"
#include "job/command.h"
#include "run/contract/contract.h"

namespace athanor {
namespace {

constexpr size_t kMostNotes = 1 << 20;

// Programs that libraries run to look at the machine, and what compiles for them.
bool LooksAtTheMachine(std::string_view program) {
  static constexpr std::string_view kNames[] = {
      "uname", "ldconfig", "gcc",        "g++",      "cc",    "c++",
      "ld",    "objdump",  "nvidia-smi", "git",      "lscpu", "file",
      "which", "sysctl",   "getconf",    "hostname", "nvcc",  "ptxas"};
  return std::find(std::begin(kNames), std::end(kNames), program) != std::end(kNames);
}

bool IsPython(std::string_view program) {
  const auto name = program.substr(program.rfind('/') + 1);
  return StartsWith(name, "python") || StartsWith(name, "pypy") || EndsWith(name, ".py");
}

// Whether the command is one Python program, which its notes speak for.
bool RunsPython(const JobSpec& spec) {
  if (spec.command.empty()) return false;
  const std::string_view first = Trim(spec.command.front());
  if (!spec.shell) return IsPython(first);
  if (first.find_first_of("|;&<>()`\n") != std::string_view::npos) return false;
  return IsPython(first.substr(0, first.find_first_of(" \t")));
}

// What the shell itself reads is in its text.
bool CommandAsks(const JobSpec& spec, const std::string& variable) {
  return std::any_of(spec.command.begin(), spec.command.end(), [&](const std::string& word) {
    return word.find(variable) != std::string::npos || word.find("SM_HPS") != std::string::npos;
  });
}

std::string VariableOf(const std::string& name) { return "SM_HP_" + ToUpper(name); }

std::optional<std::string> ReadNotes(const HeldFolder& ml) {
  const auto folder = (ml / kOwnFolder / kParamsName).Open();
  if (!folder) return std::nullopt;
  const auto fd = OpenBeneath(folder->get(), "read", O_RDONLY | O_NONBLOCK);
  if (!fd)
    return fd.error().code == ErrorCode::kNotFound ? std::optional<std::string>("") : std::nullopt;
  std::string notes;
  char piece[4096];
  for (ssize_t n = 0; (n = ::read(fd->get(), piece, sizeof piece)) != 0;) {
    if (n < 0 || notes.size() > kMostNotes) return std::nullopt;
    notes.append(piece, static_cast<size_t>(n));
  }
  return notes;
}

}  // namespace

std::vector<std::string> ParamsToWatch(const JobSpec& spec) {
  std::vector<std::string> names;
  if (spec.origin != "native") return names;
  for (const auto& param : spec.params) {
    if (!IsPlatformParam(param.name) && !CommandPasses(spec, param) &&
        !CommandAsks(spec, VariableOf(param.name))) {
      names.push_back(param.name);
    }
  }
  return names;
}

Unread UnreadByNotes(const JobSpec& spec, std::string_view notes) {
  std::set<std::string> names, variables;
  bool python = false, other = false;
  for (const auto& line : Split(notes, '\n')) {
    const auto space = line.find(' ');
    const auto what = line.substr(0, space);
    const auto rest = space == std::string::npos ? std::string() : line.substr(space + 1);
    if (what == "all" || rest == "SM_HPS" || rest == "SM_TRAINING_ENV") return {};
    if (what == "python") python = true;
    if (what == "name") names.insert(rest);
    if (what == "env") variables.insert(rest);
    if (what == "walk") other = true;
    if (what == "spawn" && !IsPython(rest) && !LooksAtTheMachine(rest)) other = true;
  }
  Unread unread;
  for (auto& name : ParamsToWatch(spec)) {
    if (!names.contains(name) && !variables.contains(VariableOf(name))) {
      unread.names.push_back(std::move(name));
    }
  }
  unread.sure = !unread.names.empty() && python && !other && RunsPython(spec);
  return unread;
}

void ParamReads::Watch(const JobSpec& spec, const std::string& root) {
  inotify_.reset();
  if (ParamsToWatch(spec).empty()) return;
  UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!watch) return;
  for (const auto& file : {root + "/input/config/hyperparameters.json", ParamsFile(root)}) {
    if (::inotify_add_watch(watch.get(), file.c_str(), IN_OPEN | IN_ACCESS) < 0) return;
  }
  inotify_ = std::move(watch);
}

Unread ParamReads::Find(const JobSpec& spec, const HeldFolder& ml) {
  if (!inotify_) return {};
  alignas(inotify_event) char events[4096];
  if (::read(inotify_.get(), events, sizeof events) > 0)
    return {};  // opened: all of them may be in use
  const auto notes = ReadNotes(ml);
  return notes ? UnreadByNotes(spec, *notes) : Unread{};
}

}  // namespace athanor
