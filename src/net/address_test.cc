#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "net/address.h"

namespace athanor {
namespace {

bool IsPublic(const char* text) {
  sockaddr_storage storage{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
  if (::inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
  } else {
    EXPECT_EQ(::inet_pton(AF_INET6, text, &v6.sin6_addr), 1) << text;
    v6.sin6_family = AF_INET6;
  }
  const auto& address = reinterpret_cast<const sockaddr&>(storage);
  EXPECT_FALSE(AddressText(address).empty());
  return IsPublicAddress(address);
}

TEST(Address, WhatLeadsInsideIsNotPublic) {
  for (const char* text :
       {"0.0.0.0",         "0.1.2.3",        "10.0.0.1",    "10.255.255.255",  "100.64.0.1",
        "100.127.255.255", "127.0.0.1",      "127.255.0.1", "169.254.169.254", "172.16.0.1",
        "172.31.255.255",  "192.0.0.8",      "192.0.2.1",   "192.168.1.1",     "198.18.0.1",
        "198.19.255.255",  "198.51.100.7",   "203.0.113.9", "224.0.0.1",       "239.1.1.1",
        "240.0.0.1",       "255.255.255.255"}) {
    EXPECT_FALSE(IsPublic(text)) << text;
    EXPECT_FALSE(IsPublic((std::string("::ffff:") + text).c_str())) << text;
    EXPECT_FALSE(IsPublic((std::string("64:ff9b::") + text).c_str())) << text;
  }
  for (const char* text :
       {"::", "::1", "::127.0.0.1", "fe80::1", "fc00::1", "fd12:3456::1", "fec0::1", "ff02::1",
        "2001:db8::1", "2001::1", "2001:1::1", "2002:7f00:1::", "2002:a00:1::", "2002:c0a8:101::1",
        "3fff::1", "4000::1", "100::1", "64:ff9b:1::1"}) {
    EXPECT_FALSE(IsPublic(text)) << text;
  }
}

TEST(Address, TheOpenInternetIs) {
  for (const char* text :
       {"1.1.1.1",         "9.255.255.255", "11.0.0.0",        "100.63.255.255",  "100.128.0.0",
        "126.255.255.255", "128.0.0.0",     "169.253.0.1",     "172.15.0.1",      "172.32.0.1",
        "192.0.1.1",       "192.167.0.1",   "198.17.0.1",      "198.20.0.1",      "223.255.255.255",
        "2606:4700::1111", "2a00:1450::1",  "2001:4860::8888", "2002:101:101::1", "::ffff:1.1.1.1",
        "64:ff9b::1.1.1.1"}) {
    EXPECT_TRUE(IsPublic(text)) << text;
  }
}

TEST(Address, OtherFamiliesAreNot) {
  sockaddr address{};
  address.sa_family = AF_UNIX;
  EXPECT_FALSE(IsPublicAddress(address));
}

}  // namespace
}  // namespace athanor
