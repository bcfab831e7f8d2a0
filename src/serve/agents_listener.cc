#include "serve/agents_listener.h"

#include <utility>

#include "base/text/text.h"
#include "serve/kept_port.h"

namespace athanor {
namespace {

constexpr char kPortFile[] = "agents.port";

HttpServerOptions ForElsewhere(HttpServerOptions options) {
  options.for_elsewhere = true;
  options.unix_places = 0;
  return options;
}

bool HasPort(const std::string& address) {
  const auto end = StartsWith(address, "[") ? address.find(']') : 0;
  return address.find(':', end) != std::string::npos;
}

}  // namespace

AgentsListener::AgentsListener(const Parts& parts)
    : door_(parts.context, parts.router, parts.aws),
      http_(
          parts.loop,
          [this](Request request, Responder responder) {
            door_.Handle(std::move(request), std::move(responder));
          },
          ForElsewhere(parts.places)) {
  http_.SetBodyPolicy([this](const Request& head) { return door_.PolicyFor(head); });
}

Result<std::unique_ptr<AgentsListener>> AgentsListener::Open(const Parts& parts) {
  ATHANOR_TRY(const auto own, OpenOwnCertificate(parts.home.server()));
  std::unique_ptr<AgentsListener> made(new AgentsListener(parts));
  ATHANOR_TRY(const uint16_t port, made->Listen(parts, own));
  const auto& address = parts.settings.address;
  made->url_ = "https://" + address + (HasPort(address) ? "" : ":" + std::to_string(port));
  const auto& host = parts.settings.host;
  made->listens_ =
      (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + std::to_string(port);
  made->pin_ = own.pin;
  parts.context.info.agents_url = made->url_;
  return made;
}

Result<uint16_t> AgentsListener::Listen(const Parts& parts, const OwnCertificate& own) {
  const auto& settings = parts.settings;
  const auto listen = [&](uint16_t port) {
    return http_.ListenTls(settings.host, port, own.cert_file, own.key_file);
  };
  Error error;
  if (settings.port == 0) {
    const auto kept = ListenAtOwnPort(parts.home.root, kPortFile, 0, listen);
    if (kept && kept->instead_of) {
      notice_ = "another program uses port " + std::to_string(*kept->instead_of) +
                ": agents of other machines are heard at port " + std::to_string(kept->port) +
                " from now on, and those that run already are not, until it is free again and "
                "agents.listen names it";
    }
    if (kept) return kept->port;
    error = kept.error();
  } else {
    auto port = listen(settings.port);
    if (port) return port;
    error = std::move(port).error();
  }
  const bool taken = error.code == ErrorCode::kConflict;
  error.why = taken ? "another program uses port " + std::to_string(settings.port)
                    : error.what + (error.why.empty() ? "" : ": " + error.why);
  error.what = "agents of other machines cannot be heard at " + settings.host +
               (settings.port == 0 ? "" : " port " + std::to_string(settings.port));
  error.hint = "name another port or address as agents.listen in " + parts.home.settings() +
               (taken ? "; port 0 takes a free one" : "") +
               "\nip -brief address        shows the addresses of this machine";
  error.id = taken ? "ATH-V0003" : "ATH-V0010";
  return Fail(std::move(error));
}

Status LeadToServer(const std::string& socket, const AgentsListener* listener, AttemptPlan& plan) {
  if (plan.placement.backend == Placement().backend) {
    plan.server = "unix:" + socket;
    return Ok();
  }
  if (listener == nullptr) {
    return Fail(
        Error{ErrorCode::kInvalid, "agents on other machines cannot reach this server",
              "add to settings.yaml: agents: {listen: \"0.0.0.0:7071\", address: \"10.0.0.5\"}\n"
              "ath server stop\n"
              "ath retry " +
                  ShellQuote(plan.spec.name)}
            .Why("the back end '" + plan.placement.backend +
                 "' starts them there, and settings.yaml has no agents.listen"));
  }
  plan.server = listener->url();
  plan.pin = listener->pin();
  return Ok();
}

}  // namespace athanor
