#include "serve/kept_port.h"

#include <cstdlib>
#include <thread>

#include "base/exec/clock.h"
#include "base/io/crc32c.h"
#include "base/io/files.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr uint16_t kFirst = kUsualPort + 1;
constexpr uint16_t kCount = 900;
constexpr uint16_t kTries = 100;
constexpr uint16_t kStep = 7;  // has no factor in common with kCount: each port comes once

constexpr Millis kPatience{2'000};
constexpr Millis kPause{50};

}  // namespace

std::optional<uint16_t> KeptPort(const std::string& home, const std::string& name) {
  const auto text = ReadFile(JoinPath(home, name), 64);
  if (!text) return std::nullopt;
  const std::string digits(Trim(*text));
  char* end = nullptr;
  const unsigned long port = std::strtoul(digits.c_str(), &end, 10);
  if (digits.empty() || *end != '\0' || port == 0 || port > 65'535) return std::nullopt;
  return static_cast<uint16_t>(port);
}

Status KeepPort(const std::string& home, uint16_t port, const std::string& name) {
  return ReplaceFile(JoinPath(home, name), std::to_string(port) + "\n");
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

Result<OwnPort> ListenAtOwnPort(const std::string& home, const std::string& name, uint16_t usual,
                                const std::function<Result<uint16_t>(uint16_t)>& listen) {
  const auto kept = KeptPort(home, name);
  const uint16_t wanted = kept.value_or(usual);
  auto port = listen(wanted);
  const auto taken = [&port] { return !port && port.error().code == ErrorCode::kConflict; };
  for (auto waited = Millis(0); taken() && kept && waited < kPatience; waited += kPause) {
    std::this_thread::sleep_for(kPause);
    port = listen(wanted);
  }
  OwnPort own;
  if (taken()) {
    own.instead_of = wanted;
    own.was_kept = kept.has_value();
    for (const uint16_t other : PortsInsteadOf(wanted, home)) {
      port = listen(other);
      if (!taken()) break;
    }
  }
  if (!port) return Fail(port.error());
  own.port = *port;
  if (own.port != kept) ATHANOR_CHECK_OK(KeepPort(home, own.port, name));
  return own;
}

}  // namespace athanor
