// server backup, server restore.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/screen/output.h"
#include "cli/screen/refuse.h"
#include "cli/screen/reports.h"
#include "cli/verbs/verbs.h"
#include "record/backup/backup.h"
#include "record/db/broken_log.h"
#include "record/db/database.h"
#include "record/jobs/job_store.h"
#include "serve/home_lock.h"
#include "serve/version.h"
#include "steer/decide.h"

namespace athanor {
namespace {

constexpr Millis kLongestBackup{24 * 3600 * 1000};  // a backup says nothing until it is done
constexpr char kUnfinished[] = ".athanor-restoring";

std::string Absolute(const std::string& path) {
  if (!path.empty() && path.front() == '/') return path;
  char cwd[4096];
  return ::getcwd(cwd, sizeof cwd) ? JoinPath(cwd, path) : path;
}

Json ViewOf(const BackupInfo& info) {
  return {{"path", info.path},          {"version", info.version},      {"home", info.home},
          {"made", Rfc3339(info.made)}, {"schema", info.schema},        {"jobs", info.jobs},
          {"live", info.live},          {"files", info.files},          {"bytes", info.bytes},
          {"linked", info.linked},      {"secret_key", info.secret_key}};
}

Result<Json> BackupByServer(Client& client, const std::string& target) {
  HttpCall call;
  call.method = "POST";
  call.target = "/api/v1/server/backup";
  call.headers.Add("Content-Type", "application/json");
  call.body = DumpJson(Json{{"to", target}});
  call.read_timeout = kLongestBackup;
  ATHANOR_TRY(auto reply, client.Do(std::move(call)));
  return ParseJson(reply.body);
}

// By the server when one runs, so that there is one writer; else from the files.
Result<Json> BackUp(const Home& home, const std::string& target) {
  ATHANOR_TRY(auto client, Client::Connect(home, false));
  if (client.remote()) return BackupByServer(client, target);
  // The holder of the lock answers, or will soon.
  if (!Exists(home.root)) {
    return Fail(Error{ErrorCode::kNotFound, "there is nothing to back up in " + home.root,
                      "is ATHANOR_HOME the right folder?"}
                    .Id("ATH-V0021"));
  }
  auto lock = LockHome(home, "");
  if (!lock && lock.error().code == ErrorCode::kConflict) return BackupByServer(client, target);
  if (!lock) return tl::unexpected(lock.error());
  // SQLite would take what is in front of the damage for all there is.
  for (const auto& database : {home.database(), home.object_index()}) {
    ATHANOR_TRY(const auto log, LookAtLog(database));
    if (log.kind == LogState::Kind::kWhole) continue;
    return Fail(ErrorCode::kCorrupt, "the backup was not made: " + log.said,
                "ath fsck --repair    saves what can be saved; then run the backup again");
  }
  ATHANOR_TRY(auto made, MakeBackup(home, target, kVersion));
  return ViewOf(made);
}

// Empty but for what a restore that was killed left, which is taken away.
Status MakeRoom(const Home& home) {
  ATHANOR_TRY(auto names, ListDir(home.root));
  std::erase_if(names, [&](const std::string& name) {
    return name == "server.lock" || name == "server.log" || name == "server.sock";
  });
  auto ours = [](const std::string& name) {
    constexpr std::string_view kNames[] = {kUnfinished,     "blobs",     "jobs",         "server",
                                           "settings.yaml", "types.csv", "restored.json"};
    return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
  };
  bool unfinished = Exists(JoinPath(home.root, kUnfinished)) && !Exists(home.database()) &&
                    std::all_of(names.begin(), names.end(), ours);
  if (!names.empty() && !unfinished) {
    return Fail(Error{ErrorCode::kConflict, home.root + " is not empty",
                      "ATHANOR_HOME=/a/new/folder ath server restore BACKUP\nmv " +
                          ShellQuote(home.root) + " " + ShellQuote(home.root + ".old")}
                    .Why("it contains " + Printable(names.front()))
                    .Id("ATH-V0020"));
  }
  for (const auto& name : names) ATHANOR_CHECK_OK(RemoveTree(JoinPath(home.root, name)));
  return MakeDirs(JoinPath(home.root, kUnfinished));
}

// What ran when the backup was made belongs to the server that ran it then: here those
// attempts are lost, and effects that were still to be performed are void.
Result<uint64_t> LoseAttempts(const StoreLayout& layout, const BackupInfo& info) {
  ATHANOR_TRY(auto database, Database::Open(layout.database(), ServerMigrations()));
  JobStore jobs(*database);
  JobBatch batch;
  ATHANOR_TRY(auto outbox, jobs.Outbox());
  for (const auto& effect : outbox) batch.performed.push_back(effect.id);
  ATHANOR_TRY(auto live, jobs.Live());
  uint64_t lost = 0;
  for (const auto& record : live) {
    if (!HoldsRoom(record.state) || !record.current()) continue;
    Cause cause{"agent_lost",
                "the server was restored from a backup made at " + Rfc3339(info.made) +
                    "; processes that were running then are not part of it",
                "ath retry " + ShellQuote(record.spec.name), ""};
    ATHANOR_TRY(auto outcome,
                Decide(record, HostLost{record.current()->id, cause}, SystemClock().Wall()));
    batch.records.push_back(std::move(outcome.record));
    for (auto& event : outcome.events) batch.events.push_back(std::move(event));
    ++lost;
  }
  ATHANOR_CHECK_OK(jobs.Commit(batch));
  return lost;
}

struct Restored {
  BackupInfo info;
  uint64_t lost = 0;
  FsckReport report;
};

Result<Restored> Restore(const Home& home, const std::string& from) {
  ATHANOR_CHECK_OK(MakeDirs(home.root));
  ATHANOR_TRY(auto lock, LockHome(home, "ATHANOR_HOME=/a/new/folder ath server restore BACKUP"));
  ATHANOR_CHECK_OK(MakeRoom(home));
  Restored done;
  const StoreLayout fresh{JoinPath(home.root, kUnfinished)};
  auto laid = UnpackBackup(from, fresh.root);
  if (!laid) {
    (void)RemoveTree(fresh.root).ok();
    return tl::unexpected(laid.error());
  }
  done.info = std::move(*laid);
  ATHANOR_TRY(done.lost, LoseAttempts(fresh, done.info));
  ATHANOR_TRY(auto names, ListDir(fresh.root));
  // The database comes last: until then the home counts as unfinished.
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name != "server"; });
  for (const auto& name : names) {
    auto to = JoinPath(home.root, name);
    if (name == "backup.json") to = JoinPath(home.root, "restored.json");
    if (::rename(JoinPath(fresh.root, name).c_str(), to.c_str()) != 0) {
      return FailErrno("move to " + to, errno);
    }
  }
  ATHANOR_CHECK_OK(RemoveTree(fresh.root));
  ATHANOR_TRY(done.report, Fsck(home, {false, true}));
  return done;
}

}  // namespace

int ServerBackupVerb(const Common& common, const std::string& target) {
  ::umask(077);
  auto made = BackUp(common.home, Absolute(target));
  if (!made) return Refuse(made.error(), common.json);
  if (common.json) {
    std::printf("%s\n", DumpJson(*made).c_str());
    return 0;
  }
  auto number = [&](const char* key) { return made->value(key, uint64_t{0}); };
  std::printf("backed up %s (%s live), %s, %s to %s\n", Counted(number("jobs"), "job").c_str(),
              std::to_string(number("live")).c_str(), Counted(number("files"), "file").c_str(),
              HumanBytes(number("bytes")).c_str(), made->value("path", "").c_str());
  if (made->value("secret_key", false)) {
    std::puts(
        "the backup contains the key to your secrets (server/secret.key, 0600): keep it as "
        "safe as the secrets");
  }
  if (number("linked") > 0) {
    std::printf(
        "the backup shares %s with ATHANOR_HOME through hard links: copy it to another "
        "disk, in case this one fails\n",
        Counted(number("linked"), "blob").c_str());
  }
  PrintHint("ATHANOR_HOME=/a/new/folder ath server restore " + ShellQuote(made->value("path", "")),
            common.quiet);
  return 0;
}

int ServerRestoreVerb(const Common& common, const std::string& from) {
  ::umask(077);
  auto done = Restore(common.home, Absolute(from));
  if (!done) return Refuse(done.error(), common.json);
  if (common.json) {
    Json view = {{"home", common.home.root},
                 {"backup", ViewOf(done->info)},
                 {"lost_attempts", done->lost},
                 {"fsck", ReportView(done->report)}};
    std::printf("%s\n", DumpJson(view).c_str());
    return done->report.left() == 0 ? 0 : 1;
  }
  std::printf("restored %s, as of %s, to %s\n", Counted(done->info.jobs, "job").c_str(),
              Rfc3339(done->info.made).c_str(), common.home.root.c_str());
  if (done->lost > 0) {
    std::printf("%llu of them were running then; those attempts are recorded as lost\n",
                static_cast<unsigned long long>(done->lost));
  }
  PrintFindings(done->report);
  PrintHint("ath serve    (starts the waiting jobs)", common.quiet);
  return done->report.left() == 0 ? 0 : 1;
}

}  // namespace athanor
