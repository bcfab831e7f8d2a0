#include "cli/attach.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <deque>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
#include "base/io/fd.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "cli/lost_server.h"
#include "cli/screen/footer.h"
#include "cli/screen/rank_lines.h"
#include "cli/screen/reading.h"
#include "job/causes.h"
#include "job/record.h"
#include "net/http/sse.h"

namespace athanor {
namespace {

// Turns SIGINT into something a blocking read can be woken by.
class InterruptFd {
 public:
  InterruptFd() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    ::sigprocmask(SIG_BLOCK, &set, &old_);
    fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~InterruptFd() { ::sigprocmask(SIG_SETMASK, &old_, nullptr); }
  int fd() const { return fd_.get(); }
  bool Take() {
    signalfd_siginfo info{};
    return ::read(fd_.get(), &info, sizeof info) == sizeof info;
  }

 private:
  UniqueFd fd_;
  sigset_t old_{};
};

class Follower {
 public:
  Follower(Client& client, const AttachOptions& options)
      : client_(client),
        options_(options),
        footer_(DetectTerminal(), options.footer && !options.json),
        lines_(DetectTerminal(), options.tags, options.split, options.filter) {}

  Result<std::optional<Json>> Run() {
    InterruptFd interrupt;
    LostServer lost(client_, options_.name.empty() ? options_.job : options_.name,
                    options_.quiet || options_.json);
    while (!end_) {
      HttpCall call;
      call.target = "/api/v1/jobs/" + options_.job + "/stream?" + options_.query;
      if (options_.once) call.target += "&follow=false";
      if (!last_id_.empty()) call.headers.Add("Last-Event-ID", last_id_);
      call.cancel_fd = interrupt.fd();
      call.read_timeout = std::chrono::hours(24);
      SseParser parser;
      call.on_body = [&](std::string_view bytes) {
        lost.Answered();
        auto fed = parser.Feed(bytes, [this](const SseEvent& event) {
          On(event);
          return !end_;
        });
        return fed.ok() && !end_;
      };
      auto reply = client_.Do(std::move(call));
      if (end_) break;
      if (!interrupt.Take()) {
        if (reply && options_.once) {
          PrintRest();
          return std::optional<Json>();
        }
        const Error why =
            reply ? Error{ErrorCode::kUnavailable, "the server keeps closing the connection"}
                  : reply.error();
        footer_.Clear();
        const auto again = lost.Wait(why, interrupt.fd());
        if (again) continue;
        if (again.error().code != ErrorCode::kCancelled || !interrupt.Take()) {
          return Fail(again.error());
        }
      }
      footer_.Clear();
      if (!options_.stop_on_interrupt || interrupted_) return std::optional<Json>();
      interrupted_ = true;
      AskToStop();
    }
    PrintRest();
    footer_.Clear();
    return std::move(end_);
  }

 private:
  void AskToStop() {
    if (!options_.quiet) {
      std::fputs("  asking the job to stop (press Ctrl-C again to stop waiting)\n", stderr);
    }
    client_.http().Disconnect();
    auto stopped = client_.Post("/api/v1/jobs/" + options_.job + "/stop");
    if (!stopped) PrintError(stopped.error(), options_.json);
  }

  void On(const SseEvent& event) {
    if (!event.id.empty()) last_id_ = event.id;
    auto data = ParseJson(event.data);
    if (!data) return;
    if (options_.json) {
      Json line = {{"event", event.event}};
      if (event.event == "log" && options_.filter) {
        auto kept = options_.filter(Bytes(*data));
        if (kept.empty()) return;
        data->erase("base64");
        (*data)["text"] = kept;
      }
      for (auto& [key, value] : data->items()) line[key] = value;
      std::printf("%s\n", DumpJson(line).c_str());
      std::fflush(stdout);
    } else if (event.event == "log") {
      Log(*data);
    } else {
      if (event.event == "state") {
        several_ = !options_.one_rank && Number(*data, "processes") > 0 &&
                   (!options_.one_host || Number(*data, "processes") > 1);
        if (!options_.quiet) SayStart(*data);
      }
      footer_.On(event.event, *data);
    }
    if (event.event == "end") end_ = std::move(*data);
  }

  // Once, as soon as it is known.
  void SayStart(const Json& data) {
    if (!options_.head) return;
    std::string lines;
    if (!std::exchange(gpus_said_, gpus_said_ || data.contains("auto_gpus"))) {
      if (const auto gpus = AutoGpusText(data); !gpus.empty()) lines += "  gpus    " + gpus + "\n";
    }
    if (!std::exchange(limits_said_, limits_said_ || data.contains("off"))) {
      if (const auto limits = LimitsText(data); !limits.empty())
        lines += "  limits  " + limits + "\n";
    }
    footer_.Print(lines, stderr);
  }

  static std::string Bytes(const Json& data) {
    return data.contains("text") ? data["text"].get<std::string>()
                                 : FromBase64(data.value("base64", "")).value_or("");
  }

  void Log(const Json& data) {
    std::string bytes = Bytes(data);
    const bool error = options_.split && data.value("stream", "") == "stderr";
    if (several_) {
      bytes = lines_.Take(data, bytes);
      if (options_.once) bytes = order_.Add(Text(data, "time"), std::move(bytes));
    } else if (options_.filter) {
      bytes = options_.filter(bytes);
    }
    footer_.Print(bytes, error ? stderr : stdout);
  }

  // What several ranks printed and is not on the screen yet.
  void PrintRest() {
    footer_.Print(order_.Finish(), stdout);
    for (const auto& [error, text] : lines_.Finish()) {
      footer_.Print(text, options_.split && error ? stderr : stdout);
    }
  }

  Client& client_;
  AttachOptions options_;
  Footer footer_;
  RankLines lines_;    // of several ranks
  LinesByTime order_;  // of what is read once
  bool several_ = false;
  std::string last_id_;
  std::optional<Json> end_;
  bool interrupted_ = false;
  bool gpus_said_ = false;
  bool limits_said_ = false;
};

}  // namespace

Result<std::optional<Json>> Attach(Client& client, const AttachOptions& options) {
  return Follower(client, options).Run();
}

std::string AutoGpusText(const Json& placement) {
  std::vector<std::string> devices;
  for (const auto& device : placement.value("auto_gpus", Json::array())) {
    devices.push_back(DumpJson(device));
  }
  return devices.empty() ? "" : Join(devices, ",") + " (all that no other job reserved)";
}

std::string LimitsText(const Json& attempt) {
  for (const auto& off : attempt.value("off", Json::array())) {
    if (auto text = off.get<std::string>(); StartsWith(text, kLimitsMark)) {
      return Printable(text.substr(kLimitsMark.size()));
    }
  }
  return {};
}
namespace {

// What the script left in its working folder, and how to get it.
void PrintFiles(const Json& output, const std::string& job) {
  if (Number(output, "files") > 0) {
    const auto get = "ath cp " + ShellQuote(job + ":" + Text(output, "largest")) + " .";
    std::fprintf(stderr, "  outputs  %s, %s   %s\n",
                 Counted(static_cast<uint64_t>(Number(output, "files")), "file").c_str(),
                 HumanBytes(static_cast<uint64_t>(Number(output, "bytes"))).c_str(), get.c_str());
  }
  for (const auto& line : LeftOutLines(output.value("left_out", Json::object()))) {
    std::fprintf(stderr, "  left out  %s\n", line.c_str());
  }
}

}  // namespace

void PrintEnding(const Json& record, const Terminal& terminal, bool quiet) {
  if (quiet) return;
  auto state = Text(record, "state");
  std::string mark = state == "Completed" ? (terminal.ascii ? "ok" : "✔")
                     : state == "Failed"  ? (terminal.ascii ? "x" : "✘")
                                          : (terminal.ascii ? "-" : "■");
  int64_t held = 0;
  int64_t setup = 0;
  for (const auto& attempt : record.value("attempts", Json::array())) {
    held += attempt.value("held_ms", int64_t{0});
    setup += attempt.value("setup_ms", int64_t{0});
  }
  std::string line = mark + " " + state;
  if (!Text(record, "started").empty()) line += " after " + Took(record);
  auto err = terminal;
  err.color = terminal.color && terminal.err_tty;
  std::fprintf(stderr, "  %s", Paint(err, InkOf(state), line).c_str());
  const auto outputs = record.value("outputs", Json::array());
  for (const auto& output : outputs) {
    if (Text(output, "name") == Output::kFiles) continue;
    std::fprintf(stderr, "   %s %s", Text(output, "name").c_str(),
                 HumanBytes(output.value("bytes", uint64_t{0})).c_str());
  }
  std::fputs("\n", stderr);
  for (const auto& output : outputs) {
    if (Text(output, "name") == Output::kFiles) PrintFiles(output, Text(record, "name"));
  }
  if (setup > 5'000 && setup > held / 2) {
    std::fprintf(stderr, "  preparing took %s; the next job with the same requirements skips it\n",
                 HumanDuration(Millis(setup)).c_str());
  }
  for (const auto& metric : UnmatchedMetrics(record)) {
    std::fprintf(stderr, "  metric %s\n", metric.c_str());
  }
  for (const auto& unseen : record.value("rules_without_metric", Json::array())) {
    std::fprintf(stderr, "  %s\n", unseen.get<std::string>().c_str());
  }
  if (record.contains("unread")) {
    std::fprintf(stderr, "  %s; %s\n", Printable(Text(record["unread"], "text")).c_str(),
                 Printable(Text(record["unread"], "hint")).c_str());
  }
  auto name = Text(record, "name");
  const auto& attempts = record.value("attempts", Json::array());
  const bool lost_child = !attempts.empty() && attempts.back().contains("exit") &&
                          attempts.back()["exit"].contains("oom_child");
  if ((state != "Completed" || lost_child) && record.contains("cause")) {
    std::fprintf(stderr, "  %s\n", Text(record["cause"], "text").c_str());
    std::fprintf(stderr, "  ath why %s\n", ShellQuote(name).c_str());
  } else {
    const std::string word = ShellQuote(name);
    PrintHint("ath show " + word + " · ath logs " + word +
                  (record.contains("metrics") ? " · ath metrics " + word : ""),
              quiet);
  }
}

int ExitStatusOf(const Json& record) {
  const auto& attempts = record.contains("attempts") ? record["attempts"] : Json::array();
  auto kind = record.contains("cause") ? Text(record["cause"], "kind") : "";
  if (!attempts.empty() && attempts.back().contains("exit")) {
    const auto& exit = attempts.back()["exit"];
    int signal = exit.value("signal", 0);
    int code = exit.value("code", 1);
    if (signal != 0) return 128 + signal;
    if (code >= 0) return code;
  }
  if (Text(record, "state") == "Completed") return 0;
  const auto* row = FindCause(kind);
  if (row && row->exit_status != 0) return row->exit_status;
  return Text(record, "state") == "Stopped" ? 12 : 15;
}

}  // namespace athanor
