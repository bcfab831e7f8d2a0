#include "run/isolate/route_socket.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

namespace athanor {
namespace {

constexpr size_t kLargestAnswer = 256 << 10;

template <class T>
void Put(std::string& message, const T& value) {
  message.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void Align(std::string& message) { message.resize(NLMSG_ALIGN(message.size())); }

void PutAttribute(std::string& message, uint16_t type, std::string_view value) {
  Put(message, rtattr{static_cast<uint16_t>(RTA_LENGTH(value.size())), type});
  message.append(value);
  Align(message);
}

void PutText(std::string& message, uint16_t type, const std::string& text) {
  PutAttribute(message, type, std::string_view(text.c_str(), text.size() + 1));
}

void PutNumber(std::string& message, uint16_t type, uint32_t number) {
  PutAttribute(message, type, std::string_view(reinterpret_cast<const char*>(&number), 4));
}

// The head is completed when it is sent.
template <class Body>
std::string Message(uint16_t type, uint16_t flags, const Body& body) {
  std::string message;
  Put(message, nlmsghdr{0, type, static_cast<uint16_t>(NLM_F_REQUEST | flags), 0, 0});
  Put(message, body);
  Align(message);
  return message;
}

ifinfomsg LinkBody(int index, bool up = false) {
  ifinfomsg body{};
  body.ifi_family = AF_UNSPEC;
  body.ifi_index = index;
  if (up) body.ifi_flags = body.ifi_change = IFF_UP;
  return body;
}

std::map<uint16_t, std::string> AttributesIn(std::string_view bytes) {
  std::map<uint16_t, std::string> found;
  while (bytes.size() >= sizeof(rtattr)) {
    rtattr head;
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.rta_len < sizeof head || head.rta_len > bytes.size()) break;
    found[head.rta_type & NLA_TYPE_MASK] = bytes.substr(sizeof head, head.rta_len - sizeof head);
    bytes.remove_prefix(std::min<size_t>(RTA_ALIGN(head.rta_len), bytes.size()));
  }
  return found;
}

template <class Body>
std::map<uint16_t, std::string> Read(const std::string& message, Body* body) {
  if (message.size() < sizeof *body) return {};
  std::memcpy(body, message.data(), sizeof *body);
  return AttributesIn(std::string_view(message).substr(
      std::min<size_t>(NLMSG_ALIGN(sizeof *body), message.size())));
}

std::string TextOf(const std::map<uint16_t, std::string>& attributes, uint16_t type) {
  const auto at = attributes.find(type);
  return at == attributes.end() ? std::string() : std::string(at->second.c_str());
}

uint32_t NumberOf(const std::map<uint16_t, std::string>& attributes, uint16_t type) {
  uint32_t number = 0;
  const auto at = attributes.find(type);
  if (at != attributes.end() && at->second.size() >= 4) std::memcpy(&number, at->second.data(), 4);
  return number;
}

tl::unexpected<Error> Refused(const std::string& what, int error) {
  const auto code =
      error == EPERM || error == EACCES ? ErrorCode::kDenied : ErrorCode::kUnavailable;
  return Fail(code, what + ": " + std::strerror(error));
}

}  // namespace

Result<RouteSocket> RouteSocket::Open() {
  UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!fd) return Refused("open a netlink socket", errno);
  return RouteSocket(std::move(fd));
}

Status RouteSocket::Ask(std::string message, const std::string& what) {
  nlmsghdr head;
  std::memcpy(&head, message.data(), sizeof head);
  head.nlmsg_len = static_cast<uint32_t>(message.size());
  head.nlmsg_flags |= NLM_F_ACK;
  head.nlmsg_seq = ++sequence_;
  std::memcpy(message.data(), &head, sizeof head);
  if (::send(fd_.get(), message.data(), message.size(), 0) < 0) return Refused(what, errno);
  std::string answer(kLargestAnswer, '\0');
  for (;;) {
    const auto size = ::recv(fd_.get(), answer.data(), answer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Refused(what, errno);
    nlmsghdr got;
    nlmsgerr result;
    if (static_cast<size_t>(size) < sizeof got + sizeof result) continue;
    std::memcpy(&got, answer.data(), sizeof got);
    if (got.nlmsg_seq != sequence_ || got.nlmsg_type != NLMSG_ERROR) continue;
    std::memcpy(&result, answer.data() + NLMSG_HDRLEN, sizeof result);
    if (result.error == 0) return Ok();
    return Refused(what, -result.error);
  }
}

Result<std::vector<std::string>> RouteSocket::Dump(uint16_t type) {
  rtgenmsg body{};
  body.rtgen_family = type == RTM_GETLINK ? AF_UNSPEC : AF_INET;
  auto message = Message(type, NLM_F_DUMP, body);
  nlmsghdr head;
  std::memcpy(&head, message.data(), sizeof head);
  head.nlmsg_len = static_cast<uint32_t>(message.size());
  head.nlmsg_seq = ++sequence_;
  std::memcpy(message.data(), &head, sizeof head);
  if (::send(fd_.get(), message.data(), message.size(), 0) < 0) {
    return Refused("list network devices", errno);
  }
  std::vector<std::string> found;
  std::string answer(kLargestAnswer, '\0');
  for (;;) {
    const auto size = ::recv(fd_.get(), answer.data(), answer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Refused("list network devices", errno);
    std::string_view rest(answer.data(), static_cast<size_t>(size));
    while (rest.size() >= sizeof head) {
      std::memcpy(&head, rest.data(), sizeof head);
      if (head.nlmsg_len < sizeof head || head.nlmsg_len > rest.size()) break;
      if (head.nlmsg_type == NLMSG_DONE) return found;
      if (head.nlmsg_type == NLMSG_ERROR) return Refused("list network devices", EIO);
      found.emplace_back(rest.substr(NLMSG_HDRLEN, head.nlmsg_len - NLMSG_HDRLEN));
      rest.remove_prefix(std::min<size_t>(NLMSG_ALIGN(head.nlmsg_len), rest.size()));
    }
  }
}

Result<std::vector<RouteSocket::Link>> RouteSocket::Links() {
  ATHANOR_TRY(const auto messages, Dump(RTM_GETLINK));
  std::vector<Link> links;
  for (const auto& message : messages) {
    ifinfomsg body{};
    const auto attributes = Read(message, &body);
    Link link;
    link.index = body.ifi_index;
    link.master = static_cast<int>(NumberOf(attributes, IFLA_MASTER));
    link.name = TextOf(attributes, IFLA_IFNAME);
    link.alias = TextOf(attributes, IFLA_IFALIAS);
    if (const auto info = attributes.find(IFLA_LINKINFO); info != attributes.end()) {
      link.kind = TextOf(AttributesIn(info->second), IFLA_INFO_KIND);
    }
    links.push_back(std::move(link));
  }
  return links;
}

Result<std::vector<RouteSocket::Net>> RouteSocket::Addresses() {
  ATHANOR_TRY(const auto messages, Dump(RTM_GETADDR));
  std::vector<Net> nets;
  for (const auto& message : messages) {
    ifaddrmsg body{};
    const auto attributes = Read(message, &body);
    nets.push_back({ntohl(NumberOf(attributes, IFA_LOCAL)), body.ifa_prefixlen,
                    static_cast<int>(body.ifa_index)});
  }
  return nets;
}

Result<std::vector<RouteSocket::Net>> RouteSocket::Routes() {
  ATHANOR_TRY(const auto messages, Dump(RTM_GETROUTE));
  std::vector<Net> nets;
  for (const auto& message : messages) {
    rtmsg body{};
    const auto attributes = Read(message, &body);
    nets.push_back({ntohl(NumberOf(attributes, RTA_DST)), body.rtm_dst_len,
                    static_cast<int>(NumberOf(attributes, RTA_OIF))});
  }
  return nets;
}

Status RouteSocket::AddBridge(const std::string& name) {
  auto message = Message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, LinkBody(0));
  PutText(message, IFLA_IFNAME, name);
  std::string info;
  PutText(info, IFLA_INFO_KIND, "bridge");
  PutAttribute(message, IFLA_LINKINFO, info);
  return Ask(std::move(message), "make the bridge " + name);
}

Status RouteSocket::AddPair(const std::string& name, int bridge, const std::string& peer,
                            int peer_fd) {
  auto message = Message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, LinkBody(0));
  PutText(message, IFLA_IFNAME, name);
  PutNumber(message, IFLA_MASTER, static_cast<uint32_t>(bridge));
  std::string other;
  Put(other, LinkBody(0));
  PutText(other, IFLA_IFNAME, peer);
  PutNumber(other, IFLA_NET_NS_FD, static_cast<uint32_t>(peer_fd));
  std::string data;
  PutAttribute(data, VETH_INFO_PEER, other);
  std::string info;
  PutText(info, IFLA_INFO_KIND, "veth");
  PutAttribute(info, IFLA_INFO_DATA, data);
  PutAttribute(message, IFLA_LINKINFO, info);
  return Ask(std::move(message), "make the link " + name);
}

Status RouteSocket::SetAlias(int link, const std::string& alias) {
  auto message = Message(RTM_SETLINK, 0, LinkBody(link));
  PutText(message, IFLA_IFALIAS, alias);
  return Ask(std::move(message), "name a link");
}

Status RouteSocket::SetUp(int link) {
  return Ask(Message(RTM_SETLINK, 0, LinkBody(link, true)), "switch a link on");
}

Status RouteSocket::AddAddress(int link, uint32_t address, uint8_t prefix) {
  ifaddrmsg body{};
  body.ifa_family = AF_INET;
  body.ifa_prefixlen = prefix;
  body.ifa_index = static_cast<uint32_t>(link);
  auto message = Message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, body);
  PutNumber(message, IFA_LOCAL, htonl(address));
  PutNumber(message, IFA_ADDRESS, htonl(address));
  return Ask(std::move(message), "give a link its address");
}

Status RouteSocket::AddRoute(uint32_t address, uint32_t gateway) {
  rtmsg body{};
  body.rtm_family = AF_INET;
  body.rtm_dst_len = 32;
  body.rtm_table = RT_TABLE_MAIN;
  body.rtm_protocol = RTPROT_STATIC;
  body.rtm_scope = RT_SCOPE_UNIVERSE;
  body.rtm_type = RTN_UNICAST;
  auto message = Message(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, body);
  PutNumber(message, RTA_DST, htonl(address));
  PutNumber(message, RTA_GATEWAY, htonl(gateway));
  return Ask(std::move(message), "add a route");
}

Status RouteSocket::Remove(int link) {
  auto removed = Ask(Message(RTM_DELLINK, 0, LinkBody(link)), "remove a link");
  if (removed.ok()) return removed;
  // Links also go by themselves, with the namespace at their other end.
  ATHANOR_TRY(const auto links, Links());
  for (const auto& one : links) {
    if (one.index == link) return removed;
  }
  return Ok();
}

}  // namespace athanor
