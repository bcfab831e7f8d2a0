// The systemd unit that runs the server of a home: its name, path and text. Nothing is written
// here.
#pragma once

#include <string>

namespace athanor {

struct ServiceUnit {
  bool system = false;  // of the machine; else of the user
  std::string program;
  std::string home;
  std::string path;  // PATH for jobs; empty: systemd's
};

// "athanor.service" for the usual home, otherwise one with a mark of the home: a machine may have
// several.
std::string UnitName(const std::string& home, const std::string& usual_home);
// Where systemd finds it.
std::string UnitFolder(bool system, const std::string& user_config);
std::string UnitText(const ServiceUnit& unit, const std::string& name);

// "user/athanor.service": how a home and `ath serve --service` name it.
std::string MarkOf(bool system, const std::string& name);
// "systemctl --user start athanor.service"
std::string SystemctlFor(const std::string& mark, const std::string& verb);

}  // namespace athanor
