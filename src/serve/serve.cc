#include "serve/serve.h"

#include <fcntl.h>
#include <malloc.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/exec/thread_pool.h"
#include "base/id_floor.h"
#include "base/io/files.h"
#include "base/io/folder_hints.h"
#include "base/log.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "door/aws/aws_front.h"
#include "door/cloudwatch/cloudwatch.h"
#include "door/doors.h"
#include "door/native/artifact_places.h"
#include "door/sagemaker/contract.h"
#include "door/sagemaker/register.h"
#include "door/trial_jobs.h"
#include "launch/process/process_backend.h"
#include "link/aws_environment.h"
#include "link/server_record.h"
#include "net/http/http_server.h"
#include "net/loop.h"
#include "record/db/broken_log.h"
#include "record/db/database.h"
#include "record/keys/key_file.h"
#include "record/objects/directory_object_store.h"
#include "record/studies/study_store.h"
#include "run/agent/folder_watch.h"
#include "run/isolate/job_peers.h"
#include "run/isolate/start_lane.h"
#include "run/supervisor/launch_supervisor.h"
#include "serve/agents_listener.h"
#include "serve/home_lock.h"
#include "serve/kept_port.h"
#include "serve/machine.h"
#include "serve/service_unit.h"
#include "serve/settings.h"
#include "serve/test_machine.h"
#include "serve/upkeep.h"
#include "serve/version.h"
#include "steer/admission.h"
#include "steer/attempt_plans.h"
#include "steer/hub.h"
#include "steer/loss_rates.h"
#include "steer/point_intake.h"
#include "steer/removal.h"
#include "steer/silence_watch.h"
#include "study/studies.h"
#include "track/trash.h"

namespace athanor {
namespace {

constexpr int kLargeBlock = 1 << 20;
constexpr rlim_t kOwnFiles = 512;
constexpr Millis kShortLife{60'000};  // one that was killed within it died soon

// As many as there are descriptors for: clients must never take those of the store's own files.
// `shares`: of how many servers this is one.
HttpServerOptions PlacesHere(size_t shares) {
  HttpServerOptions options;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return options;
  const size_t free = (files.rlim_cur - std::min<rlim_t>(files.rlim_cur / 2, kOwnFiles)) / shares;
  options.max_connections = std::min(options.max_connections, free);
  options.unix_places = options.max_connections / 16;
  options.max_per_peer = options.max_connections / 2;
  return options;
}

std::string UserName() {
  if (const auto* entry = ::getpwuid(::getuid())) return entry->pw_name;
  return std::to_string(::getuid());
}

// What to type to start such a server again.
std::string CommandOf(const ServeOptions& options) {
  if (options.by == StartedBy::kCommand) return "ath server start";
  if (options.by == StartedBy::kService) return SystemctlFor(options.unit, "start");
  std::string command = "ath serve";
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) command += std::string(" ") + flag + " " + ShellQuote(value);
  };
  if (options.port && *options.port != 0) add("--port", std::to_string(*options.port));
  if (options.address != ServeOptions().address) add("--address", options.address);
  add("--tls-cert", options.tls_cert);
  add("--tls-key", options.tls_key);
  add("--mlflow-artifact-root", options.mlflow_artifact_root);
  if (options.simulate) command += " --simulate";
  return command;
}

// Everything that a server owns, built in order and torn down in reverse.
class Server {
 public:
  explicit Server(const ServeOptions& options)
      : options_(options), home_(options.home), log_(STDERR_FILENO, clock_) {}

  Result<int> Run() {
    auto status = Open();
    if (!status) {
      run_writes_.Stop();
      // Another one was there first, or it is no longer needed.
      if (options_.revive && status.error().code == ErrorCode::kConflict) return 0;
      return tl::unexpected(status.error());
    }
    Announce();
    {
      const FolderWatch folder(EndWithHome());
      loop_.Run();
      // From here on no one starts it again, however it ends.
      if (!failed_) RemoveServerRecord(home_.root);
      Close();
    }
    return failed_ ? 1 : 0;
  }

 private:
  void Close() {
    jobs_->GiveUpWaiting();
    studies_->Stop();
    searches_.Stop();
    engine_->Stop();
    http_->Stop();
    if (agents_) agents_->Stop();
    peer_looks_.Stop();
    readers_.Stop();
    transfers_.Stop();
    hashers_.Stop();
    upkeep_->Stop();
    run_writes_.Stop();
    upkeep_->Finish();
    ::unlink(home_.socket().c_str());
  }

  FolderWatch::Options EndWithHome() {
    return {home_.root,
            [this] {
              log_.Log(LogLevel::kError, "the home is gone: ending", {{"home", home_.root}});
              loop_.Post([this] { loop_.Stop(); });
            },
            [] { ::_exit(1); }};
  }

  Status Lock() {
    if (!options_.revive) ATHANOR_CHECK_OK(MakeDirs(home_.root));
    auto lock = LockHome(home_, "ath server status\nath server stop");
    if (lock) {
      lock_ = std::move(*lock);
      before_ = ReadServerRecord(home_.root);
      if (!options_.revive || (before_ && before_->by == StartedBy::kCommand)) return Ok();
      return Fail(ErrorCode::kConflict, "the server was asked to stop");
    }
    Error error = std::move(lock).error();
    if (error.code == ErrorCode::kConflict) error.what = "a server already runs for " + home_.root;
    return Fail(std::move(error));
  }

  Status Open() {
    ATHANOR_CHECK_OK(Lock());
    for (const auto& dir : {home_.server(), home_.attempts(), home_.cache(), home_.jobs()}) {
      ATHANOR_CHECK_OK(MakeDirs(dir));
    }
    for (const auto& dir : {home_.attempts(), home_.jobs()}) SpreadSubfolders(dir);
    ATHANOR_TRY(auto settings, ReadSettings(home_.settings()));
    settings_ = settings;
    // Two databases: a disk that is asked for both at once answers sooner.
    auto objects = std::async(std::launch::async, [this] {
      return OpenObjectDirectory(home_.objects(), clock_, &hashers_, &objects_notice_);
    });
    ATHANOR_TRY(database_, Database::Open(home_.database(), ServerMigrations()));
    Notice(database_->notice());
    jobs_ = std::make_unique<JobStore>(*database_);
    jobs_->WaitForRoom(home_.reserve(), [this](bool full) {
      log_.Log(LogLevel::kError, full ? "the disk is full: nothing is recorded until there is room"
                                      : "there is room again: recording goes on");
    });
    losses_ = std::make_unique<LossStore>(*database_);
    documents_ = std::make_unique<DocumentStore>(*database_);
    tokens_ = std::make_unique<TokenStore>(*database_);
    ATHANOR_TRY(secrets_, SecretStore::Open(*database_, home_.secret_key()));
    access_keys_ = std::make_unique<AccessKeys>(*database_, *secrets_);
    ATHANOR_TRY(auto blobs, BlobStore::Open(home_.blobs()));
    blobs_ = std::make_unique<BlobStore>(std::move(blobs));
    ATHANOR_TRY(series_, SeriesStore::Open(home_.series()));
    ATHANOR_TRY(logs_, LogStore::Open(home_.logs()));
    ATHANOR_CHECK_OK(OpenRuns());
    ATHANOR_TRY(ingest_key_, OpenKeyFile(home_.ingest_key()));
    ATHANOR_TRY(catalogue_, LoadCatalogue(home_.root + "/types.csv"));
    ATHANOR_TRY(objects_, objects.get());
    Notice(objects_notice_);
    NoticeLosses();
    backend_ = std::make_unique<ProcessBackend>(ProcessBackend::Options{
        home_.attempts(), ProgramPath(), true, [this] { return PathsHere(); }});
    ATHANOR_TRY(test_machine_, TestMachine());
    MakeEngine();
    ATHANOR_CHECK_OK(Listen());
    ATHANOR_CHECK_OK(engine_->Start());
    studies_->Start();
    for (int signal : {SIGTERM, SIGINT, SIGHUP}) {
      ATHANOR_CHECK_OK(loop_.OnSignal(signal, [this] { loop_.Stop(); }));
    }
    upkeep_->Start();
    silences_->Start();
    return Record();
  }

  // By which others know that it runs, and, should it be killed, that they may start it again.
  Status Record() {
    record_.by = options_.by;
    record_.pid = ::getpid();
    record_.url = context_->info.url;
    record_.again = CommandOf(options_);
    record_.started_ms = clock_.Wall().ms;
    if (options_.revive && before_ &&
        record_.started_ms - before_->started_ms < kShortLife.count()) {
      record_.revivals = before_->revivals + 1;
    }
    return WriteServerRecord(home_.root, record_);
  }

  // What happened to a store: in the log once, and shown by `ath server status`.
  void Notice(const std::string& notice) {
    if (notice.empty()) return;
    log_.Log(LogLevel::kWarning, notice);
    notices_.push_back(notice);
  }

  // What was lost at an earlier start is reported until someone has handled it.
  void NoticeLosses() {
    for (const auto& database : {home_.database(), home_.object_index()}) {
      for (const auto& broken : BrokenLogsOf(database)) {
        const std::string note = NoteOf(broken);
        const bool told = std::any_of(notices_.begin(), notices_.end(), [&](const auto& notice) {
          return notice.find(broken) != std::string::npos;
        });
        if (!told) Notice(note + "; as it was: " + broken);
      }
    }
  }

  // Jobs of before there were runs, and those whose end came when this was not running, are
  // brought in line.
  Status OpenRuns() {
    run_store_ = std::make_unique<RunStore>(*database_);
    const auto read_anew = [this] {
      log_.Log(LogLevel::kError, "a change of runs could not be kept");
      if (!runs_->Load(*run_store_)) return;
      if (const auto models = run_store_->LoadModels()) models_.Load(*models);
    };
    run_writer_ = std::make_unique<RunWriter>(
        *run_store_, run_writes_, loop_, read_anew,
        [this](JobId run, bool whole) { return runs_->RowsOf(run, whole); });
    if (!options_.mlflow_artifact_root.empty()) {
      ATHANOR_TRY(artifact_root_, ArtifactRootFrom(options_.mlflow_artifact_root));
    }
    runs_ = std::make_unique<RunBook>(*series_, artifact_root_);
    kept_metrics_ = std::make_unique<KeptMetrics>(home_.kept_metrics(), home_.series());
    ATHANOR_CHECK_OK(runs_->Load(*run_store_, kept_metrics_.get()));
    ATHANOR_TRY(const auto models, run_store_->LoadModels());
    models_.Load(models);
    ATHANOR_TRY(const auto jobs, jobs_->Stages());
    const auto newest = std::ranges::max_element(jobs, {}, &JobStage::id);
    if (newest != jobs.end()) KeepIdsAbove(newest->id.value);
    for (const auto& job : jobs) {
      if (runs_->IsInLine(job.id, job.state, job.attempts)) continue;
      ATHANOR_TRY(const auto record, jobs_->Find(job.id));
      run_writer_->Write(runs_->Mirror(record), {});
    }
    return Ok();
  }

  void MakeEngine() {
    const auto inventory = CountThisMachine();
    if (test_machine_) {
      backends_.Add(*test_machine_, inventory);
    } else {
      backends_.Add(*backend_, inventory);
    }
    Engine::Parts parts{
        loop_,
        clock_,
        *jobs_,
        writer_,
        [](const std::string&, size_t threads) { return std::make_unique<ThreadPool>(threads); },
        backends_,
        log_,
        *catalogue_,
        options_.simulate || settings_.simulate,
        [this](const JobRecord& record) { return plans_->Of(record); },
        [this](const JobRecord& record, const std::vector<StoredEvent>& events) {
          Changed(record, events);
        },
        [this](const Error& error) {
          log_.Log(LogLevel::kError, "commit failed", {{"why", error.what}});
          failed_ = true;
          loop_.Stop();
        }};
    MakePlans();
    engine_ = std::make_unique<Engine>(parts);
    silences_ = std::make_unique<SilenceWatch>(
        SilenceWatch::Parts{loop_, clock_, [this] { return engine_->Holding(); },
                            [this](JobId job) { hub_.Tell(job, News::kState); }});
    admission_ = std::make_unique<Admission>(
        Admission::Parts{clock_, *jobs_, *blobs_, *secrets_, *catalogue_, backends_,
                         settings_.rates, parts.simulate, home_.root});
    removal_ = std::make_unique<Removal>(
        Removal::Parts{loop_, *engine_, *jobs_, *logs_, *series_, *run_writer_, readers_, home_,
                       [this](JobId run) { return runs_->Remove(run); },
                       [this](JobId run) { return ArtifactFolderOf(*runs_, home_, run); }});
    upkeep_ =
        std::make_unique<Upkeep>(Upkeep::Parts{loop_, clock_, log_, *logs_, *series_, *runs_});
    ServerInfo info;
    info.version = kVersion;
    info.home = home_.root;
    info.socket = home_.socket();
    info.uid = ::getuid();
    info.user = UserName();
    info.started = clock_.Wall();
    info.simulate = parts.simulate;
    if (!parts.simulate) (void)OurIsolation();  // known by the time the first job is accepted
    info.rates = settings_.rates;
    info.notices = notices_;
    points_ = std::make_unique<PointIntake>(
        PointIntake::Parts{*series_,
                           [this](JobId run, const std::function<void()>& store) {
                             const RunBook::Storing storing(*runs_, run);
                             store();
                           },
                           [this](JobId run) {
                             hub_.Tell(run, News::kPoints);
                             studies_->PointsCame(run);
                           }});
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
                                                         *catalogue_,
                                                         inventory,
                                                         hub_,
                                                         readers_,
                                                         transfers_,
                                                         home_.artifacts(),
                                                         artifact_root_,
                                                         ingest_key_,
                                                         std::move(info),
                                                         [this] { loop_.Stop(); }});
    trial_jobs_ = std::make_unique<TrialJobs>(*context_);
    study_store_ = std::make_unique<StudyStore>(*database_);
    if (const auto rows = study_store_->List(); rows && !rows->empty()) {
      KeepIdsAbove(rows->front().id.value);
    }
    studies_ = std::make_unique<Studies>(
        Studies::Parts{loop_, searches_, clock_, log_, *study_store_, *trial_jobs_});
    context_->studies = studies_.get();
  }

  void MakePlans() {
    loss_rates_ = std::make_unique<LossRates>(*losses_, writer_);
    plans_ = std::make_unique<AttemptPlans>(AttemptPlans::Parts{
        ingest_key_, settings_.webhooks_private, *loss_rates_,
        [this](AttemptPlan& plan) { return LeadToServer(home_.socket(), agents_.get(), plan); },
        FillContract});
  }

  // Of an agent on this machine.
  HostPaths PathsHere() const {
    HostPaths paths;
    paths.cache_dir = home_.cache();
    // Where there is none, its start fails and the job says which file is missing.
    paths.supervisor =
        DefaultSupervisorPath().value_or(JoinPath(DirName(ProgramPath()), "athanor-supervisor"));
    paths.python_path = PythonPackageDir();
    paths.aws_dir = home_.aws();
    paths.url = context_->info.url;
    paths.hide_dir = paths.home = home_.root;
    return paths;
  }

  void MirrorRun(const JobRecord& record) {
    auto batch = runs_->Mirror(record);
    if (!batch.experiments.empty()) return run_writer_->Write(std::move(batch), {});
    if (!batch.empty()) run_writer_->WriteSoon(record.id, !batch.labels.empty());
  }

  void Changed(const JobRecord& record, const std::vector<StoredEvent>& events) {
    hub_.Tell(record.id, News::kState);
    MirrorRun(record);
    loss_rates_->Count(record, events);
    if (!IsTerminal(record.state)) return;
    studies_->JobChanged(record.id, true);
    hub_.Drop(record.id);
    logs_->Close(record.id);
    series_->Close(record.id);
  }

  Status Listen() {
    ATHANOR_TRY(auto router, MakeRouter(*context_));
    router_ = std::make_unique<Router>(std::move(router));
    aws_ = std::make_unique<AwsFront>(*context_);
    RegisterSageMaker(*context_, *aws_);
    RegisterCloudWatch(*aws_, *context_);
    const auto handle = [this](Request request, Responder responder) {
      if (aws_->Takes(request)) return aws_->Handle(std::move(request), responder);
      router_->Dispatch(std::move(request), responder);
    };
    http_ = std::make_unique<HttpServer>(loop_, handle,
                                         PlacesHere(settings_.agents.host.empty() ? 1 : 2));
    http_->SetBodyPolicy([this](const Request& head) {
      return aws_->Takes(head) ? aws_->PolicyFor(head) : PolicyFor(*context_, *router_, head);
    });
    http_->SetPeerJudge([this](const Request& head, std::function<void(bool)> done) {
      if (aws_->Takes(head) || !AsksWhoCalls(*context_, *router_, head)) return false;
      job_peers_.Judge(head.peer, std::move(done));
      return true;
    });
    ATHANOR_CHECK_OK(http_->ListenUnix(home_.socket(), 0600));
    bool loopback = options_.address == "127.0.0.1" || options_.address == "::1";
    bool tls = !options_.tls_cert.empty();
    if (!loopback && !tls) {
      return Fail(
          Error{ErrorCode::kInvalid, "an address other than loopback needs TLS",
                "ath serve --address " + options_.address + " --tls-cert FILE --tls-key FILE"}
              .Why("--address " + options_.address + " without --tls-cert and --tls-key")
              .Id("ATH-V0002"));
    }
    ATHANOR_TRY(const uint16_t port, ListenTcp(tls));
    ATHANOR_CHECK_OK(ListenForAgents());
    context_->info.notices = notices_;
    auto host = options_.address.find(':') == std::string::npos ? options_.address
                                                                : "[" + options_.address + "]";
    context_->info.url =
        std::string(tls ? "https://" : "http://") + host + ":" + std::to_string(port);
    // Jobs and shells that were led here before find the new address. Nothing else needs it.
    if (auto written = WriteAwsOverlay(home_.aws(), context_->info.url); !written) {
      log_.Log(LogLevel::kWarning, "AWS clients may not find this server",
               {{"why", written.error().what}});
    }
    return Ok();
  }

  Result<uint16_t> ListenAt(uint16_t port, bool tls) {
    return tls ? http_->ListenTls(options_.address, port, options_.tls_cert, options_.tls_key)
               : http_->ListenTcp(options_.address, port);
  }

  // A port that is asked for is that one or none. Else it is the one that this home had, so that
  // those who were given its address find it again.
  Result<uint16_t> ListenTcp(bool tls) {
    if (options_.port) {
      auto port = ListenAt(*options_.port, tls);
      if (port && *options_.port != 0 && *port != KeptPort(home_.root))
        ATHANOR_CHECK_OK(KeepPort(home_.root, *port));
      if (port || port.error().code != ErrorCode::kConflict) return port;
      Error error = port.error();
      error.why = "another program uses port " + std::to_string(*options_.port);
      error.hint =
          "ath serve        uses the port of this home, or a free one\n"
          "ath serve --port 0";
      error.id = "ATH-V0003";
      return Fail(std::move(error));
    }
    ATHANOR_TRY(const auto own, ListenAtOwnPort(home_.root, "port", kUsualPort, [&](uint16_t port) {
                  return ListenAt(port, tls);
                }));
    if (own.instead_of) {
      const std::string moved = "another program uses port " + std::to_string(*own.instead_of) +
                                ": this server listens on port " + std::to_string(own.port) +
                                " from now on";
      Notice(moved);
      if (own.was_kept) record_.moved = moved;  // shells may still have the old one
    }
    return own.port;
  }

  // For agents of other machines, if the settings ask for it.
  Status ListenForAgents() {
    if (settings_.agents.host.empty()) return Ok();
    ATHANOR_TRY(agents_, AgentsListener::Open({loop_, *context_, *router_, *aws_, PlacesHere(2),
                                               home_, settings_.agents}));
    Notice(agents_->notice());
    log_.Log(LogLevel::kInfo, "agents of other machines are heard",
             {{"at", agents_->url()}, {"pin", agents_->pin()}});
    return Ok();
  }

  void Announce() {
    if (options_.json) {
      Json line = {{"url", context_->info.url},
                   {"socket", home_.socket()},
                   {"pid", ::getpid()},
                   {"home", home_.root},
                   {"version", kVersion}};
      if (agents_)
        line["agents"] = {
            {"url", agents_->url()}, {"pin", agents_->pin()}, {"listens", agents_->listens()}};
      std::printf("%s\n", DumpJson(line).c_str());
    } else {
      std::printf("athanor %s listens on %s\n", kVersion, context_->info.url.c_str());
      if (agents_) std::printf("agents of other machines: %s\n", agents_->url().c_str());
    }
    std::fflush(stdout);
  }

  ServeOptions options_;
  Home home_;
  SystemClock clock_;
  Logger log_;
  Settings settings_;
  UniqueFd lock_;
  std::optional<ServerRecord> before_;  // of the server before, if it was killed
  ServerRecord record_;
  Loop loop_;
  ThreadPool writer_{1};
  ThreadPool readers_{4};    // some may be at a backup or a sweep for long
  ThreadPool transfers_{8};  // they wait for the disk, not for a processor
  ThreadPool hashers_{2};
  ThreadPool run_writes_{1};
  ThreadPool searches_{1};
  ThreadPool peer_looks_{1};
  JobPeers job_peers_{loop_, peer_looks_, home_.attempts()};
  std::unique_ptr<Database> database_;
  std::unique_ptr<JobStore> jobs_;
  std::unique_ptr<LossStore> losses_;
  std::unique_ptr<DocumentStore> documents_;
  std::unique_ptr<TokenStore> tokens_;
  std::unique_ptr<SecretStore> secrets_;
  std::unique_ptr<AccessKeys> access_keys_;
  std::unique_ptr<ObjectStore> objects_;
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<SeriesStore> series_;
  std::unique_ptr<LogStore> logs_;
  std::unique_ptr<RunStore> run_store_;
  std::unique_ptr<RunWriter> run_writer_;
  std::unique_ptr<KeptMetrics> kept_metrics_;
  std::unique_ptr<RunBook> runs_;
  ModelBook models_;
  std::optional<Catalogue> catalogue_;
  std::string ingest_key_;
  std::vector<std::string> notices_;
  std::string objects_notice_;  // of the thread that opens them, until it is done
  std::string artifact_root_ = std::string(kOwnArtifacts);
  Hub hub_;
  std::unique_ptr<PointIntake> points_;
  std::unique_ptr<ProcessBackend> backend_;
  std::unique_ptr<CommandBackend> test_machine_;
  Backends backends_;
  std::unique_ptr<LossRates> loss_rates_;
  std::unique_ptr<AttemptPlans> plans_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<SilenceWatch> silences_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<Removal> removal_;
  std::unique_ptr<Upkeep> upkeep_;
  std::unique_ptr<DoorContext> context_;
  std::unique_ptr<TrialJobs> trial_jobs_;
  std::unique_ptr<StudyStore> study_store_;
  std::unique_ptr<Studies> studies_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<AwsFront> aws_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<AgentsListener> agents_;  // null: agents of other machines are not heard
  bool failed_ = false;
};

}  // namespace

Result<int> Serve(const ServeOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  ::umask(077);
  // A long list comes from the system and goes back to it at once. By default the first one to be
  // freed makes those that follow a part of the heap.
  ::mallopt(M_MMAP_THRESHOLD, kLargeBlock);
  ::mallopt(M_TRIM_THRESHOLD, 4 * kLargeBlock);
  EnterStartLane();
  auto status = Server(options).Run();
  CloseStartLane();
  return status;
}

}  // namespace athanor
