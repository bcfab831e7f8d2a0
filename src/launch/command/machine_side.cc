#include "launch/command/machine_side.h"

#include <utility>

#include "base/io/files.h"
#include "launch/command/backend_calls.h"
#include "launch/process/process_backend.h"

namespace athanor {

std::string AnswerCall(const MachineSide& side, const std::string& request) {
  namespace calls = backend_calls;
  const auto call = calls::DecodeCall(request);
  if (!call) return calls::EncodeDone(Fail(call.error()));
  ProcessBackend::Options options;
  options.attempts_dir = JoinPath(side.folder, "attempts");
  options.program = side.program;
  options.keep_spare = false;  // it would end with this call
  options.paths = [&side] {
    auto paths = side.paths;
    paths.cache_dir = JoinPath(side.folder, "cache");
    paths.hide_dir = side.folder;
    paths.home.clear();
    return paths;
  };
  if (std::holds_alternative<calls::LaunchCall>(*call)) {
    for (const auto& dir : {options.attempts_dir, JoinPath(side.folder, "cache")}) {
      if (auto made = MakeDirs(dir); !made) return calls::EncodeDone(made);
    }
  }
  ProcessBackend backend(std::move(options));
  if (const auto* launch = std::get_if<calls::LaunchCall>(&*call)) {
    return calls::EncodeHandle(backend.Launch(launch->plan));
  }
  if (const auto* poll = std::get_if<calls::PollCall>(&*call)) {
    return calls::EncodePolled(backend.Poll(poll->handles));
  }
  return calls::EncodeDone(backend.Release(std::get<calls::ReleaseCall>(*call).handle));
}

}  // namespace athanor
