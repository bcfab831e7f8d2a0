#include "serve/service_unit.h"

#include "base/io/crc32c.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

// As a word of ExecStart= or Environment=, where % begins a specifier.
std::string Quoted(std::string_view text, bool command) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '%') out += '%';
    if (c == '$' && command) out += '$';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

std::string UnitName(const std::string& home, const std::string& usual_home) {
  if (home == usual_home) return "athanor.service";
  return fmt::format("athanor-{:08x}.service", Crc32c(home));
}

std::string UnitFolder(bool system, const std::string& user_config) {
  return system ? "/etc/systemd/system" : user_config + "/systemd/user";
}

std::string MarkOf(bool system, const std::string& name) {
  return (system ? "system/" : "user/") + name;
}

std::string SystemctlFor(const std::string& mark, const std::string& verb) {
  const auto slash = mark.find('/');
  const bool user = mark.substr(0, slash) == "user";
  return std::string("systemctl ") + (user ? "--user " : "") + verb + " " + mark.substr(slash + 1);
}

// package/*.service are the same units, for packages.
std::string UnitText(const ServiceUnit& unit, const std::string& name) {
  std::string text =
      "# Written by `ath service install`; `ath service remove` deletes it.\n"
      "[Unit]\n"
      "Description=Athanor server\n";
  if (unit.system) text += "After=network.target\n";
  text +=
      "\n[Service]\n"
      "Type=exec\n"
      "Environment=" +
      Quoted("ATHANOR_HOME=" + unit.home, false) + "\n";
  if (!unit.path.empty()) {
    text +=
        "# Jobs find their programs here.\n"
        "Environment=" +
        Quoted("PATH=" + unit.path, false) + "\n";
  }
  text += "ExecStart=" + Quoted(unit.program, true) + " serve --service " +
          MarkOf(unit.system, name) + "\n" +
          "Restart=on-failure\n"
          "RestartSec=1\n"
          "# Jobs continue when the server restarts.\n"
          "KillMode=process\n"
          "# A job that runs out of memory does not stop the server.\n"
          "OOMPolicy=continue\n"
          "# So that the server can limit the memory and CPUs of jobs.\n"
          "Delegate=yes\n"
          "\n[Install]\n"
          "WantedBy=" +
          std::string(unit.system ? "multi-user.target" : "default.target") + "\n";
  return text;
}

}  // namespace athanor
