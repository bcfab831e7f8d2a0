// ath import tb FOLDER|s3://BUCKET/PREFIX: imports the scalars of event files that were written
// elsewhere.
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/event_source.h"
#include "cli/fetch.h"
#include "cli/run_sender.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"
#include "job/object_uri.h"

namespace athanor {
namespace {

constexpr size_t kBatch = 20'000;  // points a request
constexpr int kLookMillis = 1'000;
constexpr int kListMillis = 5'000;  // of a bucket

// Brings event files of a prefix into a folder, again when they change.
class BucketCopy {
 public:
  BucketCopy(Client& client, ObjectUri prefix, std::string dir)
      : client_(client), prefix_(std::move(prefix)), dir_(std::move(dir)) {}

  // `changed` gets the name of each file that was brought.
  Status Bring(const std::function<void(const std::string&)>& changed) {
    std::string after;
    do {
      std::string target = "/api/v1/objects?uri=" + UrlEncode(prefix_.ToString());
      if (!after.empty()) target += "&after=" + UrlEncode(after);
      ATHANOR_TRY(const auto page, client_.Get(target));
      for (const auto& object : page["objects"]) {
        const auto key = Text(object, "key");
        if (BaseName(key).find("tfevents") == std::string::npos) continue;
        ATHANOR_TRY(const auto name, NameInChannel(prefix_.key, key));
        auto& known = etags_[name];
        if (name.empty() || known == Text(object, "etag")) continue;
        ATHANOR_CHECK_OK(Fetch(key, name));
        known = Text(object, "etag");
        changed(name);
      }
      after = Text(page, "after");
    } while (!after.empty());
    return Ok();
  }

 private:
  Status Fetch(const std::string& key, const std::string& name) {
    const std::string path = JoinPath(dir_, name);
    ATHANOR_CHECK_OK(MakeDirs(DirName(path)));
    const std::string part = path + ".part";
    ::unlink(part.c_str());  // of an earlier try
    ATHANOR_CHECK_OK(FetchFile(
        client_, "/api/v1/object?uri=" + UrlEncode(ObjectUri{prefix_.bucket, key}.ToString()),
        part));
    if (::rename(part.c_str(), path.c_str()) != 0) return FailErrno("write " + path, errno);
    return Ok();
  }

  Client& client_;
  const ObjectUri prefix_;
  const std::string dir_;
  std::map<std::string, std::string> etags_;
};

// Ctrl-C, as something to wait for.
class Interrupt {
 public:
  Interrupt() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC));
  }
  bool Within(int millis) const {
    pollfd waited{fd_.get(), POLLIN, 0};
    return ::poll(&waited, 1, millis) > 0;
  }

 private:
  UniqueFd fd_;
};

std::string Origin(const std::string& from) {
  if (IsObjectUri(from)) {
    std::string origin = from;
    while (origin.size() > 5 && origin.back() == '/') origin.pop_back();
    return origin;
  }
  char real[PATH_MAX];
  char host[256] = "localhost";
  (void)::gethostname(host, sizeof(host) - 1);
  return std::string("file://") + host +
         (::realpath(from.c_str(), real) != nullptr ? std::string(real) : from);
}

Status ImportAll(Client& client, const ImportOptions& options, RunSender& sender) {
  std::optional<Scratch> scratch;
  std::optional<BucketCopy> bucket;
  std::string dir = options.from;
  if (IsObjectUri(options.from)) {
    ATHANOR_TRY(auto prefix, ObjectUri::Parse(options.from));
    scratch.emplace("import");
    dir = scratch->path();
    if (dir.empty()) {
      return Fail(ErrorCode::kUnavailable, "no temporary folder could be made",
                  "set TMPDIR to a folder that you may write");
    }
    bucket.emplace(client, std::move(prefix), dir);
  }
  ATHANOR_TRY(auto source, EventSource::Open(dir));
  std::optional<Interrupt> interrupt;
  if (options.follow) interrupt.emplace();
  do {
    if (bucket) {
      ATHANOR_CHECK_OK(bucket->Bring([&](const std::string& name) { source.Again(name); }));
    }
    ATHANOR_CHECK_OK(source.Poll(
        kBatch, [&](EventSource::Run points) { return sender.Take(std::move(points)); }));
    ATHANOR_CHECK_OK(sender.Wait());
    for (const auto& problem : source.TakeProblems()) std::fprintf(stderr, "%s\n", problem.c_str());
  } while (interrupt && !interrupt->Within(bucket ? kListMillis : kLookMillis));
  if (source.files() == 0) {
    return Fail(
        Error{ErrorCode::kNotFound, "no event files below " + Printable(options.from),
              "ath import tb DIR    with the folder that you would give to tensorboard --logdir"}
            .Why("their names contain \"tfevents\"")
            .Id("ATH-C0051"));
  }
  return sender.Finish();
}

}  // namespace

int ImportVerb(const Common& common, const ImportOptions& options) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  const std::string origin = Origin(options.from);
  const std::string experiment = options.experiment.empty() ? BaseName(origin) : options.experiment;
  RunSender sender(common.home, origin, experiment);
  if (auto done = ImportAll(*client, options, sender); !done.ok()) {
    Error error = done.error();
    if (error.hint.empty())
      error.hint = "type the same again: what is there already is not doubled";
    return Refuse(error, common.json);
  }
  Json runs = Json::array();
  uint64_t read = 0;
  uint64_t stored = 0;
  for (const auto& [name, run] : sender.runs()) {
    read += run.read;
    stored += run.stored;
    runs.push_back({{"id", run.id},
                    {"name", name},
                    {"new", run.made},
                    {"points", run.read},
                    {"stored", run.stored}});
  }
  if (common.json) return PrintJson(Json{{"experiment", experiment}, {"runs", std::move(runs)}});
  std::printf("%zu run%s of experiment %s: %llu points, %llu of them new\n", sender.runs().size(),
              sender.runs().size() == 1 ? "" : "s", Printable(experiment).c_str(),
              static_cast<unsigned long long>(read), static_cast<unsigned long long>(stored));
  PrintHint("ath runs --experiment " + ShellQuote(experiment), common.quiet);
  return 0;
}

}  // namespace athanor
