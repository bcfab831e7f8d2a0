#include "cli/client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
#include "base/exec/mutex.h"
#include "base/exec/process.h"
#include "base/io/files.h"
#include "base/text/text.h"
#include "cli/service.h"
#include "link/server_record.h"
#include "net/unix_address.h"

namespace athanor {
namespace {

constexpr int kStartWaitMs = 10'000;
constexpr Millis kSayAfter{2'000};

bool Answers(const Endpoint& endpoint) {
  HttpClientOptions options;
  options.connect_timeout = Millis(1'000);
  options.read_timeout = Millis(5'000);
  HttpClient probe(endpoint, options);
  HttpCall call;
  call.target = "/healthz";
  auto reply = probe.Do(call);
  return reply && reply->ok();
}

Status StartServer(const Home& home, const Endpoint& endpoint) {
  ATHANOR_CHECK_OK(MakeDirs(home.root));
  if (StartService(home)) {
    for (int waited = 0; waited < kStartWaitMs; waited += 10) {
      if (Exists(home.socket()) && Answers(endpoint)) return Ok();
      ::usleep(10'000);
    }
  }
  UniqueFd log(::open(home.server_log().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) return FailErrno("open " + home.server_log(), errno);
  const auto logged = ::lseek(log.get(), 0, SEEK_END);  // by servers before this one
  ATHANOR_TRY(auto pid, SpawnDetached({ProgramPath(), "serve", "--auto"}, log.get()));
  for (int waited = 0; waited < kStartWaitMs; waited += 2) {
    if (Exists(home.socket()) && Answers(endpoint)) return Ok();
    // It may have lost the race for the lock to another one, which will answer.
    if (ReapIfEnded(pid) && waited > 2'000) break;
    ::usleep(2'000);
  }
  // What it ended with, if it said so: hints follow below, in lines of their own.
  const auto text = ReadFile(home.server_log()).value_or("");
  const auto begin = std::min(text.size(), static_cast<size_t>(std::max<off_t>(logged, 0)));
  const auto lines = Split(Trim(std::string_view(text).substr(begin)), '\n');
  const auto said = std::find_if(lines.rbegin(), lines.rend(),
                                 [](const std::string& line) { return StartsWith(line, "error"); });
  std::string why = said != lines.rend() ? *said : lines.empty() ? "" : lines.back();
  if (why.empty()) why = "see " + home.server_log();
  return Fail(Error{ErrorCode::kUnavailable, "no server answers and none could be started",
                    "ath serve        (shows what is wrong)\nath check"}
                  .Why(std::move(why))
                  .Id("ATH-C0001"));
}

Error ErrorFrom(const HttpReply& reply) {
  auto body = ParseJson(reply.body);
  if (!body || !body->is_object() || !body->contains("error")) {
    return Error{ErrorCode::kBug, "the server answered " + std::to_string(reply.status)};
  }
  const auto& fields = (*body)["error"];
  auto text = [&](const char* key) {
    return fields.contains(key) && fields[key].is_string() ? fields[key].get<std::string>()
                                                           : std::string();
  };
  return Error{ErrorCodeNamed(text("code")), text("what"), text("hint")}
      .Why(text("why"))
      .Id(text("id"))
      .Where(text("where"));
}

}  // namespace

Result<Client> Client::Connect(const Home& home, bool start) {
  const char* url = std::getenv("ATHANOR_URL");
  const char* token = std::getenv("ATHANOR_TOKEN");
  if (url && *url) {
    ATHANOR_TRY(auto endpoint, Endpoint::Parse(url));
    Client client(HttpClient(endpoint), home);
    client.token_ = token ? token : "";
    client.remote_ = true;
    return client;
  }
  return ConnectHere(home, start);
}

Result<Client> Client::ConnectHere(const Home& home, bool start) {
  // A token for somewhere else would only be refused here.
  const char* url = std::getenv("ATHANOR_URL");
  const char* token = url && *url ? nullptr : std::getenv("ATHANOR_TOKEN");
  Endpoint endpoint;
  endpoint.unix_path = home.socket();
  Client client(HttpClient(endpoint), home);
  client.token_ = token ? token : "";
  if (!start) return client;
  const bool up = client.Reachable();
  // The home of the user's server is out of sight in a job; one of the job's own may be made.
  if (!up && std::getenv("ATHANOR_JOB_ID") && ::access(home.root.c_str(), W_OK) != 0 &&
      errno != ENOENT) {
    return Fail(Error{ErrorCode::kDenied,
                      "what runs inside a job may not act for the user it runs as",
                      "give the job ATHANOR_URL and, as a secret, ATHANOR_TOKEN: "
                      "ath token create --scope submit"}
                    .Id("ATH-A0010"));
  }
  if (!up) ATHANOR_CHECK_OK(client.StartHere());
  return client;
}

Status Client::StartHere(bool quiet) {
  ATHANOR_CHECK_OK(StartServer(home_, client_.endpoint()));
  started_ = true;
  if (quiet) return Ok();
  std::fprintf(stderr, "  started a server for %s (ath server status)\n", home_.root.c_str());
  if (const auto record = ReadServerRecord(home_.root); record && !record->moved.empty()) {
    std::fprintf(stderr, "  %s\n  run eval \"$(ath env)\" again in shells that use it\n",
                 record->moved.c_str());
  }
  return Ok();
}

bool Client::Reachable() const {
  if (remote_) return Answers(client_.endpoint());
  // Connecting is the test: a socket without a server refuses at once.
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = UnixAddress::For(home_.socket());
  return probe && address && ::connect(probe.get(), address->get(), address->size) == 0;
}

Result<HttpReply> Client::Do(HttpCall call) {
  if (!token_.empty()) call.headers.Add("Authorization", "Bearer " + token_);
  auto reply = client_.Do(call);
  if (!reply) {
    Error error = reply.error();
    if (error.hint.empty()) {
      error.hint = remote_ ? "is ATHANOR_URL right? unset it to use this machine's own server"
                           : "ath server status";
    }
    if (error.id.empty()) error.id = "ATH-C0002";
    return Fail(std::move(error));
  }
  if (!reply->ok()) return Fail(ErrorFrom(*reply));
  return reply;
}

std::optional<Error> Client::FullDisk() const {
  HttpClientOptions options;
  options.connect_timeout = options.read_timeout = Millis(5'000);
  HttpClient other(client_.endpoint(), options);
  HttpCall call;
  call.target = "/api/v1/server";
  if (!token_.empty()) call.headers.Add("Authorization", "Bearer " + token_);
  const auto reply = other.Do(call);
  const auto body = reply && reply->ok() ? ParseJson(reply->body) : Result<Json>(Json());
  if (!body || !body->is_object() || !body->contains("waits_for_disk")) return std::nullopt;
  const auto& disk = (*body)["waits_for_disk"];
  const auto path = disk.value("path", "");
  return Error{ErrorCode::kTimeout,
               "the server's disk is full: this waits, and is done once there is room",
               "df -h " + ShellQuote(path) + "\ndu -xsh " + ShellQuote(path) +
                   "/*    shows what is large\nath gc    removes what no job needs"}
      .Why(HumanBytes(disk.value("free_bytes", uint64_t{0})) + " free on the disk of " + path +
           ", " + HumanBytes(disk.value("wanted_bytes", uint64_t{0})) + " needed")
      .Id("ATH-C0060");
}

namespace {

void Tell(const Error& error) {
  std::fprintf(stderr, "  %s\n  %s\n", error.what.c_str(), error.why.c_str());
  for (const auto& line : Split(error.hint, '\n')) std::fprintf(stderr, "  %s\n", line.c_str());
}

// Tells a person why nothing happens, should `work` take longer than a moment.
template <class Work, class Say>
auto SayWhileWaiting(const Work& work, const Say& say) {
  Mutex mutex;
  CondVar wake;
  bool done = false;
  std::thread teller([&] {
    MutexLock lock(mutex);
    while (!wake.wait_for(lock, kSayAfter, [&] { return done; })) {
      lock.unlock();
      const bool said = say();
      lock.lock();
      if (said) return;
    }
  });
  auto result = work();
  {
    const MutexLock lock(mutex);
    done = true;
  }
  wake.notify_all();
  teller.join();
  return result;
}

}  // namespace

Result<Json> Client::Send(const std::string& method, const std::string& target, std::string body) {
  HttpCall call;
  call.method = method;
  call.target = target;
  call.body = std::move(body);
  call.idempotent = method == "GET" || method == "PUT" || method == "DELETE";
  if (!call.body.empty()) call.headers.Add("Content-Type", "application/json");
  if (method == "GET") {
    ATHANOR_TRY(auto reply, Do(std::move(call)));
    return ParseJson(reply.body);
  }
  std::optional<Error> full;  // of the teller until it has ended
  auto reply = SayWhileWaiting([&] { return Do(call); },
                               [&] {
                                 full = FullDisk();
                                 if (full) Tell(*full);
                                 return full.has_value();
                               });
  if (!reply && reply.error().code == ErrorCode::kTimeout && full) return Fail(std::move(*full));
  if (!reply) return Fail(std::move(reply).error());
  return ParseJson(reply->body);
}

Result<Json> Client::Get(const std::string& target) { return Send("GET", target, ""); }

Result<Json> Client::Post(const std::string& target, const std::string& body) {
  return Send("POST", target, body);
}

Result<std::string> Client::GetText(const std::string& target) {
  HttpCall call;
  call.target = target;
  call.idempotent = true;
  ATHANOR_TRY(auto reply, Do(std::move(call)));
  return std::move(reply.body);
}

}  // namespace athanor
