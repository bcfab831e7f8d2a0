// Lets a browser use the page without a token: a link that works once and only for a short time
// (`ath ui --link`) gives the browser a signed cookie, so that it is checked without a lookup and
// survives a restart of the server.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/exec/clock.h"
#include "record/keys/token_store.h"

namespace athanor {

// Whose session it is: with no more rights than the user had when asking for it.
struct PageUser {
  std::string user;
  Scope scope = Scope::kRead;
  std::string token;  // id of the token used to ask: the session ends with it; empty: none

  bool operator==(const PageUser&) const = default;
};

inline constexpr Millis kSessionLife = std::chrono::hours(12);
inline constexpr Millis kLinkLife = std::chrono::minutes(2);

// Each server's cookie has its own name: browsers store cookies by host, not by port.
std::string SessionCookieName(const std::string& key);
std::string MakeSession(const std::string& key, const PageUser& user, WallTime now);
// None if it is not this server's, or has expired.
std::optional<PageUser> ReadSession(const std::string& key, std::string_view session, WallTime now);
// The value of a cookie in a Cookie header; empty: it is missing.
std::string_view CookieIn(std::string_view header, std::string_view name);

// Links that were created and not used. Threads: one.
class PageLinks {
 public:
  std::string Make(PageUser user, WallTime now);  // its key
  // The first time, within kLinkLife.
  std::optional<PageUser> Use(const std::string& key, WallTime now);

 private:
  struct Link {
    PageUser user;
    WallTime until;
  };
  std::map<std::string, Link> links_;  // by the hash of their keys
};

}  // namespace athanor
