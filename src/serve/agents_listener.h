// Where agents of other machines reach this server: TLS with the server's own certificate, which
// they know by its pin, and behind it nothing but door/agents/agents_door.h. Certificate and port
// stay the same over restarts: agents that run now, and scripts behind them, go on.
//
// Threads: the loop's.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "door/agents/agents_door.h"
#include "link/plan.h"
#include "net/certificate.h"
#include "net/http/http_server.h"
#include "serve/home.h"
#include "serve/settings.h"

namespace athanor {

class AgentsListener {
 public:
  struct Parts {
    Loop& loop;
    DoorContext& context;  // its info.agents_url is set
    const Router& router;
    AwsFront& aws;
    HttpServerOptions places;
    const Home& home;
    const AgentsSettings& settings;
  };
  // kConflict: another program uses the port that the settings ask for. kInvalid: not an address of
  // this machine. kCorrupt: the key is damaged.
  static Result<std::unique_ptr<AgentsListener>> Open(const Parts& parts);
  void Stop() { http_.Stop(); }

  const std::string& url() const { return url_; }  // "https://10.0.0.5:7071"
  const std::string& pin() const { return pin_; }
  const std::string& listens() const { return listens_; }  // "0.0.0.0:7071", "[::]:7071"
  // That its port had to change, for the owner; empty: it did not.
  const std::string& notice() const { return notice_; }

 private:
  explicit AgentsListener(const Parts& parts);
  Result<uint16_t> Listen(const Parts& parts, const OwnCertificate& own);

  AgentsDoor door_;
  HttpServer http_;
  std::string url_;
  std::string listens_;
  std::string pin_;
  std::string notice_;
};

// Tells an agent where its server is: the socket of a back end on this machine, otherwise the
// listener. kInvalid: there is none (null).
Status LeadToServer(const std::string& socket, const AgentsListener* listener, AttemptPlan& plan);

}  // namespace athanor
