#include "base/exec/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>

#include "base/io/files.h"
#include "base/text/text.h"

namespace athanor {
namespace {

using SteadyClock = std::chrono::steady_clock;

// glibc's posix_spawn runs the child on the parent's memory (CLONE_VM | CLONE_VFORK):
// its cost does not grow with the server's size, and a failed exec is our error.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnPlan() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  void Move(int from, int to) { posix_spawn_file_actions_adddup2(&actions_, from, to); }
  void CloseFrom(int first) { posix_spawn_file_actions_addclosefrom_np(&actions_, first); }
  void ChangeDir(const std::string& cwd) {
    if (!cwd.empty()) posix_spawn_file_actions_addchdir_np(&actions_, cwd.c_str());
  }

  Result<pid_t> Start(const std::vector<std::string>& argv,
                      const std::optional<std::vector<std::string>>& environment,
                      short group_flag) {
    sigset_t set;
    sigfillset(&set);
    posix_spawnattr_setsigdefault(&attributes_, &set);
    sigemptyset(&set);
    posix_spawnattr_setsigmask(&attributes_, &set);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, static_cast<short>(POSIX_SPAWN_SETSIGDEF |
                                                              POSIX_SPAWN_SETSIGMASK | group_flag));
    const auto pointers = Pointers(argv);
    std::vector<char*> environment_pointers;
    if (environment) environment_pointers = Pointers(*environment);
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, argv[0].c_str(), &actions_, &attributes_, pointers.data(),
                                   environment ? environment_pointers.data() : environ);
    if (error != 0) return FailErrno("start " + Printable(argv[0].substr(0, 512)), error);
    return pid;
  }

 private:
  static std::vector<char*> Pointers(const std::vector<std::string>& words) {
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (const auto& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    return pointers;
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

Status CheckWords(const std::vector<std::string>& argv,
                  const std::optional<std::vector<std::string>>& environment) {
  if (argv.empty() || argv[0].empty()) {
    return Fail(ErrorCode::kInvalid, "start a program: no program is named");
  }
  // The kernel would see such a word cut off.
  const auto has_nul = [](const std::string& word) { return word.find('\0') != std::string::npos; };
  if (std::any_of(argv.begin(), argv.end(), has_nul) ||
      (environment && std::any_of(environment->begin(), environment->end(), has_nul))) {
    return Fail(ErrorCode::kInvalid, "start " + Printable(argv[0].substr(0, 512)) +
                                         ": an argument or a variable holds a NUL byte");
  }
  return Ok();
}

// A file in memory instead of a pipe: a program that never reads its input can neither block us nor
// cause SIGPIPE.
Result<UniqueFd> InputOf(const std::string& text) {
  if (text.empty()) {
    UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null) return FailErrno("open /dev/null", errno);
    return null;
  }
  UniqueFd memory(::memfd_create("stdin", MFD_CLOEXEC));
  if (!memory) return FailErrno("make room for the input", errno);
  ATHANOR_CHECK_OK(WriteAll(memory.get(), text));
  ::lseek(memory.get(), 0, SEEK_SET);
  return memory;
}

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return FailErrno("make a pipe", errno);
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

// Copies of `fds`, all numbered `least` or above: a move to a low number then
// cannot overwrite the source of a later move.
Result<std::vector<UniqueFd>> LiftFds(const std::vector<int>& fds, int least) {
  std::vector<UniqueFd> lifted;
  for (const int fd : fds) {
    lifted.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, least));
    if (!lifted.back()) return FailErrno("copy a descriptor", errno);
  }
  return lifted;
}

Result<UniqueFd> PidfdOf(pid_t pid) {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    return errno == ESRCH ? FailErrno("open process " + std::to_string(pid), ENOENT)
                          : FailErrno("open process " + std::to_string(pid), errno);
  }
  return pidfd;
}

// Waits for one started command and collects its output.
class Gatherer {
 public:
  Gatherer(const CommandOptions& options, pid_t pid, UniqueFd pidfd)
      : options_(options), pid_(pid), pidfd_(std::move(pidfd)) {}

  Result<CommandResult> Run(UniqueFd output, UniqueFd error_output) {
    streams_[0] = {std::move(output), &result_.output};
    streams_[1] = {std::move(error_output), &result_.error_output};
    const auto deadline = SteadyClock::now() + options_.timeout;
    for (bool ended = false; !ended;) {
      std::array<pollfd, 3> polled{pollfd{pidfd_.get(), POLLIN, 0},
                                   pollfd{streams_[0].fd.get(), POLLIN, 0},
                                   pollfd{streams_[1].fd.get(), POLLIN, 0}};
      const int ready = ::poll(polled.data(), polled.size(), Remaining(deadline));
      if (ready < 0 && errno != EINTR) return Abandon(FailErrno("wait for a command", errno));
      if (ready >= 0 && polled[0].revents == 0) EndIfAsked(deadline);
      if (ready <= 0) continue;
      ended = polled[0].revents != 0;
      for (auto& stream : streams_) Drain(stream);
    }
    // Everything written before the end is in the pipe by now.
    for (auto& stream : streams_) Drain(stream);
    return Reap();
  }

 private:
  static constexpr std::chrono::milliseconds kBetweenQuestions{100};

  struct Stream {
    UniqueFd fd;
    std::string* text = nullptr;
  };

  bool killed() const { return result_.timed_out || result_.cancelled; }

  void EndIfAsked(SteadyClock::time_point deadline) {
    if (killed()) return;
    const auto now = SteadyClock::now();
    result_.timed_out = options_.timeout.count() > 0 && now >= deadline;
    if (options_.cancelled && now >= next_question_) {
      next_question_ = now + kBetweenQuestions;
      result_.cancelled = options_.cancelled();
    }
    if (!killed()) return;
    // The group exists until the leader is reaped, so this cannot hit an unrelated process.
    ::kill(-pid_, SIGKILL);
    // The leader may have moved itself to another group.
    ::kill(pid_, SIGKILL);
  }

  int Remaining(SteadyClock::time_point deadline) const {
    if (killed()) return -1;
    int64_t wait = options_.cancelled ? kBetweenQuestions.count() : -1;
    if (options_.timeout.count() > 0) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
      wait = wait < 0 ? left.count() : std::min<int64_t>(wait, left.count());
      wait = std::clamp<int64_t>(wait, 0, INT_MAX);
    }
    return static_cast<int>(wait);
  }

  // Bounded, so that the time limit also applies to a program that prints without end.
  void Drain(Stream& stream) {
    for (int round = 0; stream.fd && round < 16; ++round) {
      const ssize_t got = ::read(stream.fd.get(), buffer_.data(), buffer_.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) {
        stream.fd.reset();
        return;
      }
      const std::string_view bytes(buffer_.data(), static_cast<size_t>(got));
      if (options_.on_output) options_.on_output(bytes);
      const size_t room =
          options_.output_limit - std::min(options_.output_limit, stream.text->size());
      if (bytes.size() > room) result_.truncated = true;
      stream.text->append(bytes.substr(0, room));
    }
  }

  Result<CommandResult> Reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0) {
      if (errno != EINTR) return FailErrno("wait for a command", errno);
    }
    if (WIFEXITED(status)) result_.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result_.signal = WTERMSIG(status);
    return std::move(result_);
  }

  Result<CommandResult> Abandon(tl::unexpected<Error> error) {
    ::kill(-pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    return error;
  }

  const CommandOptions& options_;
  const pid_t pid_;
  UniqueFd pidfd_;
  std::array<Stream, 2> streams_;
  CommandResult result_;
  SteadyClock::time_point next_question_{};
  std::string buffer_ = std::string(64 * 1024, '\0');
};

struct ProcStat {
  char state = 0;
  uint64_t start_time = 0;
};

Result<ProcStat> ReadStat(pid_t pid) {
  auto text = ReadFile("/proc/" + std::to_string(pid) + "/stat", 64 * 1024);
  // Reading the file of a process that has ended in the meantime gives ESRCH.
  if (!text) {
    return Fail(ErrorCode::kNotFound, "there is no process " + std::to_string(pid));
  }
  // The name in parentheses may hold anything, also spaces and parentheses.
  const size_t name_end = text->rfind(')');
  if (name_end != std::string::npos && name_end + 2 < text->size()) {
    const auto fields = Split(std::string_view(*text).substr(name_end + 2), ' ');
    constexpr size_t kStartTime = 22 - 3;  // field 3, the state, is the first after the name
    ProcStat stat;
    if (fields.size() > kStartTime && !fields[0].empty()) {
      const std::string& number = fields[kStartTime];
      const auto parsed =
          std::from_chars(number.data(), number.data() + number.size(), stat.start_time);
      stat.state = fields[0][0];
      if (parsed.ec == std::errc()) return stat;
    }
  }
  return Fail(ErrorCode::kCorrupt, "/proc/" + std::to_string(pid) + "/stat is not readable");
}

}  // namespace

Result<CommandResult> RunCommand(const std::vector<std::string>& argv,
                                 const CommandOptions& options) {
  ATHANOR_CHECK_OK(CheckWords(argv, options.environment));
  ATHANOR_TRY(const UniqueFd input, InputOf(options.stdin_text));
  ATHANOR_TRY(Pipe output, MakePipe());
  Pipe error_output;
  if (options.separate_stderr) {
    ATHANOR_TRY(error_output, MakePipe());
  }
  ATHANOR_TRY(auto sources,
              LiftFds({input.get(), output.write.get(),
                       options.separate_stderr ? error_output.write.get() : output.write.get()},
                      3));
  SpawnPlan plan;
  for (int i = 0; i < 3; ++i) plan.Move(sources[static_cast<size_t>(i)].get(), i);
  plan.CloseFrom(3);
  plan.ChangeDir(options.cwd);
  ATHANOR_TRY(const pid_t pid, plan.Start(argv, options.environment, POSIX_SPAWN_SETPGROUP));
  auto pidfd = PidfdOf(pid);
  if (!pidfd) {
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return Fail(std::move(pidfd).error());
  }
  sources.clear();
  output.write.reset();
  error_output.write.reset();
  return Gatherer(options, pid, std::move(*pidfd))
      .Run(std::move(output.read), std::move(error_output.read));
}

Result<pid_t> SpawnDetached(const std::vector<std::string>& argv, int log_fd,
                            const DetachedOptions& options) {
  ATHANOR_CHECK_OK(CheckWords(argv, options.environment));
  ATHANOR_TRY(const UniqueFd null, InputOf(""));
  std::vector<int> wanted = {null.get(), log_fd, log_fd};
  wanted.insert(wanted.end(), options.pass_fds.begin(), options.pass_fds.end());
  const int count = static_cast<int>(wanted.size());
  ATHANOR_TRY(const auto sources, LiftFds(wanted, count));
  SpawnPlan plan;
  for (int i = 0; i < count; ++i) plan.Move(sources[static_cast<size_t>(i)].get(), i);
  plan.CloseFrom(count);
  plan.ChangeDir(options.cwd);
  return plan.Start(argv, options.environment, POSIX_SPAWN_SETSID);
}

bool ReapIfEnded(pid_t child) {
  int status = 0;
  return ::waitpid(child, &status, WNOHANG) == child;
}

Result<ProcessIdentity> IdentityOf(pid_t pid) {
  ATHANOR_TRY(const ProcStat stat, ReadStat(pid));
  return ProcessIdentity{pid, stat.start_time};
}

bool IsAlive(const ProcessIdentity& identity) {
  const auto stat = ReadStat(identity.pid);
  return stat && stat->start_time == identity.start_time && stat->state != 'Z' &&
         stat->state != 'X';
}

Result<UniqueFd> OpenPidfd(const ProcessIdentity& identity) {
  ATHANOR_TRY(UniqueFd pidfd, PidfdOf(identity.pid));
  // Checked after opening: from here on, the descriptor cannot refer to another process.
  ATHANOR_TRY(const ProcessIdentity now, IdentityOf(identity.pid));
  if (now != identity) {
    return Fail(ErrorCode::kNotFound,
                "process " + std::to_string(identity.pid) + " has ended; its number is reused");
  }
  return pidfd;
}

Status SendSignal(int pidfd, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0) return Ok();
  return FailErrno("send a signal", errno == ESRCH ? ENOENT : errno);
}

}  // namespace athanor
