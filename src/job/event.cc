#include "job/event.h"

namespace athanor {
namespace {

struct Name {
  std::string_view operator()(const Submitted&) const { return "submitted"; }
  std::string_view operator()(const Placed&) const { return "placed"; }
  std::string_view operator()(const Waiting&) const { return "waiting"; }
  std::string_view operator()(const Launched&) const { return "launched"; }
  std::string_view operator()(const LaunchFailed&) const { return "launch_failed"; }
  std::string_view operator()(const AgentUp&) const { return "agent_up"; }
  std::string_view operator()(const PrepareFailed&) const { return "prepare_failed"; }
  std::string_view operator()(const ScriptStarted&) const { return "script_started"; }
  std::string_view operator()(const ScriptEnded&) const { return "script_ended"; }
  std::string_view operator()(const Uploaded&) const { return "uploaded"; }
  std::string_view operator()(const HostLost&) const { return "host_lost"; }
  std::string_view operator()(const StopAsked&) const { return "stop_asked"; }
  std::string_view operator()(const InterruptAsked&) const { return "interrupt_asked"; }
  std::string_view operator()(const Resumed&) const { return "resumed"; }
  std::string_view operator()(const CheckpointKept&) const { return "checkpoint"; }
  std::string_view operator()(const RuleFired&) const { return "rule_fired"; }
  std::string_view operator()(const WaitedTooLong&) const { return "waited_too_long"; }
  std::string_view operator()(const Noted&) const { return "noted"; }
};

}  // namespace

std::string_view NameOf(const JobEvent& event) { return std::visit(Name{}, event); }

}  // namespace athanor
