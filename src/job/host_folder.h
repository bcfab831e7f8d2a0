// The name of the folder, and of the control groups, that one host of an attempt has on the machine
// where it runs: the attempt's id, and for every host but the first a dot and its index.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "job/ids.h"

namespace athanor {

struct HostFolder {
  AttemptId attempt;
  uint32_t host = 0;
  bool operator==(const HostFolder&) const = default;
};

std::string HostFolderName(const AttemptId& attempt, uint32_t host);
// None: it is not such a name. Each host has one name only ("<id>.0" and "<id>.01" are none).
std::optional<HostFolder> ParseHostFolder(std::string_view name);

}  // namespace athanor
