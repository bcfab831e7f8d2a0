// The verbs of the CLI. Each returns the exit status of the process, prints results on stdout and
// messages on stderr, and supports --json.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/client.h"
#include "cli/job_pick.h"
#include "cli/submission.h"
#include "serve/home.h"
#include "serve/serve.h"

namespace athanor {

struct CompletedVerb;

struct Common {
  Home home;
  bool json = false;
  bool quiet = false;
};

struct ListOptions {
  bool all = false;
  size_t limit = 20;
  JobPick pick;
  bool watch = false;  // until Ctrl-C
};

// Jobs by name, or all that match the other options.
struct StopOptions {
  std::vector<std::string> jobs;
  JobPick pick;
  bool now = false;  // without grace
  bool yes = false;  // without asking
  bool dry_run = false;
};

struct RemoveOptions {
  std::vector<std::string> jobs;
  JobPick pick;
  bool yes = false;
  bool dry_run = false;
};

struct DuOptions {
  bool all = false;
  size_t limit = 20;
};

struct MetricsOptions {
  std::string job;
  std::string name;     // empty: all
  bool plot = false;    // the one metric, or each of them, as a chart
  bool follow = false;  // points as they arrive
};

struct LogOptions {
  std::string job;
  bool follow = false;
  std::string tail;
  std::string since;
  std::string grep;
  std::string phase = "run";
  std::string rank;
  std::string host;        // "algo-2", or 2
  bool no_prefix = false;  // lines of several ranks without the rank in front
};

struct ReplayOptions {
  std::string job;
  std::string step;   // empty: the last captured
  int64_t rank = -1;  // < 0: whichever captured last
  std::string dir;    // empty: a temporary one
  bool debug = false;
};

struct ExportOptions {
  std::string format;  // tb, csv, jsonl or mlflow
  std::string job;
  std::string to;  // empty: stdout; for tb a folder named after the job
  bool abandoned = false;
};

struct ImportOptions {
  std::string format;      // tb
  std::string from;        // a folder, or s3://bucket/prefix
  std::string experiment;  // empty: named after `from`
  bool follow = false;
};

struct RunsOptions {
  std::string filter;
  std::vector<std::string> sort;     // "metrics.loss", "loss", "-acc"
  std::vector<std::string> columns;  // the same names
  std::string experiment;
  size_t limit = 20;
};

struct TuneOptions {
  std::string file;
  std::string study;                                     // of the verbs on one
  std::vector<std::pair<std::string, std::string>> set;  // keys of the tune section, given by flag
  std::vector<std::string> params;                       // name=value
  std::vector<std::pair<std::string, std::string>> flags = {};  // of the job: see ApplyFlag
  std::string format = "csv";
  std::string to;
  std::string key;
  bool detach = false;
  bool pass = false;  // parameters as flags
  std::string time, money;
};

// Shows a submitted job until its end; the exit status is the job's.
int FollowJob(const Common& common, Client& client, const std::string& id, const std::string& name);

int RunVerb(const Common& common, const RunOptions& options);
int PsVerb(const Common& common, const ListOptions& options);
int ShowVerb(const Common& common, const std::string& job, bool sagemaker);
int LogsVerb(const Common& common, const LogOptions& options);
int WhyVerb(const Common& common, const std::string& job);
int StopVerb(const Common& common, StopOptions options);
int QueueVerb(const Common& common, const ListOptions& options);
int WaitVerb(const Common& common, const std::vector<std::string>& jobs,
             const std::string& timeout);
int ImportVerb(const Common& common, const ImportOptions& options);
int ExportVerb(const Common& common, const ExportOptions& options);
int MetricsVerb(const Common& common, const MetricsOptions& options);
int RunsVerb(const Common& common, const RunsOptions& options);
int CompareVerb(const Common& common, const std::vector<std::string>& runs);
int EventsVerb(const Common& common, const std::string& job, bool follow);
int ServerStartVerb(const Common& common);
int ServerStatusVerb(const Common& common);
int ServerStopVerb(const Common& common, const std::string& timeout);
// To a folder or an archive, by the server if one runs.
int ServerBackupVerb(const Common& common, const std::string& target);
// Into the home, which must be empty.
int ServerRestoreVerb(const Common& common, const std::string& from);
// Removes from the server's stores what no job needs; `older` is an age of caches, or empty.
int GcVerb(const Common& common, bool dry_run, const std::string& older);
int FsckVerb(const Common& common, bool repair, bool deep);
// The server as a systemd service: of the user, or with `system` of the machine. `print`: only
// shows the unit.
int ServiceInstallVerb(const Common& common, bool system, bool print);
int ServiceStatusVerb(const Common& common);
int ServiceRemoveVerb(const Common& common);
// Removes everything of this user: server, jobs, service, data.
struct UninstallOptions {
  bool dry_run = false;
  bool keep_data = false;
  bool yes = false;
};
int UninstallVerb(const Common& common, const UninstallOptions& options);
int VersionVerb(const Common& common, bool verify);

int RetryVerb(const Common& common, const std::string& job, const RunOptions& options);
int InterruptVerb(const Common& common, const std::vector<std::string>& jobs,
                  const std::string& grace);
int CheckpointsVerb(const Common& common, const std::string& job);
int ResumeVerb(const Common& common, const std::string& job, const std::string& from, bool detach);
// The exit status is that of `python -m athanor.replay`.
int ReplayVerb(const Common& common, const ReplayOptions& options);
// A search over JSON lines on stdin and stdout (tune/stdio.h); `journal` is a file or empty.
int TuneStdioVerb(const Common& common, const std::string& journal);
int TuneVerb(const Common& common, const TuneOptions& options);
int TuneListVerb(const Common& common);
int TuneShowVerb(const Common& common, const TuneOptions& options);
int TuneStopVerb(const Common& common, const TuneOptions& options);
int TuneExtendVerb(const Common& common, const TuneOptions& options);
int TuneAddVerb(const Common& common, const TuneOptions& options);
int TuneExportVerb(const Common& common, const TuneOptions& options);
int TuneRemoveVerb(const Common& common, const TuneOptions& options);
int RmVerb(const Common& common, RemoveOptions options);
// What uses the disk.
int DuVerb(const Common& common, const DuOptions& options);
int DiffVerb(const Common& common, const std::vector<std::string>& jobs);
int CpVerb(const Common& common, const std::string& from, const std::string& to);
// Next to which rank, over all hosts, or on which host.
struct ExecPlace {
  std::string host;  // "algo-2", or "2"; empty: that of the rank
  std::string rank;  // as typed; empty: the first of the host
};
int ExecVerb(const Common& common, const std::string& job, const ExecPlace& place,
             const std::vector<std::string>& command);
int TypesVerb(const Common& common, const std::string& filter, bool all, bool spot);
int SecretSetVerb(const Common& common, const std::string& name);
int SecretListVerb(const Common& common);
int SecretRemoveVerb(const Common& common, const std::string& name);
int TokenCreateVerb(const Common& common, const std::string& note, const std::string& scope,
                    const std::string& expires, bool aws);
// Prints exports for a shell, or what undoes them; `kind` is "mlflow", "aws" or, for all, empty.
int EnvVerb(const Common& common, const std::string& kind, bool unset);
int TokenListVerb(const Common& common);
int TokenRevokeVerb(const Common& common, const std::string& id);

int InitVerb(const Common& common, const std::string& file, bool force);
int CheckVerb(const Common& common);
int ExplainVerb(const Common& common, const std::string& code);
int SchemaVerb(const Common& common);
int CompletionVerb(const Common& common, const std::string& shell);
// What the scripts of CompletionVerb ask for: one candidate per line.
int CompleteVerb(const Common& common, const CompletedVerb& ath, std::vector<std::string> words);
// Pages of docs/ that are generated from tables: "errors", "states", "job-file", "settings".
int DocsVerb(const std::string& page);

}  // namespace athanor
