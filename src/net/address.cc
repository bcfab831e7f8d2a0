#include "net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>
#include <cstring>

namespace athanor {
namespace {

struct Range4 {
  uint32_t first;
  int bits;
};

// IANA's special-purpose registry, multicast and what is reserved.
constexpr Range4 kNotPublic4[] = {
    {0x00000000, 8},   // this network
    {0x0A000000, 8},   // private
    {0x64400000, 10},  // carrier-grade NAT
    {0x7F000000, 8},   // loopback
    {0xA9FE0000, 16},  // link-local; metadata services
    {0xAC100000, 12},  // private
    {0xC0000000, 24},  // protocol assignments
    {0xC0000200, 24},  // documentation
    {0xC0586300, 24},  // 6to4 relays
    {0xC0A80000, 16},  // private
    {0xC6120000, 15},  // benchmarking
    {0xC6336400, 24},  // documentation
    {0xCB007100, 24},  // documentation
    {0xE0000000, 4},   // multicast
    {0xF0000000, 4},   // reserved, broadcast
};

bool IsPublic4(uint32_t address) {
  for (const auto& range : kNotPublic4) {
    if ((address ^ range.first) >> (32 - range.bits) == 0) return false;
  }
  return true;
}

struct Range6 {
  uint8_t first[16];
  int bits;
};

bool Inside(const uint8_t* address, const Range6& range) {
  for (int bit = 0; bit < range.bits; ++bit) {
    if (((address[bit / 8] ^ range.first[bit / 8]) >> (7 - bit % 8)) & 1) return false;
  }
  return true;
}

// Only addresses that are assigned as global unicast are public, except these ranges.
constexpr Range6 kGlobal6{{0x20}, 3};
constexpr Range6 kNotPublic6[] = {
    {{0x20, 0x01, 0x00}, 23},        // protocol assignments, Teredo
    {{0x20, 0x01, 0x0d, 0xb8}, 32},  // documentation
    {{0x3f, 0xff, 0x00}, 20},        // documentation
};
constexpr Range6 kMapped{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96};
constexpr Range6 kTranslated{{0x00, 0x64, 0xff, 0x9b}, 96};
constexpr Range6 k6to4{{0x20, 0x02}, 16};

uint32_t Word(const uint8_t* bytes) {
  uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return ntohl(word);
}

bool IsPublic6(const uint8_t* address) {
  if (Inside(address, kMapped) || Inside(address, kTranslated))
    return IsPublic4(Word(address + 12));
  if (!Inside(address, kGlobal6)) return false;
  for (const auto& range : kNotPublic6) {
    if (Inside(address, range)) return false;
  }
  if (Inside(address, k6to4)) return IsPublic4(Word(address + 2));
  return true;
}

}  // namespace

bool IsPublicAddress(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    return IsPublic4(ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr));
  }
  if (address.sa_family == AF_INET6) {
    return IsPublic6(reinterpret_cast<const sockaddr_in6&>(address).sin6_addr.s6_addr);
  }
  return false;
}

std::string AddressText(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text,
                sizeof text);
  } else if (address.sa_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text,
                sizeof text);
  }
  return text;
}

}  // namespace athanor
