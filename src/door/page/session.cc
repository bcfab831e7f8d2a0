#include "door/page/session.h"

#include <charconv>

#include "base/ids.h"
#include "base/io/hash.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kMostLinks = 100;

std::string Sign(const std::string& key, std::string_view text) {
  const std::string inner = Sha256Hex(key + "|session|" + std::string(text));
  return Sha256Hex(key + "|session|" + inner);
}

}  // namespace

std::string SessionCookieName(const std::string& key) {
  return "athanor_" + Sha256Hex(key + "|cookie").substr(0, 8);
}

std::string MakeSession(const std::string& key, const PageUser& user, WallTime now) {
  const std::string text = std::to_string(now.ms + kSessionLife.count()) + "." +
                           std::string(NameOf(user.scope)) + "." + Base64(user.token) + "." +
                           Base64(user.user);
  return text + "." + Sign(key, text);
}

std::optional<PageUser> ReadSession(const std::string& key, std::string_view session,
                                    WallTime now) {
  const size_t dot = session.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto text = session.substr(0, dot);
  const auto given = session.substr(dot + 1);
  const std::string right = Sign(key, text);
  if (!SameSecretText(given, right)) return std::nullopt;
  const auto parts = Split(text, '.');
  int64_t until = 0;
  if (parts.size() != 4) return std::nullopt;
  const auto [end, error] =
      std::from_chars(parts[0].data(), parts[0].data() + parts[0].size(), until);
  const auto scope = ScopeNamed(parts[1]);
  const auto token = FromBase64(parts[2]);
  const auto user = FromBase64(parts[3]);
  if (error != std::errc() || now.ms >= until || !scope || !token || !user) return std::nullopt;
  return PageUser{*user, *scope, *token};
}

std::string_view CookieIn(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    const size_t end = header.find(';');
    auto pair = header.substr(0, end);
    header.remove_prefix(end == std::string_view::npos ? header.size() : end + 1);
    while (!pair.empty() && pair.front() == ' ') pair.remove_prefix(1);
    const size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name) {
      return pair.substr(equals + 1);
    }
  }
  return {};
}

std::string PageLinks::Make(PageUser user, WallTime now) {
  std::erase_if(links_, [now](const auto& entry) { return now.ms >= entry.second.until.ms; });
  if (links_.size() >= kMostLinks) links_.clear();
  std::string key = RandomHex(24);
  links_[Sha256Hex(key)] = {std::move(user), WallTime{now.ms + kLinkLife.count()}};
  return key;
}

std::optional<PageUser> PageLinks::Use(const std::string& key, WallTime now) {
  const auto at = links_.find(Sha256Hex(key));
  if (at == links_.end()) return std::nullopt;
  const Link link = std::move(at->second);
  links_.erase(at);
  if (now.ms >= link.until.ms) return std::nullopt;
  return link.user;
}

}  // namespace athanor
