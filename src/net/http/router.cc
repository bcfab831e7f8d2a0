#include "net/http/router.h"

#include <algorithm>

#include "base/text/text.h"

namespace athanor {
namespace {

// One segment of a pattern. A larger kind is less specific.
struct Part {
  enum class Kind { kLiteral, kCapture, kRest };
  Kind kind = Kind::kLiteral;
  std::string text;  // the literal, or the capture's name
};

Result<Part> ParsePart(const std::string& text, const std::string& pattern) {
  const auto bad = [&](const std::string& why) {
    return Fail(ErrorCode::kInvalid, "route pattern \"" + pattern + "\": " + why);
  };
  if (text.empty()) return bad("empty segment");
  if (text.front() != '{') {
    if (text.find_first_of("{}%;\\") != std::string::npos) return bad("odd character in " + text);
    return Part{Part::Kind::kLiteral, text};
  }
  if (text.back() != '}' || text.size() < 3) return bad("unfinished capture " + text);
  std::string name = text.substr(1, text.size() - 2);
  if (EndsWith(name, "...")) return Part{Part::Kind::kRest, name.substr(0, name.size() - 3)};
  return Part{Part::Kind::kCapture, std::move(name)};
}

Result<std::vector<Part>> ParsePattern(const std::string& pattern) {
  if (pattern.empty() || pattern.front() != '/') {
    return Fail(ErrorCode::kInvalid, "route pattern \"" + pattern + "\" does not start with /");
  }
  std::vector<Part> parts;
  if (pattern == "/") return parts;
  for (const auto& text : Split(std::string_view(pattern).substr(1), '/')) {
    if (!parts.empty() && parts.back().kind == Part::Kind::kRest) {
      return Fail(ErrorCode::kInvalid, "route pattern \"" + pattern + "\" goes on after ...");
    }
    ATHANOR_TRY(auto part, ParsePart(text, pattern));
    parts.push_back(std::move(part));
  }
  return parts;
}

bool Fits(const std::vector<Part>& parts, const std::vector<std::string>& segments) {
  const bool rest = !parts.empty() && parts.back().kind == Part::Kind::kRest;
  if (rest ? segments.size() < parts.size() : segments.size() != parts.size()) return false;
  // From the end: that is where routes differ.
  for (size_t i = parts.size(); i-- > 0;) {
    if (parts[i].kind == Part::Kind::kLiteral && parts[i].text != segments[i]) return false;
  }
  return true;
}

bool MoreSpecific(const std::vector<Part>& a, const std::vector<Part>& b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [](const Part& x, const Part& y) { return x.kind < y.kind; });
}

bool SameShape(const std::vector<Part>& a, const std::vector<Part>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Part& x, const Part& y) {
    return x.kind == y.kind && (x.kind != Part::Kind::kLiteral || x.text == y.text);
  });
}

Captures Capture(const std::vector<Part>& parts, const std::vector<std::string>& segments) {
  Captures captures;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind == Part::Kind::kCapture) captures.Add(parts[i].text, segments[i]);
    if (parts[i].kind != Part::Kind::kRest) continue;
    const std::vector<std::string> rest(segments.begin() + static_cast<ptrdiff_t>(i),
                                        segments.end());
    captures.Add(parts[i].text, Join(rest, "/"));
  }
  return captures;
}

std::string AllowText(std::vector<std::string> methods) {
  if (std::find(methods.begin(), methods.end(), "GET") != methods.end()) methods.push_back("HEAD");
  std::sort(methods.begin(), methods.end());
  methods.erase(std::unique(methods.begin(), methods.end()), methods.end());
  return Join(methods, ", ");
}

}  // namespace

namespace {

struct Names {
  std::vector<std::string> segments;
  size_t odd = SIZE_MAX;      // the first that is allowed only for files
  const char* why = nullptr;  // it is odd
};

Result<Names> SplitNames(std::string_view raw_path) {
  const auto bad = [](const char* why) { return Fail(ErrorCode::kInvalid, why); };
  if (raw_path.empty() || raw_path.front() != '/') return bad("the path does not start with /");
  Names names;
  if (raw_path == "/") return names;
  for (const auto& raw : Split(raw_path.substr(1), '/')) {
    const auto odd = [&names](const char* why) {
      if (names.why == nullptr) names.odd = names.segments.size();
      if (names.why == nullptr) names.why = why;
    };
    if (raw.find(';') != std::string::npos) odd("path parameters (;) are not used here");
    auto segment = UrlDecode(raw);
    if (!segment) return bad("the path has a malformed escape");
    if (!IsUtf8(*segment)) return bad("the path is not UTF-8");
    for (const char c : *segment) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
        return bad("the path has a control character or a backslash");
      }
      if (c == '\\') odd("the path has a control character or a backslash");
    }
    // An escaped slash is allowed inside a segment, but not as a way up.
    for (const auto& piece : Split(*segment, '/')) {
      if (piece.empty()) return bad("the path has an empty segment");
      // Other servers cut off what follows a ';': for them "..;" is a way up.
      const auto name = std::string_view(piece).substr(0, piece.find(';'));
      if (name == "." || name == "..") return bad("the path has a . or .. segment");
    }
    names.segments.push_back(std::move(*segment));
  }
  return names;
}

// "/a/b" for "//a///b".
std::string WithoutDoubledSlashes(std::string_view path) {
  std::string single;
  for (const char c : path) {
    if (c != '/' || single.empty() || single.back() != '/') single += c;
  }
  return single;
}

}  // namespace

Result<std::vector<std::string>> SplitPath(std::string_view raw_path) {
  ATHANOR_TRY(auto names, SplitNames(raw_path));
  if (names.why != nullptr) return Fail(ErrorCode::kInvalid, names.why);
  return std::move(names.segments);
}

const std::string& Captures::operator[](std::string_view name) const {
  static const std::string none;
  for (const auto& [key, value] : values_) {
    if (key == name) return value;
  }
  return none;
}

struct Router::Entry {
  Route route;
  std::vector<Part> parts;
};

Router::Router() = default;
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

Status Router::Add(Route route) {
  ATHANOR_TRY(auto parts, ParsePattern(route.pattern));
  for (const auto& entry : entries_) {
    if (entry->route.name == route.name) {
      return Fail(ErrorCode::kConflict, "two routes are named \"" + route.name + "\"");
    }
    if (entry->route.method == route.method && SameShape(entry->parts, parts)) {
      return Fail(ErrorCode::kConflict, "routes \"" + entry->route.name + "\" and \"" + route.name +
                                            "\" match the same requests");
    }
  }
  const bool literal = std::all_of(parts.begin(), parts.end(), [](const Part& part) {
    return part.kind == Part::Kind::kLiteral;
  });
  entries_.push_back(std::make_unique<Entry>(Entry{std::move(route), std::move(parts)}));
  const Entry* added = entries_.back().get();
  if (literal) literal_[added->route.pattern].push_back(added);
  return Ok();
}

std::vector<const Route*> Router::routes() const {
  std::vector<const Route*> list;
  list.reserve(entries_.size());
  for (const auto& entry : entries_) list.push_back(&entry->route);
  return list;
}

Router::Match Router::Find(std::string_view method, std::string_view raw_path) const {
  Match match;
  // For its method nothing is more specific, and a pattern follows the path rules.
  if (const auto at = literal_.find(raw_path); at != literal_.end()) {
    for (const Entry* entry : at->second) {
      if (entry->route.method != method) continue;
      match.route = &entry->route;
      return match;
    }
  }
  const auto names = SplitNames(raw_path);
  if (!names) {
    match.status = 400;
    match.what = names.error().what;
    return match;
  }
  const Entry* best = nullptr;
  std::vector<std::string> methods;
  for (const auto& entry : entries_) {
    if (!Fits(entry->parts, names->segments)) continue;
    if (names->why != nullptr &&
        (!entry->route.file_names || names->odd + 1 < entry->parts.size())) {
      continue;
    }
    methods.push_back(entry->route.method);
    const bool exact = entry->route.method == method;
    if (!exact && !(method == "HEAD" && entry->route.method == "GET")) continue;
    const bool beats_get_for_head =
        exact && best && best->route.method != method && SameShape(entry->parts, best->parts);
    if (!best || beats_get_for_head || MoreSpecific(entry->parts, best->parts)) best = entry.get();
  }
  if (best) {
    match.route = &best->route;
    match.captures = Capture(best->parts, names->segments);
    return match;
  }
  if (methods.empty() && names->why != nullptr) {
    match.status = 400;
    match.what = names->why;
    return match;
  }
  match.status = methods.empty() ? 404 : 405;
  match.allow = AllowText(std::move(methods));
  return match;
}

Response Router::Refusal(const Match& match) {
  const auto error = match.status == 400 ? Error{ErrorCode::kInvalid, match.what}.Id("ATH-R0018")
                     : match.status == 405
                         ? Error{ErrorCode::kInvalid, "this method is not allowed here",
                                 "use one of: " + match.allow}
                               .Id("ATH-R0017")
                         : Error{ErrorCode::kNotFound, "there is nothing at this path",
                                 "GET /api/v1/openapi.json lists what there is"}
                               .Id("ATH-R0016");
  Response response = ErrorResponse(match.status, error);
  if (match.status == 405) response.headers.Set("Allow", match.allow);
  return response;
}

void Router::Dispatch(Request request, Responder responder) const {
  Match match = Find(request.method, request.raw_path);
  if (match.status == 400 && request.method == "GET") {
    // A URL that was joined with one slash too many, which MLflow accepts from its clients. Not if
    // the rest of the path is a name: "//etc/passwd" is refused.
    const auto single = WithoutDoubledSlashes(request.raw_path);
    const Match meant = Find(request.method, single);
    if (single != request.raw_path && meant.route && !EndsWith(meant.route->pattern, "...}")) {
      Response response;
      response.status = 308;
      const size_t query = request.target.find('?');
      response.headers.Set(
          "Location", query == std::string::npos ? single : single + request.target.substr(query));
      return responder.Send(std::move(response));
    }
  }
  if (!match.route) return responder.Send(Refusal(match));
  match.route->handler(std::move(request), std::move(match.captures), std::move(responder));
}

}  // namespace athanor
