// The calls of a Backend as text, for a back end whose other half runs on another machine: a
// request on the standard input of one command, an answer on its output. JSON, a line each. The
// answer stands after kAnswer, because what a login shell prints comes on the same stream.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "launch/backend.h"

namespace athanor::backend_calls {

inline constexpr std::string_view kAnswer = "athanor-answer: ";

struct LaunchCall {
  LaunchPlan plan;
};
struct PollCall {
  std::vector<std::string> handles;
};
struct ReleaseCall {
  std::string handle;
};
using Call = std::variant<LaunchCall, PollCall, ReleaseCall>;
using Polled = std::vector<Result<std::vector<HostStatus>>>;

// kInvalid: not such a text. Nothing of what it says was checked otherwise.
std::string Encode(const Call& call);
Result<Call> DecodeCall(std::string_view text);

std::string EncodeHandle(const Result<std::string>& handle);
std::string EncodePolled(const Polled& polled);
std::string EncodeDone(const Status& done);

// Of everything that the command printed. The error of the call, or kUnavailable: there is no
// answer in it.
Result<std::string> DecodeHandle(std::string_view printed);
Result<Polled> DecodePolled(std::string_view printed);
Status DecodeDone(std::string_view printed);

}  // namespace athanor::backend_calls
