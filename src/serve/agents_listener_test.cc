#include "serve/agents_listener.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <future>
#include <map>
#include <thread>

#include "base/exec/thread_pool.h"
#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/io/test_dir.h"
#include "base/text/text.h"
#include "door/doors.h"
#include "door/sagemaker/contract.h"
#include "launch/fake_backend.h"
#include "link/aws_environment.h"
#include "link/server_line.h"
#include "net/aws/sigv4.h"
#include "record/db/database.h"
#include "record/objects/directory_object_store.h"
#include "run/agent/script_line.h"
#include "serve/kept_port.h"
#include "steer/admission.h"
#include "steer/attempt_plans.h"
#include "steer/attempt_tokens.h"
#include "steer/hub.h"
#include "steer/loss_rates.h"
#include "steer/removal.h"

namespace athanor {
namespace {

class AtOnce final : public Pool {
 public:
  [[nodiscard]] bool Submit(Task task) override {
    task();
    return true;
  }
  void Stop() override {}
};

// A server as far as its door for other machines needs one, on a thread of its own. Its back end is
// in memory: jobs run as far as the record goes, and the tests are their agents.
class World {
 public:
  explicit World(const std::string& root, uint16_t port = 0) {
    home_.root = root;
    settings_ = {"127.0.0.1", port, "127.0.0.1"};
    EXPECT_TRUE(MakeDirs(home_.server()));
    EXPECT_TRUE(MakeDirs(home_.artifacts()));
    objects_ = OpenObjectDirectory(home_.objects(), clock_).value();
    database_ = Database::Open(home_.database(), ServerMigrations()).value();
    jobs_ = std::make_unique<JobStore>(*database_);
    losses_ = std::make_unique<LossStore>(*database_);
    documents_ = std::make_unique<DocumentStore>(*database_);
    tokens_ = std::make_unique<TokenStore>(*database_);
    secrets_ = SecretStore::Open(*database_, home_.secret_key()).value();
    access_keys_ = std::make_unique<AccessKeys>(*database_, *secrets_);
    blobs_ = std::make_unique<BlobStore>(BlobStore::Open(home_.blobs()).value());
    series_ = SeriesStore::Open(home_.series()).value();
    logs_ = LogStore::Open(home_.logs()).value();
    run_store_ = std::make_unique<RunStore>(*database_);
    run_writer_ = std::make_unique<RunWriter>(*run_store_, writer_, loop_);
    runs_ = std::make_unique<RunBook>(*series_);
    EXPECT_TRUE(runs_->Load(*run_store_));
    points_ = std::make_unique<PointIntake>(PointIntake::Parts{
        *series_, [](JobId, const std::function<void()>& store) { store(); }, [](JobId) {}});
    Inventory inventory;
    inventory.cpu_millis = 8'000;
    inventory.memory_bytes = 8ull << 30;
    backends_.Add(backend_, inventory);
    loss_rates_ = std::make_unique<LossRates>(*losses_, writer_);
    attempt_plans_ = std::make_unique<AttemptPlans>(AttemptPlans::Parts{
        kKey, false, *loss_rates_,
        [this](AttemptPlan& plan) { return LeadToServer(home_.socket(), listener_.get(), plan); },
        FillContract});
    engine_ = std::make_unique<Engine>(Engine::Parts{
        loop_, clock_, *jobs_, writer_,
        [](const std::string&, size_t) { return std::make_unique<AtOnce>(); }, backends_, log_,
        catalogue_, false, [this](const JobRecord& record) { return PlanFor(record); },
        [](const JobRecord&, const std::vector<StoredEvent>&) {},
        [](const Error& error) { ADD_FAILURE() << error.what; }});
    admission_ = std::make_unique<Admission>(Admission::Parts{
        clock_, *jobs_, *blobs_, *secrets_, catalogue_, backends_, OwnRates(), false, root});
    removal_ = std::make_unique<Removal>(Removal::Parts{
        loop_, *engine_, *jobs_, *logs_, *series_, *run_writer_, readers_, home_,
        [this](JobId run) { return runs_->Remove(run); }, [](JobId) { return std::string(); }});
    ServerInfo info;
    info.home = root;
    info.url = "http://127.0.0.1:7070";
    info.uid = ::getuid();
    info.user = "ann";
    context_ = std::make_unique<DoorContext>(DoorContext{loop_,
                                                         clock_,
                                                         log_,
                                                         *engine_,
                                                         *admission_,
                                                         *removal_,
                                                         *jobs_,
                                                         *losses_,
                                                         *documents_,
                                                         *logs_,
                                                         *series_,
                                                         *points_,
                                                         *run_store_,
                                                         *runs_,
                                                         *run_writer_,
                                                         models_,
                                                         *blobs_,
                                                         *tokens_,
                                                         *secrets_,
                                                         *access_keys_,
                                                         *objects_,
                                                         catalogue_,
                                                         inventory,
                                                         hub_,
                                                         readers_,
                                                         transfers_,
                                                         home_.artifacts(),
                                                         std::string(kOwnArtifacts),
                                                         kKey,
                                                         std::move(info),
                                                         [] {}});
    router_ = std::make_unique<Router>(MakeRouter(*context_).value());
    aws_ = std::make_unique<AwsFront>(*context_);
    auto opened = Open();
    EXPECT_TRUE(opened) << opened.error().what << ": " << opened.error().why;
    if (opened) listener_ = std::move(*opened);
    EXPECT_TRUE(engine_->Start());
    thread_ = std::thread([this] { loop_.Run(); });
  }
  ~World() {
    OnLoop([this] {
      engine_->Stop();
      if (listener_) listener_->Stop();
      return 0;
    });
    readers_.Stop();
    transfers_.Stop();
    loop_.Stop();
    thread_.join();
  }

  Result<std::unique_ptr<AgentsListener>> Open() {
    return AgentsListener::Open(
        {loop_, *context_, *router_, *aws_, HttpServerOptions{}, home_, settings_});
  }

  template <class Task>
  auto OnLoop(Task task) -> decltype(task()) {
    std::packaged_task<decltype(task())()> packaged(std::move(task));
    auto result = packaged.get_future();
    loop_.Post([&packaged] { packaged(); });
    return result.get();
  }

  // A job with an attempt that is current; returns that.
  AttemptId Run(const std::string& name, uint32_t nodes) {
    const auto id = JobId::New();
    OnLoop([&] {
      JobRecord draft;
      draft.id = id;
      draft.key = id.ToString();
      draft.user = "ann";
      draft.created = clock_.Wall();
      draft.spec.name = name;
      draft.spec.command = {"true"};
      draft.spec.resources.cpu_millis = 1'000;
      draft.spec.resources.nodes = nodes;
      engine_->Submit(std::move(draft), [](const auto& accepted) { EXPECT_TRUE(accepted); });
      return 0;
    });
    std::optional<AttemptId> attempt;
    while (!attempt) {
      attempt = OnLoop([&] {
        const auto* live = engine_->Live(id);
        const bool launched = live && live->current() && !live->current()->handle.empty();
        return launched ? std::optional(live->current()->id) : std::nullopt;
      });
      std::this_thread::yield();
    }
    return *attempt;
  }

  std::string Token(AttemptId attempt, uint32_t host = 0) const {
    return IngestToken(kKey, attempt, host);
  }
  AwsKey KeyOf(AttemptId attempt, uint32_t host = 0) const {
    return KeyOfAttempt(attempt, Token(attempt, host), host);
  }
  const AgentsListener& listener() const { return *listener_; }
  DoorContext& context() { return *context_; }
  Clock& clock() { return clock_; }
  Result<LaunchPlan> plan() {
    return OnLoop([this] { return plans_.back(); });
  }

  static constexpr char kKey[] = "the key that signs tokens";

 private:
  Result<LaunchPlan> PlanFor(const JobRecord& record) {
    auto plan = attempt_plans_->Of(record);
    if (plan) plans_.push_back(*plan);
    return plan;
  }

  Home home_;
  AgentsSettings settings_;
  SystemClock clock_;
  Logger log_{-1, clock_, LogLevel::kOff};
  Loop loop_;
  AtOnce writer_;
  ThreadPool readers_{1};
  ThreadPool transfers_{2};
  FakeBackend backend_{4};
  Backends backends_;
  std::vector<LaunchPlan> plans_;
  Catalogue catalogue_ = Catalogue::Builtin();
  std::unique_ptr<ObjectStore> objects_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<JobStore> jobs_;
  std::unique_ptr<LossStore> losses_;
  std::unique_ptr<DocumentStore> documents_;
  std::unique_ptr<TokenStore> tokens_;
  std::unique_ptr<SecretStore> secrets_;
  std::unique_ptr<AccessKeys> access_keys_;
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<SeriesStore> series_;
  std::unique_ptr<LogStore> logs_;
  std::unique_ptr<RunStore> run_store_;
  std::unique_ptr<RunWriter> run_writer_;
  std::unique_ptr<RunBook> runs_;
  ModelBook models_;
  Hub hub_;
  std::unique_ptr<PointIntake> points_;
  std::unique_ptr<LossRates> loss_rates_;
  std::unique_ptr<AttemptPlans> attempt_plans_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<Removal> removal_;
  std::unique_ptr<DoorContext> context_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<AwsFront> aws_;
  std::unique_ptr<AgentsListener> listener_;
  std::thread thread_;
};

using Fields = std::map<std::string, std::string>;

// A request of S3 without query and body, signed as clients do.
HttpCall Signed(const std::string& method, const std::string& path, const std::string& host,
                const AwsKey& key) {
  char stamp[32];
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
  SigV4Claim claim;
  claim.time = stamp;
  claim.date = claim.time.substr(0, 8);
  claim.region = kAwsRegion;
  claim.service = "s3";
  const std::string body = Sha256Hex("");
  const std::string names = "host;x-amz-content-sha256;x-amz-date";
  const std::string canonical = method + "\n" + path + "\n\nhost:" + host +
                                "\nx-amz-content-sha256:" + body + "\nx-amz-date:" + claim.time +
                                "\n\n" + names + "\n" + body;
  const std::string text =
      "AWS4-HMAC-SHA256\n" + claim.time + "\n" + claim.Scope() + "\n" + Sha256Hex(canonical);
  HttpCall call;
  call.method = method;
  call.target = path;
  call.headers.Add("Host", host);
  call.headers.Add("X-Amz-Date", claim.time);
  call.headers.Add("X-Amz-Content-Sha256", body);
  call.headers.Add("Authorization", "AWS4-HMAC-SHA256 Credential=" + key.id + "/" + claim.Scope() +
                                        ",SignedHeaders=" + names + ",Signature=" +
                                        Hex(HmacSha256(SigV4SigningKey(key.secret, claim), text)));
  return call;
}

class AgentsOfOtherMachines : public ::testing::Test {
 protected:
  ServerLine Line(const std::string& token) const {
    return ServerLine::To(world_.listener().url(), world_.listener().pin(), token).value();
  }
  HttpReply Ask(const std::string& method, const std::string& target, const Fields& fields = {},
                const std::string& body = "") {
    HttpCall call;
    call.method = method;
    call.target = target;
    call.body = body;
    for (const auto& [name, value] : fields) call.headers.Add(name, value);
    auto client = Line("").Client();
    auto reply = client.Do(call);
    EXPECT_TRUE(reply) << reply.error().what << ": " << reply.error().why;
    return reply.value_or(HttpReply{});
  }
  static Fields Bearer(const std::string& token) { return {{"Authorization", "Bearer " + token}}; }

  TestDir dir_;
  World world_{dir_.path()};
};

// Planted bug: leave out for_elsewhere. This test has the server's own uid, and calls over
// loopback.
TEST_F(AgentsOfOtherMachines, NobodyIsServedWithoutACredential) {
  const std::pair<const char*, const char*> asked[] = {
      {"GET", "/"},
      {"GET", "/healthz"},
      {"GET", "/ui/enter/abc"},
      {"GET", "/api/v1/openapi.json"},
      {"GET", "/api/v1/jobs"},
      {"POST", "/api/v1/tokens"},
      {"GET", "/api/2.0/mlflow/experiments/search"},
      {"GET", "/health"},
      {"GET", "/agent/v1/secrets"},
      {"POST", "/agent/v1/report"},
      {"GET", "/agent/v1/files/list?folder=events"},
      {"GET", "/nothing/here"},
      {"DELETE", "/"}};
  for (const auto& [method, target] : asked) {
    EXPECT_EQ(Ask(method, target).status, 401) << target;
    EXPECT_EQ(Ask(method, target, {{"Cookie", "athanor_session=x"}}).status, 401) << target;
  }
}

TEST_F(AgentsOfOtherMachines, TokensOfPeopleAndKeysOfPeopleAreForTheOtherAddress) {
  const auto token = world_.OnLoop([&] {
    return world_.context().tokens.Create("laptop", Scope::kAdmin, world_.clock().Wall(), {});
  });
  ASSERT_TRUE(token);
  for (const char* target :
       {"/api/v1/jobs", "/agent/v1/secrets", "/", "/api/2.0/mlflow/experiments/search"}) {
    EXPECT_GE(Ask("GET", target, Bearer(token->text)).status, 401) << target;
    EXPECT_LE(Ask("GET", target, Bearer(token->text)).status, 403) << target;
  }
  const auto key = world_.OnLoop([&] {
    return world_.context().access_keys.Create("laptop", Scope::kAdmin, world_.clock().Wall(), {});
  });
  ASSERT_TRUE(key);
  auto client = Line("").Client();
  const auto host = world_.listener().url().substr(8);
  const auto reply = client.Do(Signed("GET", "/", host, {key->info.id, key->secret})).value();
  EXPECT_EQ(reply.status, 403);
  EXPECT_NE(reply.body.find("InvalidAccessKeyId"), std::string::npos) << reply.body;
}

TEST_F(AgentsOfOtherMachines, AnAgentDoesWhatAgentsDoAndNothingElse) {
  const auto attempt = world_.Run("one", 1);
  const auto token = world_.Token(attempt);
  EXPECT_EQ(Ask("GET", "/agent/v1/secrets", Bearer(token)).status, 200);
  EXPECT_EQ(
      Ask("POST", "/agent/v1/report", Bearer(token), EncodeReport({HelloFrame{attempt, 1, 0}}))
          .status,
      200);
  EXPECT_EQ(Ask("GET", "/agent/v1/secrets", Bearer(token + "0")).status, 403);
  for (const char* target :
       {"/", "/healthz", "/api/v1/jobs", "/api/v1/session", "/api/2.0/mlflow/experiments/search"}) {
    EXPECT_EQ(Ask("GET", target, Bearer(token)).status, 401) << target;
  }
}

// Planted bug: sign the attempt only.
TEST_F(AgentsOfOtherMachines, AHostSpeaksForItselfOnly) {
  const auto attempt = world_.Run("two", 2);
  const auto hello = [&](uint32_t host) { return EncodeReport({HelloFrame{attempt, 1, host}}); };
  EXPECT_EQ(Ask("POST", "/agent/v1/report", Bearer(world_.Token(attempt, 1)), hello(1)).status,
            200);
  EXPECT_EQ(Ask("POST", "/agent/v1/report", Bearer(world_.Token(attempt, 1)), hello(0)).status,
            403);
  // No host of this attempt.
  EXPECT_EQ(Ask("POST", "/agent/v1/report", Bearer(world_.Token(attempt, 7)), hello(7)).status,
            400);
  const AwsKey mixed{world_.KeyOf(attempt, 1).id, world_.KeyOf(attempt, 0).secret};
  auto client = Line("").Client();
  const auto host = world_.listener().url().substr(8);
  EXPECT_EQ(client.Do(Signed("GET", "/", host, mixed))->status, 403);
  EXPECT_EQ(client.Do(Signed("GET", "/", host, world_.KeyOf(attempt, 1)))->status, 200);
}

TEST_F(AgentsOfOtherMachines, AScriptLogsWithTheTokenOfItsRun) {
  const auto token = RunToken(World::kKey, world_.Run("one", 1));
  const char* search = "/api/2.0/mlflow/experiments/search?max_results=5";
  EXPECT_EQ(Ask("GET", search, Bearer(token)).status, 200);
  EXPECT_EQ(Ask("GET", search, {{"Authorization", "Basic " + Base64("x:" + token)}}).status, 200);
  EXPECT_EQ(Ask("GET", search, Bearer(RunToken(World::kKey, AttemptId::New()))).status, 401);
  for (const char* target : {"/api/v1/jobs", "/", "/agent/v1/secrets"}) {
    const int status = Ask("GET", target, Bearer(token)).status;
    EXPECT_TRUE(status == 401 || status == 403) << target << status;
  }
}

// Planted bug: answer whoever knows the address, or refuse what scripts sign for the port of their
// own machine.
TEST_F(AgentsOfOtherMachines, HostAndOriginAreChecked) {
  const auto token = Bearer(world_.Token(world_.Run("one", 1)));
  const auto with = [&](const char* name, const char* value) {
    auto fields = token;
    fields[name] = value;
    return Ask("GET", "/agent/v1/secrets", fields).status;
  };
  EXPECT_EQ(with("Host", "evil.example:7071"), 403);
  EXPECT_EQ(with("Host", "10.0.0.5:7071"), 403);
  EXPECT_EQ(with("Host", "127.0.0.1:41234"), 200);
  EXPECT_EQ(with("Origin", "https://127.0.0.1"), 403);
}

// Planted bug: judge a request by who is at the other end of the connection, which is the agent.
TEST_F(AgentsOfOtherMachines, AScriptsS3RequestsPassThroughItsAgent) {
  const auto attempt = world_.Run("one", 1);
  Logger log(-1, world_.clock(), LogLevel::kOff);
  const auto line = Line(world_.Token(attempt));
  const auto script = ScriptLine::Start({line, dir_ / "port-of-script", log}).value();
  HttpClient client(Endpoint::Parse(script->url()).value());
  const auto host = script->url().substr(7);
  const auto key = world_.KeyOf(attempt);
  EXPECT_EQ(client.Do(Signed("PUT", "/bucket", host, key))->status, 200);
  const auto list = client.Do(Signed("GET", "/", host, key)).value();
  EXPECT_EQ(list.status, 200);
  EXPECT_NE(list.body.find("<Name>bucket</Name>"), std::string::npos) << list.body;
  EXPECT_EQ(client.Do(Signed("GET", "/", host, {key.id, "wrong"}))->status, 403);
  EXPECT_EQ(client.Get("/")->status, 401);
  EXPECT_EQ(client.Get("/agent/v1/secrets")->status, 401) << "the agent's token is not lent";
}

// Planted bug: make a key at each start.
TEST(AgentsListener, IsTheSameServerAfterARestartUntilItsKeyIsAnotherOne) {
  const TestDir dir;
  auto world = std::make_unique<World>(dir.path());
  const std::string url = world->listener().url();
  const auto line = ServerLine::To(url, world->listener().pin(), "t").value();
  auto client = line.Client();
  EXPECT_EQ(client.Get("/")->status, 401);
  world.reset();
  world = std::make_unique<World>(dir.path());
  EXPECT_EQ(world->listener().url(), url) << "the port is kept";
  EXPECT_EQ(client.Get("/")->status, 401);
  world.reset();
  ASSERT_TRUE(RemoveTree(dir / "server/agents.key"));
  world = std::make_unique<World>(dir.path());
  EXPECT_EQ(world->listener().url(), url);
  const auto reply = client.Get("/");
  ASSERT_FALSE(reply);
  EXPECT_TRUE(IsStranger(reply.error())) << reply.error().what;
}

TEST(AgentsListener, SaysThatItsPortIsTakenOrTakesAnotherOne) {
  const TestDir dir;
  const TestDir other_dir;
  World world(dir.path());
  const auto port = Endpoint::Parse(world.listener().url())->port;
  EXPECT_EQ(KeptPort(dir.path(), "agents.port"), port);
  // The home of another server has the same port in its file.
  ASSERT_TRUE(KeepPort(other_dir.path(), port, "agents.port"));
  World moved(other_dir.path());
  EXPECT_NE(moved.listener().url(), world.listener().url());
  EXPECT_NE(moved.listener().notice().find(std::to_string(port)), std::string::npos);
  EXPECT_NE(KeptPort(other_dir.path(), "agents.port"), port);
  Home home;
  home.root = other_dir.path();
  const AgentsSettings fixed{"127.0.0.1", port, "127.0.0.1"};
  const auto refused = moved.OnLoop([&]() -> Status {
    Loop loop;
    auto router = Router();
    AwsFront aws(moved.context());
    auto opened = AgentsListener::Open(
        {loop, moved.context(), router, aws, HttpServerOptions{}, home, fixed});
    return opened ? Ok() : Status(tl::unexpected(opened.error()));
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_NE(refused.error().why.find(std::to_string(port)), std::string::npos);
  EXPECT_NE(refused.error().hint.find("agents.listen"), std::string::npos);
}

// Planted bug: give every back end's agents the socket.
TEST(LeadToServer, GoesByTheBackEndThatStartsTheAgent) {
  const TestDir dir;
  World world(dir.path());
  AttemptPlan here;
  ASSERT_TRUE(LeadToServer("/home/server.sock", &world.listener(), here));
  EXPECT_EQ(here.server, "unix:/home/server.sock");
  EXPECT_EQ(here.pin, "");
  AttemptPlan there;
  there.placement.backend = "machine";
  ASSERT_TRUE(LeadToServer("/home/server.sock", &world.listener(), there));
  EXPECT_EQ(there.server, world.listener().url());
  EXPECT_EQ(there.pin, world.listener().pin());
  AttemptPlan nowhere;
  nowhere.placement.backend = "machine";
  const auto refused = LeadToServer("/home/server.sock", nullptr, nowhere);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_NE(refused.error().why.find("machine"), std::string::npos);
  EXPECT_NE(refused.error().hint.find("agents: {listen:"), std::string::npos);
  EXPECT_TRUE(LeadToServer("/home/server.sock", nullptr, here)) << "this machine needs no listener";
}

}  // namespace
}  // namespace athanor
