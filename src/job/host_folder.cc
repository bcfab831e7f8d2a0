#include "job/host_folder.h"

#include <charconv>

namespace athanor {

std::string HostFolderName(const AttemptId& attempt, uint32_t host) {
  auto name = attempt.ToString();
  if (host > 0) name += "." + std::to_string(host);
  return name;
}

std::optional<HostFolder> ParseHostFolder(std::string_view name) {
  const auto dot = name.find('.');
  const auto attempt = AttemptId::Parse(name.substr(0, dot));
  if (!attempt) return std::nullopt;
  HostFolder folder{*attempt, 0};
  if (dot == name.npos) return folder;
  const auto digits = name.substr(dot + 1);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), folder.host);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
  if (folder.host == 0 || digits.front() == '0') return std::nullopt;
  return folder;
}

}  // namespace athanor
