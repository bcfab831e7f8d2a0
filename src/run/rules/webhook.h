// Calls a URL of the user when a rule fires: POST of a JSON object over HTTPS. Nothing waits for
// it: deliveries are made one after the other on their own thread, with three tries each and pauses
// between them; `failed` is called for those that fail in the end.
//
// The user chooses the address and the machine may see more of the network than the user: only
// https, the name is looked up once and the connection goes to the address that was checked, which
// must be public unless `allow_private`; no redirect is followed; answer and time are limited.
//
// Threads: Post and Finish are safe from any thread; `failed` comes on the delivering one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/exec/clock.h"
#include "base/result.h"
#include "job/record.h"
#include "link/plan.h"

namespace athanor {

// "https://host[:port]/path?query", in its parts.
struct WebhookTarget {
  std::string endpoint;  // "https://host:port"
  std::string target;    // "/path?query"
};
// kInvalid for anything except https, and for user names in it.
Result<WebhookTarget> ParseWebhook(const std::string& url);

// What is sent: the job, what fired, and `text`, a sentence that chat services show.
std::string WebhookBody(const AttemptPlan& plan, const Firing& firing);

class Webhooks {
 public:
  struct Options {
    bool allow_private = false;
    Millis pause{1'000};   // before the second try; four times as long before the third
    Millis limit{15'000};  // of one try
    // Of the URL only the host: the rest may be a secret.
    std::function<void(const std::string& host, const Error& error)> failed;
  };
  explicit Webhooks(Options options);
  // Does not wait: deliveries in progress end with the process.
  ~Webhooks();
  Webhooks(const Webhooks&) = delete;
  Webhooks& operator=(const Webhooks&) = delete;

  void Post(std::string url, std::string body);
  // Waits until all are delivered or given up; false if `patience` ran out first.
  bool Finish(Millis patience);

 private:
  struct State;
  // Shared with the thread, which may outlive this object.
  std::shared_ptr<State> state_;
};

}  // namespace athanor
