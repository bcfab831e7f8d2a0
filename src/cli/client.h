// The CLI's connection to a server: ATHANOR_URL if set, otherwise this user's own over its Unix
// socket. If no server answers there, one is started, which is reported once. Errors of the server
// are returned as Errors with their texts. If a change waits because the server's disk is full,
// this is reported once, after a moment, on standard error.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "base/text/json.h"
#include "net/http/http_client.h"
#include "serve/home.h"

namespace athanor {

class Client {
 public:
  // `start` false: do not start one (for `ath server status`).
  static Result<Client> Connect(const Home& home, bool start = true);
  // This user's own, whatever ATHANOR_URL says.
  static Result<Client> ConnectHere(const Home& home, bool start = true);

  Result<Json> Get(const std::string& target);
  Result<Json> Post(const std::string& target, const std::string& body = "{}");
  Result<Json> Send(const std::string& method, const std::string& target, std::string body);
  // What is missing on the server's disk, if it waits for that.
  std::optional<Error> FullDisk() const;
  Result<std::string> GetText(const std::string& target);
  // The raw call, with authorization added; a refusal becomes an Error.
  Result<HttpReply> Do(HttpCall call);

  // Starts this user's server if none answers; kUnavailable: it could not be started. Not if
  // ATHANOR_URL is set.
  Status StartHere(bool quiet = false);
  // Whether a server accepts connections now.
  bool Reachable() const;
  const Home& home() const { return home_; }

  bool started() const { return started_; }
  bool remote() const { return remote_; }  // by ATHANOR_URL
  std::string address() const { return client_.endpoint().ToString(); }
  HttpClient& http() { return client_; }

 private:
  Client(HttpClient client, Home home) : client_(std::move(client)), home_(std::move(home)) {}
  HttpClient client_;
  Home home_;
  std::string token_;
  bool started_ = false;
  bool remote_ = false;
};

}  // namespace athanor
