#include "run/agent/host_network.h"

#include "net/http/http_client.h"
#include "run/contract/contract.h"
#include "run/isolate/links.h"

namespace athanor {

void HostNetwork::Join(AttemptPlan& plan, bool side_by_side, bool running) {
  attempt_ = plan.attempt;
  host_ = plan.host;
  const auto hosts = HostCount(plan);
  // Elsewhere, hosts have addresses of their own.
  if (!side_by_side) return;
  Result<std::vector<std::string>> addresses;
  if (running) {
    addresses = AddressesOfHosts(attempt_, hosts);
    if (!addresses) return;  // it has this machine's, or is over
  } else if (auto joined = JoinHosts(attempt_, host_, hosts)) {
    space_ = std::move(joined->space);
    addresses = std::move(joined->addresses);
    off_ =
        "internet: the hosts of this job have a network of their own, and reach only each other "
        "and this machine";
  } else {
    addresses = tl::unexpected(std::move(joined).error());
    off_ = "network namespace: " + addresses.error().what +
           "; several hosts share this machine's network";
  }
  const auto names = HostNames(plan);
  plan.peers.clear();
  for (uint32_t i = 0; i < hosts; ++i) {
    plan.peers.push_back({names[i], addresses ? (*addresses)[i] : "127.0.0.1"});
  }
  own_ = addresses.has_value();
}

Status HostNetwork::Forward(const std::vector<std::string>& urls, int64_t pid) {
  if (!own_) return Ok();
  UniqueFd running;
  if (pid != 0) {
    ATHANOR_TRY(running, NetworkOf(pid));
  }
  std::vector<uint16_t> ports;
  for (const auto& url : urls) {
    const auto endpoint = Endpoint::Parse(url);
    if (endpoint && endpoint->host == "127.0.0.1") ports.push_back(endpoint->port);
  }
  ATHANOR_TRY(forwarder_, Forwarder::Start(running ? running.get() : space_.get(), ports));
  return Ok();
}

Status HostNetwork::Leave() {
  forwarder_.reset();
  space_.reset();
  return own_ ? LeaveHosts(attempt_, host_) : Ok();
}

}  // namespace athanor
