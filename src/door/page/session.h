// Who uses the page without a token: a link that works once and soon (`ath ui --link`) gives the
// browser a cookie, signed, so that it is checked without a look-up and outlives the server.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "record/keys/token_store.h"

namespace athanor {

// For whom a session is: no more than he was when he asked for it.
struct PageUser {
  std::string user;
  Scope scope = Scope::kRead;
  std::string token;  // id of the token he asked with: the session ends with it; empty: none

  bool operator==(const PageUser&) const = default;
};

inline constexpr Millis kSessionLife = std::chrono::hours(12);
inline constexpr Millis kLinkLife = std::chrono::minutes(2);

// One server's cookie has a name of its own: browsers keep cookies by host, not by port.
std::string SessionCookieName(const std::string& key);
std::string MakeSession(const std::string& key, const PageUser& user, WallTime now);
// Nothing when it is not this server's, or over.
std::optional<PageUser> ReadSession(const std::string& key, std::string_view session, WallTime now);
// The value of a cookie in a Cookie header; empty: it is not there.
std::string_view CookieIn(std::string_view header, std::string_view name);

// Links that were given out and not used. Threads: one.
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
