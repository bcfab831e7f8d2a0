// The route table is data: doors list their routes, and tests read the list back (the permission
// matrix is made from it). A pattern is literal segments and captures, "/api/v1/jobs/{id}"; the
// last may be "{rest...}", which takes one or more segments. If several patterns match, the one
// that is literal earlier wins. GET serves HEAD if no HEAD route is listed.
//
// Path rules, the same for every route: the path is split at raw slashes, then each segment is
// decoded exactly once. Refused with 400: malformed escapes, empty segments (so also a slash at the
// end), "." and ".." in any spelling (also next to an escaped slash), NUL and other control
// characters, backslash, a raw ';', and bytes that are not UTF-8. An escaped slash stays inside its
// segment. Two exceptions: a route of files takes ';' and backslash in its "{rest...}", and a GET
// whose only fault is doubled slashes is redirected to the path without them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/http/http_server.h"

namespace athanor {

class Captures {
 public:
  void Add(std::string name, std::string value) {
    values_.emplace_back(std::move(name), std::move(value));
  }
  // Empty if the pattern has no such capture; a capture itself is never empty.
  const std::string& operator[](std::string_view name) const;
  size_t size() const { return values_.size(); }

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

struct Route {
  using Handler = std::function<void(Request request, Captures captures, Responder responder)>;
  std::string method;   // "GET"
  std::string pattern;  // "/api/v1/jobs/{id}"
  std::string name;     // "jobs.show": unique; used in permission tables
  Handler handler;
  bool file_names = false;  // "{rest...}" names a file: ';' and '\\' are ordinary characters
};

class Router {
 public:
  Router();
  ~Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;

  // kInvalid: malformed pattern. kConflict: same name, or same method and shape.
  Status Add(Route route);
  std::vector<const Route*> routes() const;  // in the order they were added

  struct Match {
    const Route* route = nullptr;  // null: see status
    Captures captures;
    int status = 200;   // 400, 404 or 405
    std::string allow;  // with 405: "GET, HEAD, POST"
    std::string what;   // with 400: which rule was broken
  };
  Match Find(std::string_view method, std::string_view raw_path) const;

  // Calls the handler, or answers 400, 404 or 405 as JSON.
  void Dispatch(Request request, Responder responder) const;
  // What Dispatch answers for a Match without a route.
  static Response Refusal(const Match& match);

 private:
  struct Entry;
  std::vector<std::unique_ptr<Entry>> entries_;
  // Those without a capture, by pattern: a request for one is found without looking at the rest.
  std::unordered_map<std::string_view, std::vector<const Entry*>> literal_;
};

// The path rules alone: "/a%20b/c" -> {"a b", "c"}; "/" -> {}.
Result<std::vector<std::string>> SplitPath(std::string_view raw_path);

}  // namespace athanor
