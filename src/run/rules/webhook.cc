#include "run/rules/webhook.h"

#include <sys/timerfd.h>

#include <deque>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/exec/mutex.h"
#include "base/io/fd.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "net/address.h"
#include "net/http/http_client.h"

namespace athanor {
namespace {

constexpr int kTries = 3;
constexpr uint64_t kMostAnswer = 64u << 10;
constexpr size_t kMostWaiting = 100;

// Readable once `limit` is over: ends a call that is fed byte by byte, too.
UniqueFd Alarm(Millis limit) {
  UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  itimerspec spec{};
  spec.it_value.tv_sec = limit.count() / 1000;
  spec.it_value.tv_nsec = limit.count() % 1000 * 1'000'000;
  if (timer) ::timerfd_settime(timer.get(), 0, &spec, nullptr);
  return timer;
}

Status Deliver(const WebhookTarget& target, const std::string& body,
               const Webhooks::Options& options) {
  ATHANOR_TRY(auto endpoint, Endpoint::Parse(target.endpoint));
  HttpClientOptions client_options;
  client_options.connect_timeout = std::min(options.limit, Millis(5'000));
  client_options.read_timeout = options.limit;
  std::string refused;
  if (!options.allow_private) {
    client_options.allow = [&refused](const sockaddr& address) {
      if (IsPublicAddress(address)) return true;
      refused = AddressText(address);
      return false;
    };
  }
  HttpClient client(endpoint, client_options);
  const auto alarm = Alarm(options.limit);
  HttpCall call;
  call.method = "POST";
  call.target = target.target;
  call.headers.Add("Content-Type", "application/json");
  call.headers.Add("User-Agent", "athanor");
  call.headers.Add("Connection", "close");
  call.body = body;
  call.max_body = kMostAnswer;
  call.cancel_fd = alarm.get();
  auto reply = client.Do(call);
  if (!reply) {
    Error error = reply.error();
    if (error.code == ErrorCode::kCancelled)
      error.why = "it took longer than " + HumanDuration(options.limit);
    if (error.code == ErrorCode::kDenied) {
      error.why = refused + " is not a public address";
      error.hint = "webhooks: {allow_private: true}    in the server's settings.yaml";
    }
    return Fail(std::move(error));
  }
  if (reply->ok()) return Ok();
  // A mistake of the caller stays one; a redirect could lead anywhere and is not followed.
  const bool again = reply->status >= 500 || reply->status == 429;
  return Fail(again ? ErrorCode::kUnavailable : ErrorCode::kInvalid,
              endpoint.ToString() + " answered " + std::to_string(reply->status));
}

}  // namespace

Result<WebhookTarget> ParseWebhook(const std::string& url) {
  constexpr std::string_view kScheme = "https://";
  if (!StartsWith(url, kScheme)) {
    return Fail(ErrorCode::kInvalid, "a webhook's address begins with https://");
  }
  const size_t end = std::min(url.find_first_of("/?#", kScheme.size()), url.size());
  WebhookTarget target;
  target.endpoint = url.substr(0, end);
  target.target = url.substr(end, url.find('#') - end);
  if (!StartsWith(target.target, "/")) target.target.insert(0, "/");
  // Also refuses user names: '@' is in no host.
  ATHANOR_TRY([[maybe_unused]] auto endpoint, Endpoint::Parse(target.endpoint));
  for (const char c : target.endpoint + target.target) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) {
      return Fail(ErrorCode::kInvalid, "a webhook's address has blanks in it");
    }
  }
  return target;
}

std::string WebhookBody(const AttemptPlan& plan, const Firing& firing) {
  std::string text = plan.spec.name + ": " + firing.rule + " fired on " + firing.metric;
  if (firing.step) text += " at step " + std::to_string(*firing.step);
  text += ": " + firing.value;
  if (!firing.threshold.empty()) text += " (expected " + firing.threshold + ")";
  Json body = {{"text", text},
               {"job", plan.job.ToString()},
               {"name", plan.spec.name},
               {"attempt", plan.number},
               {"rule", firing.rule},
               {"kind", firing.kind},
               {"metric", firing.metric},
               {"value", firing.value},
               {"threshold", firing.threshold},
               {"advice", firing.advice},
               {"at", Rfc3339(firing.at)}};
  if (firing.step) body["step"] = *firing.step;
  return DumpJson(body);
}

struct Webhooks::State {
  explicit State(Options the_options) : options(std::move(the_options)) {}
  const Options options;

  Mutex mutex;
  CondVar changed;
  std::deque<std::pair<std::string, std::string>> waiting GUARDED_BY(mutex);
  bool busy GUARDED_BY(mutex) = false;
  bool over GUARDED_BY(mutex) = false;
  bool started GUARDED_BY(mutex) = false;

  // False: everything is over.
  bool Pause(Millis span) {
    MutexLock lock(mutex);
    return !changed.wait_for(lock, span, [this]() REQUIRES(mutex) { return over; });
  }

  void Fail(const std::string& host, const Error& error) {
    MutexLock lock(mutex);
    if (!over && options.failed) options.failed(host, error);
  }

  void DeliverOne(const std::string& url, const std::string& body) {
    auto target = ParseWebhook(url);
    if (!target) return Fail("webhook", target.error());
    Status status;
    Millis pause = options.pause;
    for (int tries = 0; tries < kTries; ++tries, pause *= 4) {
      if (tries > 0 && !Pause(pause)) return;
      status = Deliver(*target, body, options);
      if (status.ok()) return;
      const auto code = status.error().code;
      if (code == ErrorCode::kDenied || code == ErrorCode::kInvalid) break;
    }
    Fail(target->endpoint, status.error());
  }

  void Run() {
    MutexLock lock(mutex);
    for (;;) {
      changed.wait(lock, [this]() REQUIRES(mutex) { return over || !waiting.empty(); });
      if (over) return;
      auto [url, body] = std::move(waiting.front());
      waiting.pop_front();
      busy = true;
      lock.unlock();
      DeliverOne(url, body);
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
};

Webhooks::Webhooks(Options options) : state_(std::make_shared<State>(std::move(options))) {}

Webhooks::~Webhooks() {
  MutexLock lock(state_->mutex);
  state_->over = true;
  state_->changed.notify_all();
}

void Webhooks::Post(std::string url, std::string body) {
  MutexLock lock(state_->mutex);
  // A rule that fires without end must not fill the memory.
  if (state_->waiting.size() >= kMostWaiting) return;
  state_->waiting.emplace_back(std::move(url), std::move(body));
  if (!std::exchange(state_->started, true)) {
    std::thread([state = state_] { state->Run(); }).detach();
  }
  state_->changed.notify_all();
}

bool Webhooks::Finish(Millis patience) {
  MutexLock lock(state_->mutex);
  return state_->changed.wait_for(lock, patience, [this]() REQUIRES(state_->mutex) {
    return !state_->busy && state_->waiting.empty();
  });
}

}  // namespace athanor
