#include "launch/command/command_backend.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "launch/backend_conformance.h"
#include "launch/command/backend_calls.h"
#include "launch/process/process_case.h"

namespace athanor {
namespace {

// The other machine is this one, behind a command: in namespaces of its own, where no network is,
// if they can be made; else the command changes nothing but the environment.
std::unique_ptr<Backend> MakeCommandBackend(const std::string& dir, const std::string& program) {
  std::string self(4096, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size());
  self.resize(length > 0 ? static_cast<size_t>(length) : 0);
  CommandBackend::Options options;
  options.name = "apart";
  static const bool apart = std::system("unshare --mount --net -- true 2>/dev/null") == 0;
  if (apart) options.reach = {"unshare", "--mount", "--net", "--"};
  options.reach.insert(options.reach.end(),
                       {"env", "MACHINE_SIDE=" + DirName(self) + "/machine_side"});
  options.program = program;
  options.folder = dir;
  return std::make_unique<CommandBackend>(std::move(options));
}

class CommandCase : public ProcessCase {
 public:
  CommandCase() : ProcessCase(MakeCommandBackend) {}
};

INSTANTIATE_TYPED_TEST_SUITE_P(Command, BackendConformance, CommandCase);
INSTANTIATE_TYPED_TEST_SUITE_P(Command, GangConformance, CommandCase);

std::vector<Result<std::vector<HostStatus>>> PollBy(std::vector<std::string> reach,
                                                    std::chrono::milliseconds patience) {
  CommandBackend backend({"apart", std::move(reach), "athanor", "/nonexistent", patience});
  return backend.Poll({AttemptId::New().ToString(), AttemptId::New().ToString()});
}

// Planted bug: an attempt that could not be asked about counting as forgotten, and so as lost.
TEST(CommandBackend, AMachineThatIsNotReachedSaysNothingAboutItsHosts) {
  for (const auto& script :
       {"echo 'no route to host' >&2; exit 255", "echo welcome; cat >/dev/null",
        "echo 'athanor-answer: {\"polled\": [{\"hosts\":'",
        "echo 'athanor-answer: {\"polled\": []}'",
        "echo 'athanor-answer: {\"error\": {\"code\": \"not_found\", \"what\": \"x\"}}'",
        "exec sleep 1000"}) {
    const auto polled = PollBy({"sh", "-c", script}, std::chrono::milliseconds(300));
    ASSERT_EQ(polled.size(), 2u) << script;
    for (const auto& one : polled) {
      ASSERT_FALSE(one) << script;
      EXPECT_EQ(one.error().code, ErrorCode::kUnavailable) << script << ": " << one.error().what;
    }
  }
  const auto polled = PollBy({"/nonexistent/ssh"}, std::chrono::milliseconds(300));
  EXPECT_EQ(polled.front().error().code, ErrorCode::kUnavailable);
}

TEST(CommandBackend, SaysWhatTheCommandSaid) {
  const auto polled = PollBy({"sh", "-c", "echo 'Permission denied (publickey).' >&2; exit 255"},
                             std::chrono::milliseconds(5'000));
  EXPECT_NE(polled.front().error().why.find("Permission denied"), std::string::npos);
  EXPECT_FALSE(polled.front().error().hint.empty());
}

TEST(BackendCalls, ComeBackAsTheyWere) {
  namespace calls = backend_calls;
  HostStatus ended;
  ended.state = HostStatus::State::kEnded;
  ended.detail = "preempted";
  ended.deadline = WallTime{17};
  ended.exit = ExitInfo{};
  ended.exit->code = 3;
  const calls::Polled polled = {std::vector<HostStatus>{ended, HostStatus{}},
                                Fail(ErrorCode::kNotFound, "forgotten", "ath ps")};
  const auto back = calls::DecodePolled("Welcome to box\n" + calls::EncodePolled(polled));
  ASSERT_TRUE(back) << back.error().what;
  ASSERT_EQ(back->size(), 2u);
  const auto& first = back->front()->front();
  EXPECT_EQ(first.state, ended.state);
  EXPECT_EQ(first.detail, "preempted");
  EXPECT_EQ(first.deadline->ms, 17);
  EXPECT_EQ(first.exit->code, 3);
  EXPECT_EQ(back->back().error(), polled.back().error());
}

TEST(BackendCalls, RefuseAPlanForHostsOfDifferentAttempts) {
  namespace calls = backend_calls;
  LaunchPlan plan;
  plan.hosts.resize(2);
  for (auto& host : plan.hosts) host.attempt = AttemptId::New();
  plan.hosts[1].host = 1;
  const auto back = calls::DecodeCall(calls::Encode(calls::LaunchCall{plan}));
  EXPECT_EQ(back.error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace athanor
