#include "launch/command/command_backend.h"

#include <utility>

#include "base/exec/process.h"
#include "base/text/text.h"

namespace athanor {
namespace {

// Enough of what went wrong for a line.
std::string LastLine(const std::string& text) {
  const auto lines = Split(Trim(text), '\n');
  return lines.empty() ? std::string() : Printable(lines.back());
}

}  // namespace

CommandBackend::CommandBackend(Options options) : options_(std::move(options)) {}

Result<std::string> CommandBackend::Ask(const backend_calls::Call& call) const {
  auto command = options_.reach;
  command.insert(command.end(), {options_.program, "agent", "--machine", options_.folder});
  CommandOptions options;
  options.stdin_text = backend_calls::Encode(call);
  options.timeout = options_.patience;
  options.separate_stderr = true;
  const auto unavailable = [&](std::string why) {
    return Fail(Error{ErrorCode::kUnavailable, options_.name + " did not answer",
                      "try by hand: " + Join(command, " ") + " </dev/null"}
                    .Why(std::move(why)));
  };
  const auto result = RunCommand(command, options);
  if (!result) return unavailable(result.error().what);
  if (result->output.find(backend_calls::kAnswer) != std::string::npos) return result->output;
  if (result->timed_out) {
    return unavailable("nothing came for " + std::to_string(options_.patience.count() / 1000) +
                       " s");
  }
  auto why = "the command ended with status " + std::to_string(result->exit_code);
  if (const auto said = LastLine(result->error_output); !said.empty()) why += ": " + said;
  return unavailable(std::move(why));
}

Result<std::string> CommandBackend::Launch(const LaunchPlan& plan) {
  ATHANOR_TRY(const auto printed, Ask(backend_calls::LaunchCall{plan}));
  return backend_calls::DecodeHandle(printed);
}

std::vector<Result<std::vector<HostStatus>>> CommandBackend::Poll(
    const std::vector<std::string>& handles) {
  if (handles.empty()) return {};
  const auto printed = Ask(backend_calls::PollCall{handles});
  auto polled = printed ? backend_calls::DecodePolled(*printed)
                        : Result<backend_calls::Polled>(Fail(printed.error()));
  if (polled && polled->size() != handles.size()) {
    polled = Fail(ErrorCode::kUnavailable, options_.name + " answered for " +
                                               std::to_string(polled->size()) + " attempts of " +
                                               std::to_string(handles.size()));
  }
  if (polled) return std::move(*polled);
  // One that could not be asked knows nothing of any of them.
  Error error = std::move(polled).error();
  if (error.code == ErrorCode::kNotFound) error.code = ErrorCode::kUnavailable;
  return backend_calls::Polled(handles.size(), Fail(error));
}

Status CommandBackend::Release(const std::string& handle) {
  ATHANOR_TRY(const auto printed, Ask(backend_calls::ReleaseCall{handle}));
  return backend_calls::DecodeDone(printed);
}

}  // namespace athanor
