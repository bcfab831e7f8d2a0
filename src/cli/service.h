// The service of a home, if one is installed: a systemd unit that runs its server.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/home.h"

namespace athanor {

struct InstalledService {
  std::string mark;  // "user/athanor.service"
  std::string file;  // the unit
};

// None: none is installed, or its unit was deleted.
std::optional<InstalledService> ServiceOf(const Home& home);
Status NoteService(const Home& home, const InstalledService& service);
// True: systemd was asked to start it and says that it runs. False: there is none, or it does not
// run.
bool StartService(const Home& home);
// Disables and deletes it; does nothing if there is none.
Status RemoveService(const Home& home);

// systemctl's answer: its first line.
Result<std::string> Systemctl(bool system, std::vector<std::string> words);

}  // namespace athanor
