#include "run/environment/environment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/exec/process.h"
#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "run/environment/installer.h"
#include "run/environment/interpreter.h"

namespace athanor {
namespace {

constexpr const char* kWheel = "tiny-1.0-py3-none-any.whl";

// argv: where it goes.
constexpr const char* kMakeWheel = R"(
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as z:
    z.writestr('tiny.py', 'size = 1\n')
    z.writestr('tiny-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n')
    z.writestr('tiny-1.0.dist-info/WHEEL',
               'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    z.writestr('tiny-1.0.dist-info/RECORD',
               'tiny.py,,\ntiny-1.0.dist-info/METADATA,,\ntiny-1.0.dist-info/WHEEL,,\n'
               'tiny-1.0.dist-info/RECORD,,\n')
)";

// A package that, while its gate exists, says who it is there and then stays for ever.
constexpr const char* kSlowSetup = R"(
import os, signal
if os.path.exists({0}):
    with open({0}, 'w') as gate:
        gate.write(str(os.getpid()))
    signal.pause()
from setuptools import setup
setup(name='slow', version='1.0', py_modules=[])
)";

// argv: file of the token, the wheel, where to write processes that show the token.
constexpr const char* kIndexServer = R"(
import base64, glob, http.server, os, sys
token = open(sys.argv[1]).read()
encoded = base64.b64encode(('__token__:' + token).encode()).decode()
class Index(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        for name in glob.glob('/proc/[0-9]*/cmdline') + glob.glob('/proc/[0-9]*/environ'):
            try:
                shown = open(name, 'rb').read()
            except OSError:
                continue
            if token.encode() in shown or encoded.encode() in shown:
                open(sys.argv[3], 'a').write(name + ' ' + repr(shown))
        if self.headers.get('Authorization') != 'Basic ' + encoded:
            self.answer(401, b'who are you')
        elif self.path == '/simple/tiny/':
            self.answer(200, b'<a href="/files/%b">x</a>' % os.path.basename(sys.argv[2]).encode())
        elif self.path.startswith('/files/'):
            self.answer(200, open(sys.argv[2], 'rb').read())
        else:
            self.answer(404, b'')
    def answer(self, status, body):
        self.send_response(status)
        if status == 401:
            self.send_header('WWW-Authenticate', 'Basic realm="test"')
        self.send_header('Content-Type', 'text/html')
        self.send_header('Cache-Control', 'max-age=600')
        self.send_header('Vary', 'Authorization')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Index)
print(server.server_port, flush=True)
server.serve_forever()
)";

class Environment : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::string name : {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS",
                                   "PIP_NO_INDEX", "PIP_CONFIG_FILE", "PIP_CONSTRAINT"}) {
      ::unsetenv(name.c_str());
    }
    options_.source_dir = dir_ / "source";
    options_.cache_dir = dir_ / "cache";
    options_.base = {{"PATH", "/usr/bin:/bin"}, {"HOME", dir_ / "home"}, {"PIP_NO_INDEX", "1"}};
    options_.log = [this](std::string_view bytes) {
      const std::lock_guard lock(mutex_);
      log_ += bytes;
    };
    ASSERT_TRUE(MakeDirs(options_.source_dir).ok());
    ASSERT_TRUE(MakeDirs(dir_ / "home").ok());
    spec_.environment.base = "system";
  }

  void WriteSource(const std::string& name, const std::string& text) {
    const auto path = JoinPath(options_.source_dir, name);
    ASSERT_TRUE(MakeDirs(DirName(path)).ok());
    ASSERT_TRUE(ReplaceFile(path, text).ok());
  }
  void Require(const std::string& text) {
    WriteSource("requirements.txt", text);
    spec_.environment.requirements = "requirements.txt";
  }
  void RequireTiny() {
    MakeWheel(JoinPath(options_.source_dir, kWheel));
    Require(std::string("./") + kWheel + "\n");
  }
  static void MakeWheel(const std::string& path) {
    const auto made = RunCommand({"/usr/bin/python3", "-c", kMakeWheel, path});
    ASSERT_TRUE(made && made->ok());
  }
  // Needs no index: pip builds it with the system's setuptools.
  void RequireSlow() {
    ASSERT_EQ(::mkfifo((dir_ / "gate").c_str(), 0600), 0);
    const auto gate = "'" + (dir_ / "gate") + "'";
    WriteSource("slow/setup.py", fmt::format(fmt::runtime(kSlowSetup), gate));
    Require("./slow\n");
    spec_.source.bundle = "b1";
  }
  // What `python -c code` prints, with the job's variables.
  std::string Python(const BuiltEnvironment& built, const std::string& code) {
    CommandOptions command;
    command.environment.emplace();
    auto environment = options_.base;
    for (const auto& [name, value] : built.variables) environment[name] = value;
    for (const auto& [name, value] : environment) {
      command.environment->push_back(name + "=" + value);
    }
    const auto path = Split(environment["PATH"], ':').front() + "/python";
    const auto said = RunCommand({path, "-c", code}, command);
    return said ? std::string(Trim(said->output)) : said.error().what;
  }
  // Everything in the cache but the locks of environments.
  std::vector<std::string> Leftovers() {
    std::vector<std::string> left;
    const auto envs = dir_ / "cache/envs";
    const auto keys = ListDir(envs);
    if (!keys) return left;
    for (const auto& key : *keys) {
      const auto names = ListDir(JoinPath(envs, key));
      if (!names) continue;
      for (const auto& name : *names) {
        if (name != "lock") left.push_back(name);
      }
    }
    return left;
  }

  TestDir dir_;
  EnvironmentOptions options_;
  JobSpec spec_;
  std::mutex mutex_;
  std::string log_;
};

TEST_F(Environment, TheHostsNeedsNothing) {
  for (const std::string base : {"", "host"}) {
    spec_.environment.base = base;
    const auto built = BuildEnvironment(spec_, options_);
    ASSERT_TRUE(built);
    EXPECT_TRUE(built->variables.empty());
    EXPECT_TRUE(built->packages.empty());
  }
  EXPECT_FALSE(Exists(options_.cache_dir));
  EXPECT_TRUE(log_.empty());
}

TEST_F(Environment, TheHostsVenvSaysWhatIsInstalledInIt) {
  spec_.environment.base = "host";
  const auto site = dir_ / "venv/lib/python3.11/site-packages";
  for (const std::string name : {"Foo_Bar-1.2.dist-info", "old-3.0-py3.11.egg-info", "foo_bar"}) {
    ASSERT_TRUE(MakeDirs(JoinPath(site, name)).ok());
  }
  options_.base["VIRTUAL_ENV"] = dir_ / "venv";
  EXPECT_EQ(BuildEnvironment(spec_, options_)->packages, "foo-bar==1.2\nold==3.0\n");
}

TEST_F(Environment, LiesOverTheSystemsPackagesAndIsBuiltOnce) {
  RequireTiny();
  const auto first = BuildEnvironment(spec_, options_);
  ASSERT_TRUE(first) << first.error().why << log_;
  EXPECT_FALSE(first->cached);
  EXPECT_NE(("\n" + first->packages).find("\ntiny==1.0\n"), std::string::npos);
  EXPECT_NE(log_.find("tiny"), std::string::npos);
  EXPECT_EQ(Python(*first, "import tiny; print(tiny.size)"), "1");
  if (Exists("/usr/lib/python3/dist-packages/pip")) {
    EXPECT_EQ(Python(*first, "import pip; print(pip.__path__[0])"),
              "/usr/lib/python3/dist-packages/pip");
    EXPECT_NE(("\n" + first->packages).find("\npip=="), std::string::npos);
  }

  // From here on, any use of its Python is seen.
  const auto python = first->variables.at("VIRTUAL_ENV") + "/bin/python";
  ASSERT_EQ(::unlink(python.c_str()), 0);
  ASSERT_TRUE(ReplaceFile(python, "#!/bin/sh\ntouch " + (dir_ / "used") + "\n", 0755).ok());
  log_.clear();
  WriteSource("requirements.txt", std::string("# the same\n./") + kWheel + "\n");
  const auto second = BuildEnvironment(spec_, options_);
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->cached);
  EXPECT_EQ(second->variables, first->variables);
  EXPECT_EQ(second->packages, first->packages);
  EXPECT_FALSE(Exists(dir_ / "used"));
  EXPECT_TRUE(log_.empty()) << log_;
}

TEST_F(Environment, TenThatAskAtOnceBuildItOnce) {
  RequireTiny();
  std::vector<Result<BuiltEnvironment>> built(10);
  std::vector<std::thread> threads;
  for (auto& result : built) {
    threads.emplace_back([&] { result = BuildEnvironment(spec_, options_); });
  }
  for (auto& thread : threads) thread.join();
  int builders = 0;
  for (const auto& result : built) {
    ASSERT_TRUE(result) << result.error().why;
    builders += result->cached ? 0 : 1;
    EXPECT_EQ(result->variables, built[0]->variables);
  }
  EXPECT_EQ(builders, 1);
  EXPECT_EQ(log_.find("building a Python"), log_.rfind("building a Python"));
  EXPECT_EQ(Leftovers().size(), 2u) << "the marker and one environment";
  EXPECT_EQ(Python(*built[9], "import tiny; print(tiny.size)"), "1");
}

TEST_F(Environment, AFailureNamesTheRequirementAndLeavesNothing) {
  Require("athanor-no-such-thing==9.9\n");
  const auto built = BuildEnvironment(spec_, options_);
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(built.error().what, "the environment could not be built");
  EXPECT_NE(built.error().why.find("athanor-no-such-thing==9.9"), std::string::npos)
      << built.error().why;
  EXPECT_FALSE(built.error().hint.empty());
  EXPECT_TRUE(Leftovers().empty());
}

TEST_F(Environment, AStopEndsTheInstallerAndAllItStarted) {
  RequireSlow();
  const UniqueFd gate(::open((dir_ / "gate").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::string pid;
  options_.cancelled = [&] {
    char buffer[32];
    const ssize_t got = ::read(gate.get(), buffer, sizeof buffer);
    if (got > 0) pid.append(buffer, static_cast<size_t>(got));
    return !pid.empty();
  };
  const auto built = BuildEnvironment(spec_, options_);
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code, ErrorCode::kCancelled) << built.error().why;
  if (const auto setup = IdentityOf(std::stoi(pid))) {
    // The kill was sent before the answer; only the kernel may still be at it.
    while (IsAlive(*setup)) std::this_thread::yield();
  }
  EXPECT_TRUE(Leftovers().empty());
}

TEST_F(Environment, ABuilderThatWasKilledIsFollowedByOneThatSucceeds) {
  RequireSlow();
  const pid_t builder = ::fork();
  ASSERT_GE(builder, 0);
  if (builder == 0) {
    (void)BuildEnvironment(spec_, options_).has_value();
    ::_exit(0);
  }
  const auto pid = ReadFile(dir_ / "gate");  // waits for the package's set-up to begin
  ASSERT_EQ(::kill(builder, SIGKILL), 0);
  ASSERT_EQ(::waitpid(builder, nullptr, 0), builder);
  ASSERT_TRUE(pid && !pid->empty());
  const pid_t orphans = ::getpgid(std::stoi(*pid));
  const auto garbage = Leftovers();
  EXPECT_EQ(garbage.size(), 1u);
  ASSERT_EQ(::unlink((dir_ / "gate").c_str()), 0);

  const auto built = BuildEnvironment(spec_, options_);
  EXPECT_TRUE(built) << built.error().why << log_;
  EXPECT_EQ(Leftovers().size(), 2u);
  for (const auto& name : Leftovers()) EXPECT_NE(name, garbage.front());
  ASSERT_GT(orphans, 1);
  ::kill(-orphans, SIGKILL);

  // Its requirement is a folder of the source: a change of the source is another key.
  spec_.source.bundle = "b2";
  const auto other = BuildEnvironment(spec_, options_);
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->cached);
}

class PrivateIndex : public Environment {
 protected:
  void SetUp() override {
    Environment::SetUp();
    MakeWheel(outside_ / kWheel);
    ASSERT_TRUE(ReplaceFile(outside_ / "token", kToken).ok());
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    said_.reset(ends[0]);
    UniqueFd write(ends[1]);
    const auto server = SpawnDetached({"/usr/bin/python3", "-c", kIndexServer, outside_ / "token",
                                       outside_ / kWheel, outside_ / "leaks"},
                                      write.get());
    ASSERT_TRUE(server);
    server_ = *server;
    write.reset();
    std::string port;
    for (char c = 0; c != '\n'; port += c) ASSERT_EQ(::read(said_.get(), &c, 1), 1);
    spec_.environment.index_url = fmt::format("http://127.0.0.1:{}/simple", std::stoi(port));
    spec_.environment.index_secret = "INDEX_TOKEN";
    Require("tiny==1.0\n");
    options_.base["PIP_RETRIES"] = "0";
  }
  void TearDown() override {
    if (server_ <= 0) return;
    ::kill(server_, SIGKILL);
    ::waitpid(server_, nullptr, 0);
  }

  static constexpr const char* kToken = "pypi-canary-0123456789abcdef";
  TestDir outside_;  // what may hold the token
  UniqueFd said_;
  pid_t server_ = 0;
};

TEST_F(PrivateIndex, InstallsWithTheTokenAndShowsItNowhere) {
  options_.index_token = kToken;
  const auto built = BuildEnvironment(spec_, options_);
  ASSERT_TRUE(built) << built.error().why << log_;
  EXPECT_EQ(Python(*built, "import tiny; print(tiny.size)"), "1");
  EXPECT_FALSE(Exists(outside_ / "leaks")) << *ReadFile(outside_ / "leaks");
  const std::string encoded = Base64(std::string("__token__:") + kToken);
  for (const std::string& form : {std::string(kToken), encoded}) {
    EXPECT_EQ(log_.find(form), std::string::npos);
    const auto found = RunCommand({"grep", "-rlaF", "-e", form, dir_.path()});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->exit_code, 1) << "in " << found->output;
  }
  EXPECT_NE(log_.find(spec_.environment.index_url), std::string::npos);
}

TEST_F(PrivateIndex, AWrongTokenIsSaidToBeWrong) {
  options_.index_token = "not-the-token";
  const auto built = BuildEnvironment(spec_, options_);
  ASSERT_FALSE(built);
  EXPECT_NE(built.error().why.find("refused access to tiny"), std::string::npos)
      << built.error().why << log_;
  EXPECT_EQ(log_.find("not-the-token"), std::string::npos);
}

TEST_F(PrivateIndex, AnIndexThatDoesNotAnswerIsNotAMissingPackage) {
  ASSERT_EQ(::kill(server_, SIGKILL), 0);
  ASSERT_EQ(::waitpid(std::exchange(server_, 0), nullptr, 0) > 0, true);
  const auto built = BuildEnvironment(spec_, options_);
  ASSERT_FALSE(built);
  EXPECT_NE(built.error().why.find("did not answer"), std::string::npos)
      << built.error().why << log_;
}

TEST_F(Environment, IsolatedHasItsOwnPipAndNothingOfTheSystem) {
  spec_.environment.base = "isolated";
  RequireTiny();
  const auto built = BuildEnvironment(spec_, options_);
  ASSERT_TRUE(built) << built.error().why << log_;
  const auto& venv = built->variables.at("VIRTUAL_ENV");
  EXPECT_EQ(Python(*built,
                   "import tiny, pip, sys; print(pip.__path__[0].startswith(sys.prefix), "
                   "sys.prefix, any('dist-packages' in p for p in sys.path))"),
            "True " + venv + " False");
  EXPECT_NE(("\n" + built->packages).find("\ntiny==1.0\n"), std::string::npos);
}

TEST_F(Environment, SystemWithoutRequirementsIsTheSystemsPython) {
  const auto built = BuildEnvironment(spec_, options_);
  ASSERT_TRUE(built) << built.error().why << log_;
  EXPECT_EQ(Python(*built, "import sys; print(sys.base_prefix)"), "/usr");
  EXPECT_EQ(built->variables.at("PYTHONNOUSERSITE"), "1");
}

TEST_F(Environment, AnotherInterpreterOfTheHostIsWhatPythonMeans) {
  spec_.environment.base = "host";
  // A venv's interpreter keeps its venv.
  ASSERT_TRUE(RunCommand({"/usr/bin/python3", "-m", "venv", "--without-pip", dir_ / "venv"})->ok());
  spec_.environment.python = dir_ / "venv/bin/python3";
  const auto built = BuildEnvironment(spec_, options_);
  ASSERT_TRUE(built) << built.error().why;
  EXPECT_EQ(Python(*built, "import sys; print(sys.prefix)"), dir_ / "venv");
}

TEST_F(Environment, AnInterpreterThatIsNotThereIsToldWithThoseThatAre) {
  ASSERT_TRUE(MakeDirs(dir_ / "bin").ok());
  ASSERT_EQ(::symlink("/bin/true", (dir_ / "bin/python3.77").c_str()), 0);
  // A version manager's shim for a version that is not installed.
  ASSERT_TRUE(ReplaceFile(dir_ / "bin/python3.88", "#!/bin/sh\nexit 127\n", 0755).ok());
  options_.base["PATH"] = dir_ / "bin";
  for (const std::string asked : {"3.99", "3.88", "python9", "/nonexistent/python", "./python3"}) {
    spec_.environment.python = asked;
    const auto built = BuildEnvironment(spec_, options_);
    ASSERT_FALSE(built) << asked;
    EXPECT_NE(built.error().why.find("there is no Python " + asked), std::string::npos);
    EXPECT_NE(built.error().why.find("3.77"), std::string::npos) << built.error().why;
    EXPECT_EQ(built.error().why.find("3.88,"), std::string::npos) << built.error().why;
  }
  spec_.environment.python = "3.77.1";
  EXPECT_FALSE(BuildEnvironment(spec_, options_));
}

TEST_F(Environment, AShimIsAskedForTheInterpreterItStandsFor) {
  ASSERT_TRUE(MakeDirs(dir_ / "bin").ok());
  ASSERT_TRUE(
      ReplaceFile(dir_ / "bin/python3", "#!/bin/sh\nexec /usr/bin/python3 \"$@\"\n", 0755).ok());
  const auto direct = FindInterpreter("", true, options_.base);
  const auto shim = FindInterpreter("", false, {{"PATH", dir_ / "bin"}});
  ASSERT_TRUE(direct && shim);
  EXPECT_EQ(shim->real, direct->real);
  EXPECT_EQ(shim->identity, direct->identity);
}

TEST_F(Environment, WhatThisMachineCannotDoIsRefusedWithAWayOut) {
  const auto why = [&](const JobSpec& spec) {
    const auto built = BuildEnvironment(spec, options_);
    if (built) return std::string("built");
    EXPECT_FALSE(built.error().hint.empty());
    return built.error().why;
  };
  JobSpec arn = spec_;
  arn.env["CA_REPOSITORY_ARN"] = "arn:aws:codeartifact:x";
  EXPECT_NE(why(arn).find("CodeArtifact"), std::string::npos);
  JobSpec apt = spec_;
  apt.environment.apt = {"libgl1"};
  EXPECT_NE(why(apt).find("container"), std::string::npos);
  JobSpec conda;
  conda.environment.conda = "environment.yml";
  options_.base["PATH"] = "/nonexistent";
  EXPECT_NE(why(conda).find("micromamba, mamba or conda"), std::string::npos);
  JobSpec password = spec_;
  password.environment.index_url = "https://me:hunter2@host/simple";
  EXPECT_EQ(why(password).find("hunter2"), std::string::npos);
  JobSpec missing = spec_;
  missing.environment.requirements = "missing.txt";
  EXPECT_NE(why(missing).find("missing.txt"), std::string::npos);
}

TEST_F(Environment, ACondaFileIsHandedToTheToolThatIsThere) {
  WriteSource("environment.yml", "dependencies: [python=3.11]\n");
  ASSERT_TRUE(MakeDirs(dir_ / "bin").ok());
  // Does what the tool's last step does: fills the prefix it was given.
  ASSERT_TRUE(ReplaceFile(dir_ / "bin/micromamba",
                          "#!/bin/sh\necho \"$@\"\n"
                          "while [ \"$1\" != --prefix ]; do shift; done\n"
                          "mkdir -p $2/bin $2/conda-meta\n"
                          "touch $2/conda-meta/python-3.11.7-h1_0.json\n",
                          0755)
                  .ok());
  options_.base["PATH"] = (dir_ / "bin") + ":/usr/bin:/bin";
  JobSpec spec;
  spec.environment.conda = "environment.yml";
  const auto built = BuildEnvironment(spec, options_);
  ASSERT_TRUE(built) << built.error().why;
  const auto& prefix = built->variables.at("CONDA_PREFIX");
  EXPECT_EQ(built->variables.at("PATH"), prefix + "/bin:" + options_.base["PATH"]);
  EXPECT_EQ(built->packages, "python==3.11.7 (conda)\n");
  EXPECT_NE(log_.find("create --yes"), std::string::npos);
  EXPECT_NE(log_.find(options_.source_dir + "/environment.yml"), std::string::npos);
  log_.clear();
  EXPECT_TRUE(BuildEnvironment(spec, options_)->cached);
  EXPECT_TRUE(log_.empty());
}

TEST(IndexUrl, LosesItsUserInfo) {
  EXPECT_EQ(WithoutUserInfo("https://a:b@host:1/simple?x=@"), "https://host:1/simple?x=@");
  EXPECT_EQ(WithoutUserInfo("https://a@b@host/simple"), "https://host/simple");
  EXPECT_EQ(WithoutUserInfo("https://host/simple/@scope"), "https://host/simple/@scope");
  EXPECT_EQ(WithoutUserInfo("no url"), "no url");
}

}  // namespace
}  // namespace athanor
