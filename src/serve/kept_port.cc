#include "serve/kept_port.h"

#include <cstdlib>

#include "base/io/crc32c.h"
#include "base/io/files.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr uint16_t kFirst = kUsualPort + 1;
constexpr uint16_t kCount = 900;
constexpr uint16_t kTries = 100;
constexpr uint16_t kStep = 7;  // has no factor in common with kCount: each port comes once

std::string PathOf(const std::string& home) { return home + "/port"; }

}  // namespace

std::optional<uint16_t> KeptPort(const std::string& home) {
  const auto text = ReadFile(PathOf(home), 64);
  if (!text) return std::nullopt;
  const std::string digits(Trim(*text));
  char* end = nullptr;
  const unsigned long port = std::strtoul(digits.c_str(), &end, 10);
  if (digits.empty() || *end != '\0' || port == 0 || port > 65'535) return std::nullopt;
  return static_cast<uint16_t>(port);
}

Status KeepPort(const std::string& home, uint16_t port) {
  return ReplaceFile(PathOf(home), std::to_string(port) + "\n");
}

std::vector<uint16_t> PortsInsteadOf(uint16_t taken, const std::string& home) {
  std::vector<uint16_t> ports;
  const uint32_t start = Crc32c(home) % kCount;
  for (uint32_t i = 0; i < kTries; ++i) {
    const auto port = static_cast<uint16_t>(kFirst + (start + i * kStep) % kCount);
    if (port != taken) ports.push_back(port);
  }
  ports.push_back(0);
  return ports;
}

}  // namespace athanor
