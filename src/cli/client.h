// The CLI's connection to a server: ATHANOR_URL if set, else this user's own over
// its Unix socket. When nobody answers there, one is started, and that is said
// once. Errors of the server come back as Errors with their texts. A change that waits because
// the server's disk is full says so after a moment, once, on standard error.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "cli/home.h"
#include "net/http_client.h"

namespace athanor {

class Client {
 public:
  // `start` false: only look (for `ath server status`).
  static Result<Client> Connect(const Home& home, bool start = true);
  // This user's own, whatever ATHANOR_URL says.
  static Result<Client> ConnectHere(const Home& home, bool start = true);

  Result<Json> Get(const std::string& target);
  Result<Json> Post(const std::string& target, const std::string& body = "{}");
  Result<Json> Send(const std::string& method, const std::string& target, std::string body);
  // What the server's disk lacks, if that is what it waits for.
  std::optional<Error> FullDisk() const;
  Result<std::string> GetText(const std::string& target);
  // The raw call, with authorization added; a refusal becomes an Error.
  Result<HttpReply> Do(HttpCall call);

  // Starts this user's server where none answers; kUnavailable: it could not be started. Not where
  // ATHANOR_URL leads.
  Status StartHere(bool quiet = false);
  // Whether a server takes connections now.
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
