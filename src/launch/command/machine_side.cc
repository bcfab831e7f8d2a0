#include "launch/command/machine_side.h"

#include <utility>

#include "base/io/files.h"
#include "launch/command/backend_calls.h"
#include "launch/process/process_backend.h"

namespace athanor {

std::string AnswerCall(const MachineSide& side, const std::string& request) {
  using namespace backend_calls;
  const auto call = DecodeCall(request);
  if (!call) return EncodeDone(Fail(call.error()));
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
  if (std::holds_alternative<LaunchCall>(*call)) {
    for (const auto& dir : {options.attempts_dir, JoinPath(side.folder, "cache")}) {
      if (auto made = MakeDirs(dir); !made) return EncodeDone(made);
    }
  }
  ProcessBackend backend(std::move(options));
  if (const auto* launch = std::get_if<LaunchCall>(&*call)) {
    return EncodeHandle(backend.Launch(launch->plan));
  }
  if (const auto* poll = std::get_if<PollCall>(&*call)) {
    return EncodePolled(backend.Poll(poll->handles));
  }
  return EncodeDone(backend.Release(std::get<ReleaseCall>(*call).handle));
}

}  // namespace athanor
