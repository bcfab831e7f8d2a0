#include "job/record.h"

#include <map>

namespace athanor {
namespace {

// A gang pays for each of its machines, however long the others were held.
int64_t HeldByAll(const Attempt& attempt) {
  if (attempt.hosts.size() <= 1) return attempt.held_ms;
  int64_t held_ms = 0;
  for (const auto& host : attempt.hosts) held_ms += host.held_ms;
  return held_ms;
}

}  // namespace

std::string HostNameOf(uint32_t host) { return "algo-" + std::to_string(host + 1); }

std::string OutputNameOf(uint32_t host, std::string_view name) {
  return host == 0 ? std::string(name) : HostNameOf(host) + "/" + std::string(name);
}

int64_t CostMicros(const JobRecord& record) {
  std::map<int64_t, int64_t> held_ms;  // by price
  for (const auto& attempt : record.attempts) {
    held_ms[attempt.micros_per_hour < 0 ? record.price.micros_per_hour : attempt.micros_per_hour] +=
        HeldByAll(attempt);
  }
  int64_t cost = 0;
  for (const auto& [price, held] : held_ms) {
    // Whole seconds, rounded up: the granularity people are billed in elsewhere.
    cost += price * ((held + 999) / 1000) / 3600;
  }
  return cost;
}

void AddMissingHosts(JobRecord& record) {
  for (auto& attempt : record.attempts) {
    if (!attempt.hosts.empty()) continue;
    auto& host = attempt.hosts.emplace_back();
    host.name = HostNameOf(0);
    host.handle = attempt.handle;
    host.placement = attempt.placement;
    host.up = attempt.prepared;
    host.started = attempt.started;
    host.exited = attempt.exited;
    host.over = attempt.ended;
    host.last_seen = &attempt == record.current() ? record.last_seen : attempt.ended;
    host.held_ms = attempt.held_ms;
    host.exit = attempt.exit;
    host.cause = attempt.cause;
  }
}

}  // namespace athanor
