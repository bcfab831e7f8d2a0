// The values that HTTP server and client share: headers, request, response, and the peer. Plain
// values that can be copied.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/io/fd.h"
#include "base/result.h"

namespace athanor {

// In order of arrival; names compare without case.
class Headers {
 public:
  using Field = std::pair<std::string, std::string>;

  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  void Add(std::string name, std::string value);
  void Set(std::string_view name, std::string value);  // replaces all of that name
  // The first of that name; empty if there is none (use Has to tell the difference).
  std::string_view Get(std::string_view name) const;
  bool Has(std::string_view name) const;
  size_t Count(std::string_view name) const;
  // Whether a comma-separated list header holds `token`, in any of its fields.
  bool HasToken(std::string_view name, std::string_view token) const;
  const std::vector<Field>& fields() const { return fields_; }

 private:
  std::vector<Field> fields_;
};

// Who is connected, according to the kernel, never according to a header.
struct Peer {
  bool unix_socket = false;
  bool loopback = false;  // both ends on 127.0.0.0/8 or ::1
  bool tls = false;
  // It came in at a server for other machines (HttpServerOptions::for_elsewhere): `loopback` and
  // `uid` are not set, whoever it is.
  bool elsewhere = false;
  std::optional<uint32_t> uid;    // unix: SO_PEERCRED; loopback TCP: owner of the client's socket
  std::optional<pid_t> pid;       // unix sockets only
  std::optional<uint64_t> inode;  // loopback TCP only: of the client's socket
  // Whether it counts as its uid, as the server's PeerJudge decided; empty: it was not asked.
  std::optional<bool> acts_for_uid;
  std::string address;  // "unix", "127.0.0.1:4711", "[::1]:4711"
};

// Receives the body of a request as it arrives, on the server's thread. It gives its result, or
// what is wrong with the bytes, to the handler later.
class BodySink {
 public:
  virtual ~BodySink() = default;
  virtual void Take(std::string_view bytes) = 0;
};

struct Request {
  std::string method;    // as sent: "GET"
  std::string target;    // as sent: "/a%20b?x=1"
  std::string raw_path;  // as sent, without query: "/a%20b"
  // Decoded once, "/a b"; empty if the escapes are malformed. For display only, not for routing: an
  // escaped slash looks like a separator here. See net/http/router.h.
  std::string path;
  std::string raw_query;                                   // "x=1"
  std::vector<std::pair<std::string, std::string>> query;  // decoded, '+' is a space
  Headers headers;
  std::string body;  // when kept in memory
  // If spooled: the descriptor that the BodyPolicy gave, positioned at the end of the body. Shared
  // so that a Request can be captured by a std::function.
  std::shared_ptr<UniqueFd> body_file;
  std::shared_ptr<BodySink> body_sink;  // that the BodyPolicy gave; `body` is empty then
  uint64_t body_size = 0;
  int minor_version = 1;  // HTTP/1.x
  Peer peer;

  // The first query value of that name.
  std::optional<std::string> Query(std::string_view name) const;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;

  static Response Json(int status, std::string body);
  static Response Text(int status, std::string body);
};

// {"error":{"code","what","why","hint","id"}} with the status of the code in the error table, or
// with `status`. JSON, nosniff; nothing is reflected without escaping.
Response ErrorResponse(const Error& error);
Response ErrorResponse(int status, const Error& error);

std::string_view StatusText(int status);
bool SameName(std::string_view a, std::string_view b);  // header names, ASCII only

// "a=1&b=%20" -> pairs; nullopt if an escape is malformed.
std::optional<std::vector<std::pair<std::string, std::string>>> ParseQuery(std::string_view text);

}  // namespace athanor
