// HTTP load over a Unix socket or TCP: `clients` kept-alive connections, each with one request in
// flight, POST every line of a file (target, tab, body) once, in order; the file is gone
// through `repeat` times. A line may go on (tab, target, tab, body …): the same client sends these
// one after the other, and 32 zeros in them stand for the run_id in the first one's reply. One thread
// and raw epoll, so that it takes as little as it can from the server it shares the machine with.
// Prints one JSON object: rates and latencies of the requests.
//
//   load SOCKET|ADDRESS:PORT CLIENTS FILE REPEAT
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "load: %s\n", what.c_str());
  std::exit(1);
}

constexpr std::string_view kRun = "00000000000000000000000000000000";

using Steps = std::vector<std::string>;  // the requests of one line

struct Client {
  int fd = -1;
  std::string in;
  Clock::time_point sent;
  const Steps* steps = nullptr;
  size_t step = 0;  // the one that is on its way
  std::string run;
};

int Connected(int fd, const void* address, socklen_t size, const std::string& name) {
  if (fd < 0 || ::connect(fd, static_cast<const sockaddr*>(address), size) != 0) {
    Die("connect " + name + ": " + std::strerror(errno));
  }
  return fd;
}

int ConnectTcp(const std::string& name, size_t colon) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(name.substr(colon + 1))));
  if (::inet_pton(AF_INET, name.substr(0, colon).c_str(), &address.sin_addr) != 1) {
    Die("not an address: " + name);
  }
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return Connected(fd, &address, sizeof address, name);
}

int Connect(const std::string& path) {
  if (const auto colon = path.find(':'); path[0] != '/' && colon != std::string::npos) {
    return ConnectTcp(path, colon);
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) Die("the socket's path is too long");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return Connected(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), &address, sizeof address, path);
}

std::string Request(std::string_view target, std::string_view body) {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

std::vector<Steps> ReadLines(const char* path) {
  std::ifstream file(path);
  if (!file) Die(std::string("cannot read ") + path);
  std::vector<Steps> lines;
  for (std::string line; std::getline(file, line);) {
    Steps steps;
    for (std::string_view rest = line; !rest.empty();) {
      const auto tab = rest.find('\t');
      if (tab == std::string_view::npos) Die("a target without a body");
      const auto end = std::min(rest.find('\t', tab + 1), rest.size());
      steps.push_back(Request(rest.substr(0, tab), rest.substr(tab + 1, end - tab - 1)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (steps.empty()) Die("an empty line");
    lines.push_back(std::move(steps));
  }
  if (lines.empty()) Die("no requests");
  return lines;
}

// The server reads while we write, so a blocking write waits only for that.
void Write(Client& client, std::string_view request) {
  client.sent = Clock::now();
  while (!request.empty()) {
    ssize_t n = ::send(client.fd, request.data(), request.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) Die(std::string("send: ") + std::strerror(errno));
    request.remove_prefix(static_cast<size_t>(n));
  }
}

void Send(Client& client) {
  const std::string& request = (*client.steps)[client.step];
  auto at = client.run.empty() ? std::string::npos : request.find(kRun);
  if (at == std::string::npos) return Write(client, request);
  std::string filled = request;
  for (; at != std::string::npos; at = filled.find(kRun, at + kRun.size())) {
    filled.replace(at, kRun.size(), client.run);
  }
  Write(client, filled);
}

// The first reply of a line names the run that the others are about.
void KeepRun(Client& client) {
  constexpr std::string_view kField = "\"run_id\"";
  client.run.clear();
  if (client.steps->size() == 1) return;
  auto at = client.in.find(kField);
  if (at != std::string::npos) at = client.in.find('"', at + kField.size());
  if (at == std::string::npos || client.in.size() < at + 2 + kRun.size() ||
      client.in[at + 1 + kRun.size()] != '"') {
    Die("no run_id of 32 digits in the first reply: " + client.in.substr(0, 2000));
  }
  client.run = client.in.substr(at + 1, kRun.size());
}

// True when a whole reply has been read; it must be the last thing in the buffer.
bool Take(Client& client) {
  auto end = client.in.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  auto field = client.in.find("Content-Length: ");
  if (field == std::string::npos) field = client.in.find("content-length: ");
  if (field == std::string::npos || field > end) Die("a reply without Content-Length");
  size_t length = std::strtoull(client.in.c_str() + field + 16, nullptr, 10);
  if (client.in.size() < end + 4 + length) return false;
  if (client.in.compare(0, 10, "HTTP/1.1 2") != 0) Die("refused: " + client.in.substr(0, 2000));
  if (client.in.size() != end + 4 + length) Die("more than one reply to one request");
  if (client.step == 0) KeepRun(client);
  client.in.clear();
  return true;
}

void Receive(Client& client) {
  char buffer[16384];
  ssize_t n = ::recv(client.fd, buffer, sizeof buffer, 0);
  if (n < 0 && errno == EINTR) return;
  if (n <= 0) Die(n == 0 ? "the server closed a connection" : std::strerror(errno));
  client.in.append(buffer, static_cast<size_t>(n));
}

double Seconds(Clock::duration span) { return std::chrono::duration<double>(span).count(); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) Die("usage: load SOCKET|ADDRESS:PORT CLIENTS FILE REPEAT");
  const auto lines = ReadLines(argv[3]);
  const size_t repeat = std::strtoull(argv[4], nullptr, 10);
  const size_t times = lines.size() * repeat;
  size_t total = 0;
  for (const auto& steps : lines) total += steps.size() * repeat;
  std::vector<Client> clients(std::min<size_t>(std::strtoull(argv[2], nullptr, 10), times));
  if (clients.empty()) Die("nothing to do");
  int poll = ::epoll_create1(EPOLL_CLOEXEC);
  for (size_t i = 0; i < clients.size(); ++i) {
    clients[i].fd = Connect(argv[1]);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    if (::epoll_ctl(poll, EPOLL_CTL_ADD, clients[i].fd, &event) != 0) Die("epoll_ctl");
  }
  std::vector<double> took;
  took.reserve(total);
  std::vector<Clock::time_point> quarter;
  size_t next = 0;
  const auto begin = [&](Client& client) {
    client.steps = &lines[next++ % lines.size()];
    client.step = 0;
    Send(client);
  };
  const auto start = Clock::now();
  for (auto& client : clients) begin(client);
  std::vector<epoll_event> events(clients.size());
  while (took.size() < total) {
    int ready = ::epoll_wait(poll, events.data(), static_cast<int>(events.size()), 60'000);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) Die("no reply for a minute");
    for (int i = 0; i < ready; ++i) {
      auto& client = clients[events[i].data.u64];
      Receive(client);
      if (!Take(client)) continue;
      took.push_back(Seconds(Clock::now() - client.sent));
      if (took.size() * 4 >= total * (quarter.size() + 1)) quarter.push_back(Clock::now());
      if (++client.step < client.steps->size()) {
        Send(client);
      } else if (next < times) {
        begin(client);
      } else {
        ::close(client.fd);  // a server may close one that is idle, which is no failure
      }
    }
  }
  const double seconds = Seconds(Clock::now() - start);
  const double first = Seconds(quarter.front() - start);
  const double last = quarter.size() < 4 ? first : Seconds(quarter[3] - quarter[2]);
  std::sort(took.begin(), took.end());
  auto at = [&](double share) {
    return 1e3 * took[std::min(took.size() - 1, static_cast<size_t>(share * double(took.size())))];
  };
  std::printf("{\"requests\":%zu,\"seconds\":%.6f,\"rate\":%.1f,\"rate_first_quarter\":%.1f,"
              "\"rate_last_quarter\":%.1f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f}\n",
              total, seconds, double(total) / seconds, double(total) / 4 / first,
              double(total) / 4 / last, at(0.5), at(0.99), 1e3 * took.back());
}
