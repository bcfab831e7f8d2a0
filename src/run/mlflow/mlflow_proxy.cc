#include "run/mlflow/mlflow_proxy.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <vector>

#include "base/exec/mutex.h"
#include "base/exec/thread_pool.h"
#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/io/unnamed_file.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "link/kept_call.h"
#include "link/server_line.h"
#include "net/aws/sigv4.h"
#include "net/http/http_client.h"
#include "net/http/http_server.h"
#include "run/mlflow/call_kinds.h"
#include "run/mlflow/call_spool.h"
#include "run/mlflow/logged_points.h"
#include "run/mlflow/metric_join.h"

namespace athanor {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr size_t kAskers = 4;
constexpr uint64_t kMostCall = 32ull << 20;  // as the server takes
constexpr uint64_t kMostFile = 64ull << 30;
constexpr uint64_t kMostInMemory = 1 << 20;     // of a file's body
constexpr size_t kMostOld = 64;                 // answers that are remembered
constexpr size_t kMostOldBytes = 256 << 10;     // of one
constexpr int kMostTries = 5;                   // of a call at which the server fails
constexpr uint64_t kMostShownAgain = 32 << 20;  // bytes of calls
constexpr Millis kPortTick{500};
constexpr char kNoRoom[] = "TEMPORARILY_UNAVAILABLE";
constexpr const char* kSent[] = {"Content-Type", "Range", "If-Range", "If-None-Match",
                                 "User-Agent"};
constexpr const char* kReturned[] = {
    "Content-Type", "Content-Disposition", "Content-Range",          "Accept-Ranges",
    "ETag",         "Last-Modified",       "X-Content-Type-Options", "Content-Security-Policy"};

// Of "Bearer T", or of "Basic" with T as the password, as MLflow's clients send it.
std::string TokenIn(std::string_view authorization) {
  if (StartsWith(authorization, "Bearer ")) return std::string(authorization.substr(7));
  if (!StartsWith(authorization, "Basic ")) return "";
  const auto pair = FromBase64(authorization.substr(6));
  const auto colon = pair ? pair->find(':') : std::string::npos;
  return colon == std::string::npos ? "" : pair->substr(colon + 1);
}

Response Refusal(int status, std::string_view code, std::string_view message) {
  return Response::Json(status, MlflowErrorBody(code, message));
}

// The server is there, but cannot accept it now.
bool IsAway(const Result<HttpReply>& reply) {
  if (!reply) return true;
  return reply->status == 408 || reply->status == 429 ||
         (reply->status >= 502 && reply->status <= 504);
}

Response ToResponse(const HttpReply& reply) {
  Response response;
  response.status = reply.status;
  for (const char* name : kReturned) {
    if (reply.headers.Has(name)) response.headers.Add(name, std::string(reply.headers.Get(name)));
  }
  return response;
}

// The words of the API stay, whatever the secrets are.
void ScrubTarget(const ExitGate& gate, Request& request) {
  const size_t words = WordsOf(request.raw_path);
  std::string rest = request.target.substr(words);
  if (!gate.ScrubText(rest)) return;
  request.target = request.target.substr(0, words) + rest;
  request.raw_path = request.target.substr(0, request.target.find('?'));
}

}  // namespace

struct MlflowProxy::Impl {
  struct Waiter {
    Responder responder;
    std::string answer;  // when the server's does not come
  };

  Impl(Options o, ServerLine l, std::unique_ptr<CallSpool> s)
      : options(std::move(o)),
        line(std::move(l)),
        spool(std::move(s)),
        http(loop, [this](Request request, Responder responder) {
          Handle(std::move(request), responder);
        }) {
    http.SetBodyPolicy([this](const Request& head) { return PolicyFor(head); });
  }

  Status Listen();
  void ListenAgain();
  BodyPolicy PolicyFor(const Request& head) const;
  bool MayPass(const Request& head) const;
  void Handle(Request request, const Responder& responder);
  Status ScrubFile(Request& request) const;
  Response ToPage() const;
  void Keep(const Request& request, const Responder& responder, bool tell);
  void ShowPoints(const KeptCall& call) const;
  void Expire(uint64_t seq);
  void AnswerWaiters() REQUIRES(mutex);
  std::vector<Waiter> TakeWaiters(uint64_t last) REQUIRES(mutex);

  void Deliver();
  MetricJoin JoinFrom(const KeptCall& first);
  Result<HttpReply> DeliverOne(HttpClient& client, const KeptCall& call, const KeptPlace& place);
  void Settle(const KeptCall& call, uint64_t last, const HttpReply& reply);
  void WaitForWork();
  void Pause(Millis pause);

  void Ask(Request request, const Responder& responder, uint64_t after, SteadyTime until);
  bool WaitFor(uint64_t seq, SteadyTime until);
  HttpCall CallFor(const Request& request) const;
  std::optional<Response> OldAnswer(const Request& request);
  void Remember(const Request& request, const Response& response);
  std::unique_ptr<HttpClient> TakeClient();

  void Count(CauseKind kind, const std::string& what, const std::string& hint);
  void Stop();

  Options options;
  ServerLine line;
  std::unique_ptr<CallSpool> spool;
  uint16_t port = 0;
  UniqueFd cancel{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  Loop loop;
  HttpServer http;
  std::unique_ptr<ThreadPool> askers;  // made by the first request; belongs to the loop

  Mutex mutex;
  CondVar wake;
  std::map<uint64_t, Waiter> waiters GUARDED_BY(mutex);
  std::vector<std::unique_ptr<HttpClient>> clients GUARDED_BY(mutex);  // idle
  std::map<std::string, Response> old_answers GUARDED_BY(mutex);       // by target
  bool away GUARDED_BY(mutex) = false;
  bool stopping GUARDED_BY(mutex) = false;
  bool given_up GUARDED_BY(mutex) = false;
  uint64_t dropped GUARDED_BY(mutex) = 0;
  uint64_t refused GUARDED_BY(mutex) = 0;

  std::thread loop_thread;
  std::thread deliverer;
};

Status MlflowProxy::Impl::Listen() {
  const auto path = JoinPath(options.dir, "port");
  const auto kept = ReadFile(path, 16);
  port = kept ? static_cast<uint16_t>(std::strtoul(kept->c_str(), nullptr, 10)) : 0;
  if (port != 0) {
    // The script knows only this one.
    if (!http.ListenTcp("127.0.0.1", port)) ListenAgain();
    return Ok();
  }
  ATHANOR_TRY(port, http.ListenTcp("127.0.0.1", 0));
  return ReplaceFile(path, std::to_string(port));
}

void MlflowProxy::Impl::ListenAgain() {
  loop.After(kPortTick, [this] {
    if (!http.ListenTcp("127.0.0.1", port)) ListenAgain();
  });
}

bool MlflowProxy::Impl::MayPass(const Request& head) const {
  const auto kind = KindOf(head.method, head.raw_path, "");
  if (kind == CallKind::kProbe || kind == CallKind::kPage) return true;
  return !options.token.empty() &&
         SameSecretText(TokenIn(head.headers.Get("Authorization")), options.token);
}

BodyPolicy MlflowProxy::Impl::PolicyFor(const Request& head) const {
  BodyPolicy policy;
  policy.max_bytes = kMostCall;
  if (!MayPass(head)) {
    policy.refuse = Refusal(403, "PERMISSION_DENIED",
                            "this address is for one job: send the token that its "
                            "MLFLOW_TRACKING_TOKEN holds");
    return policy;
  }
  if (!SendsFile(head.method, head.raw_path)) return policy;
  policy.max_bytes = kMostFile;
  const auto length = head.headers.Get("Content-Length");
  const bool small =
      !length.empty() && std::strtoull(std::string(length).c_str(), nullptr, 10) <= kMostInMemory;
  if (small) return policy;
  auto file = UnnamedFile(options.dir);
  if (file) {
    policy.spool = std::move(*file);
  } else {
    policy.refuse = Refusal(507, kNoRoom, file.error().what);
  }
  return policy;
}

// The body of an upload. What is in memory may be text or not; a file is copied if it is.
Status MlflowProxy::Impl::ScrubFile(Request& request) const {
  if (!request.body_file) {
    if (IsTextBegin(request.body)) (void)options.gate.ScrubText(request.body);
    return Ok();
  }
  ATHANOR_TRY(auto made, UnnamedFile(options.dir));
  auto clean = std::make_shared<UniqueFd>(std::move(made));
  ATHANOR_TRY(const bool text, options.gate.CopyText(request.body_file->get(), clean->get()));
  if (!text) return Ok();
  request.body_size = static_cast<uint64_t>(::lseek(clean->get(), 0, SEEK_END));
  request.body_file = std::move(clean);
  return Ok();
}

void MlflowProxy::Impl::Handle(Request request, const Responder& responder) {
  ScrubTarget(options.gate, request);
  // Files are looked at by those who pass them on.
  if (!SendsFile(request.method, request.raw_path)) (void)options.gate.ScrubJson(request.body);
  const auto kind = KindOf(request.method, request.raw_path, request.body);
  switch (kind) {
    case CallKind::kRefused:
      return responder.Send(Refusal(404, "ENDPOINT_NOT_FOUND", "this is not a call of MLflow's"));
    case CallKind::kPage:
      return responder.Send(ToPage());
    case CallKind::kLog:
    case CallKind::kTell:
      return Keep(request, responder, kind == CallKind::kTell);
    case CallKind::kProbe:
    case CallKind::kAsk:
      break;
  }
  if (!askers) askers = std::make_unique<ThreadPool>(kAskers);
  const auto until = std::chrono::steady_clock::now() + options.ask_patience;
  const uint64_t after = kind == CallKind::kProbe ? 0 : spool->last();
  const bool taken = askers->Submit([this, request = std::move(request), responder, after, until] {
    Ask(request, responder, after, until);
  });
  if (!taken) responder.Send(Refusal(503, "TEMPORARILY_UNAVAILABLE", "the agent is stopping"));
}

// The browser keeps what follows the '#' of a link, "/experiments/4/runs/RUN".
Response MlflowProxy::Impl::ToPage() const {
  if (options.page.empty()) {
    return Refusal(404, "ENDPOINT_NOT_FOUND", "the server of this job has no page: `ath ui`");
  }
  Response response;
  response.status = 302;
  response.headers.Set("Location", options.page + "/");
  response.headers.Set("Cache-Control", "no-store");
  return response;
}

void MlflowProxy::Impl::ShowPoints(const KeptCall& call) const {
  if (!options.on_points) return;
  const auto points = LoggedPoints(call, spool->channel(), options.run);
  if (!points.items.empty()) options.on_points(points);
}

void MlflowProxy::Impl::Keep(const Request& request, const Responder& responder, bool tell) {
  std::string answer = AnswerForKept(request.raw_path, request.body);
  // With the lock, so that no answer can come before its waiter.
  MutexLock lock(mutex);
  const auto kept = spool->Append(request.method, request.target, request.body);
  if (kept && tell && !away) {
    waiters.emplace(*kept, Waiter{responder, std::move(answer)});
    wake.notify_all();
    lock.unlock();
    loop.After(options.tell_patience, [this, seq = *kept] { Expire(seq); });
    return ShowPoints({*kept, request.method, request.target, request.body});
  }
  wake.notify_all();
  lock.unlock();
  // Before the answer: when the script goes on, rules have seen what it logged.
  if (kept) ShowPoints({*kept, request.method, request.target, request.body});
  responder.Send(Response::Json(200, std::move(answer)));
  if (!kept) {
    Count(CauseKind::kMlflowDropped, "could not be kept and are lost: " + kept.error().what,
          "df -h " + ShellQuote(options.dir));
  }
}

// The server is slow or gone: nothing waits for it until it has answered again.
void MlflowProxy::Impl::Expire(uint64_t seq) {
  const MutexLock lock(mutex);
  if (!waiters.contains(seq)) return;
  away = true;
  AnswerWaiters();
}

void MlflowProxy::Impl::AnswerWaiters() {
  for (auto& [seq, waiter] : waiters) {
    waiter.responder.Send(Response::Json(200, std::move(waiter.answer)));
  }
  waiters.clear();
}

std::vector<MlflowProxy::Impl::Waiter> MlflowProxy::Impl::TakeWaiters(uint64_t last) {
  std::vector<Waiter> taken;
  while (!waiters.empty() && waiters.begin()->first <= last) {
    taken.push_back(std::move(waiters.begin()->second));
    waiters.erase(waiters.begin());
  }
  return taken;
}

void MlflowProxy::Impl::WaitForWork() {
  MutexLock lock(mutex);
  wake.wait(lock, [this]() REQUIRES(mutex) {
    return stopping || given_up || spool->last() > spool->done();
  });
}

void MlflowProxy::Impl::Pause(Millis pause) {
  MutexLock lock(mutex);
  away = true;
  AnswerWaiters();
  lock.unlock();
  spool->Sync();
  lock.lock();
  wake.wait_for(lock, pause, [this]() REQUIRES(mutex) { return stopping || given_up; });
}

// The calls from `first` on that can be delivered as one.
MetricJoin MlflowProxy::Impl::JoinFrom(const KeptCall& first) {
  MetricJoin join;
  if (first.seq >= spool->last() || !join.Add(first)) return join;
  for (auto next = spool->Next(); next && join.Add(*next);) next = spool->Next();
  return join;
}

Result<HttpReply> MlflowProxy::Impl::DeliverOne(HttpClient& client, const KeptCall& call,
                                                const KeptPlace& place) {
  HttpCall http_call;
  http_call.method = call.method;
  http_call.target = call.target;
  line.Sign(http_call);
  http_call.headers.Add("Content-Type", "application/json");
  http_call.headers.Add(kPlaceHeader, FormatPlace(place));
  http_call.body = call.body;
  http_call.idempotent = true;
  http_call.cancel_fd = cancel.get();
  return client.Do(http_call);
}

void MlflowProxy::Impl::Deliver() {
  HttpClient client = line.Client();
  LinePauses pauses(options.stranger_pause);
  int failures = 0;
  int tries = 0;       // of this call, at a server that answers
  uint64_t alone = 0;  // up to this one, each call is delivered separately
  for (;;) {
    WaitForWork();
    {
      const MutexLock lock(mutex);
      if (stopping || given_up) return;
    }
    const auto call = spool->First();
    if (!call) {
      // What was kept is damaged: there is nothing left to deliver.
      spool->Done(spool->last());
      continue;
    }
    const MetricJoin join = call->seq > alone ? JoinFrom(*call) : MetricJoin();
    const bool joined = join.calls() > 1;
    KeptPlace place{spool->channel(), call->seq, {}};
    if (joined) place.ends = join.ends();
    const auto reply = DeliverOne(client, joined ? join.Joined() : *call, place);
    if (!reply && IsStranger(reply.error())) {
      pauses.Tell(options.log, reply.error());
      Pause(pauses.After(reply.error()));
      continue;
    }
    if (IsAway(reply) || (reply->status >= 500 && ++tries < kMostTries)) {
      if (failures++ == 0) {
        options.log.Log(LogLevel::kWarning, "MLflow call not taken",
                        {{"why", reply ? std::to_string(reply->status) : reply.error().what}});
      }
      Pause(Millis(std::min(2'000, 50 << std::min(failures, 6))));
      continue;
    }
    failures = tries = 0;
    pauses.Answered();
    if (joined && !reply->ok()) {
      // One of them is at fault: the others must not fail with it.
      alone = join.last();
      continue;
    }
    Settle(*call, joined ? join.last() : call->seq, *reply);
  }
}

void MlflowProxy::Impl::Settle(const KeptCall& call, uint64_t last, const HttpReply& reply) {
  spool->Done(last);
  MutexLock lock(mutex);
  away = false;
  const auto told = TakeWaiters(last);
  wake.notify_all();
  lock.unlock();
  for (const auto& waiter : told) {
    auto response = ToResponse(reply);
    response.body = reply.body;
    waiter.responder.Send(std::move(response));
  }
  if (reply.ok() || !told.empty()) return;
  Count(CauseKind::kMlflowRefused,
        "were refused by the server, the last one, " + BaseName(call.target) + ", with " +
            Printable(reply.body.substr(0, 300)),
        "see what the script logs with MLflow");
}

// The number is reported when it has doubled: a storm must not become a storm of notes.
void MlflowProxy::Impl::Count(CauseKind kind, const std::string& what, const std::string& hint) {
  uint64_t now = 0;
  {
    const MutexLock lock(mutex);
    now = kind == CauseKind::kMlflowDropped ? ++dropped : ++refused;
  }
  if ((now & (now - 1)) != 0) return;
  options.note(
      {kind, fmt::format("{} MLflow {} {}", now, now == 1 ? "call" : "calls", what), hint, ""});
}

bool MlflowProxy::Impl::WaitFor(uint64_t seq, SteadyTime until) {
  MutexLock lock(mutex);
  wake.wait_until(lock, until,
                  [&]() REQUIRES(mutex) { return stopping || given_up || spool->done() >= seq; });
  return spool->done() >= seq;
}

HttpCall MlflowProxy::Impl::CallFor(const Request& request) const {
  HttpCall call;
  call.method = request.method;
  call.target = request.target;
  line.Sign(call);
  for (const char* name : kSent) {
    if (request.headers.Has(name)) call.headers.Add(name, std::string(request.headers.Get(name)));
  }
  call.cancel_fd = cancel.get();
  if (request.body_file) {
    call.body_fd = request.body_file->get();
    call.body_length = request.body_size;
  } else {
    call.body = request.body;
  }
  return call;
}

std::unique_ptr<HttpClient> MlflowProxy::Impl::TakeClient() {
  const MutexLock lock(mutex);
  if (clients.empty()) return std::make_unique<HttpClient>(line.Client());
  auto client = std::move(clients.back());
  clients.pop_back();
  return client;
}

// What the server answered to the same request before; none if that is not good enough.
std::optional<Response> MlflowProxy::Impl::OldAnswer(const Request& request) {
  const MutexLock lock(mutex);
  const auto at = old_answers.find(request.target);
  return at == old_answers.end() ? std::nullopt : std::optional(at->second);
}

void MlflowProxy::Impl::Remember(const Request& request, const Response& response) {
  if (!MayBeOld(request.method, request.raw_path) || response.status != 200) return;
  if (response.body.size() > kMostOldBytes) return;
  const MutexLock lock(mutex);
  if (old_answers.size() >= kMostOld && !old_answers.contains(request.target)) {
    old_answers.erase(old_answers.begin());
  }
  old_answers[request.target] = response;
}

void MlflowProxy::Impl::Ask(Request request, const Responder& responder, uint64_t after,
                            SteadyTime until) {
  if (SendsFile(request.method, request.raw_path)) {
    if (auto scrubbed = ScrubFile(request); !scrubbed) {
      return responder.Send(Refusal(507, kNoRoom, scrubbed.error().what));
    }
  }
  auto old = MayBeOld(request.method, request.raw_path) ? OldAnswer(request) : std::nullopt;
  if (old) until = std::min(until, std::chrono::steady_clock::now() + options.tell_patience);
  HttpCall call = CallFor(request);
  UniqueFd file;
  if (AnswersFile(request.method, request.raw_path)) {
    auto made = UnnamedFile(options.dir);
    if (!made) return responder.Send(Refusal(507, kNoRoom, made.error().what));
    file = std::move(*made);
    call.body_to_fd = file.get();
  }
  bool ready = WaitFor(after, until);
  auto client = TakeClient();
  for (int failures = 0; ready; ++failures) {
    const auto reply = client->Do(call);
    if (!IsAway(reply)) {
      auto response = ToResponse(*reply);
      const auto length = file && reply->ok() ? ::lseek(file.get(), 0, SEEK_END) : 0;
      if (length > 0) {
        responder.SendFile(std::move(response), std::move(file), 0, static_cast<uint64_t>(length));
      } else {
        response.body = reply->body;
        Remember(request, response);
        responder.Send(std::move(response));
      }
      const MutexLock lock(mutex);
      clients.push_back(std::move(client));
      return;
    }
    // Deliver() asks again; this client is answered from what is known, or tries later.
    if (!reply && IsStranger(reply.error())) break;
    if (file) ready = ::ftruncate(file.get(), 0) == 0 && ::lseek(file.get(), 0, SEEK_SET) == 0;
    MutexLock lock(mutex);
    const auto pause = std::chrono::steady_clock::now() + Millis(20 << std::min(failures, 5));
    wake.wait_until(lock, std::min(pause, until),
                    [this]() REQUIRES(mutex) { return stopping || given_up; });
    ready = ready && !stopping && !given_up && std::chrono::steady_clock::now() < until;
  }
  if (old) return responder.Send(std::move(*old));
  responder.Send(Refusal(503, "TEMPORARILY_UNAVAILABLE",
                         "the Athanor server does not answer; what was logged is kept"));
}

void MlflowProxy::Impl::Stop() {
  {
    const MutexLock lock(mutex);
    stopping = true;
    AnswerWaiters();
    wake.notify_all();
  }
  const uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(cancel.get(), &one, sizeof one);
  if (deliverer.joinable()) deliverer.join();
  if (loop_thread.joinable()) {
    loop.Post([this] {
      http.Stop();
      loop.Stop();
    });
    loop_thread.join();
  }
  if (askers) askers->Stop();
  spool->Sync();
}

MlflowProxy::MlflowProxy(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

MlflowProxy::~MlflowProxy() { impl_->Stop(); }

Result<std::unique_ptr<MlflowProxy>> MlflowProxy::Start(Options options) {
  ATHANOR_TRY(auto line, ServerLine::To(options.server, options.pin, options.token));
  CallSpool::Limits limits;
  limits.all_bytes = options.most_kept;
  ATHANOR_TRY(auto spool, CallSpool::Open(options.dir, limits));
  auto impl = std::make_unique<Impl>(std::move(options), std::move(line), std::move(spool));
  impl->spool->Show(kMostShownAgain, [&](const KeptCall& call) { impl->ShowPoints(call); });
  ATHANOR_CHECK_OK(impl->Listen());
  Impl* raw = impl.get();
  impl->loop_thread = std::thread([raw] { raw->loop.Run(); });
  impl->deliverer = std::thread([raw] { raw->Deliver(); });
  return std::unique_ptr<MlflowProxy>(new MlflowProxy(std::move(impl)));
}

std::string MlflowProxy::url() const { return fmt::format("http://127.0.0.1:{}", impl_->port); }

bool MlflowProxy::Drain() {
  MutexLock lock(impl_->mutex);
  impl_->wake.wait(lock, [this]() REQUIRES(impl_->mutex) {
    return impl_->given_up || impl_->stopping || impl_->spool->done() >= impl_->spool->last();
  });
  return !impl_->given_up && !impl_->stopping;
}

void MlflowProxy::GiveUp() {
  const MutexLock lock(impl_->mutex);
  impl_->given_up = true;
  impl_->AnswerWaiters();
  impl_->wake.notify_all();
}

}  // namespace athanor
