#include "cli/submission.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "base/ids.h"
#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/text.h"
#include "job/codec.h"
#include "job/command.h"
#include "job/object_uri.h"
#include "submit/bundle.h"
#include "submit/check.h"
#include "submit/git.h"
#include "submit/job_file.h"
#include "submit/own_venv.h"
#include "submit/spec_check.h"

extern char** environ;

namespace athanor {
namespace {

constexpr int kMostTries = 4;                  // after the first
constexpr useconds_t kFirstPauseUs = 100'000;  // doubled each time

// What a job gets from the shell it was submitted in; everything else is the
// job's own to ask for.
bool IsInherited(std::string_view name) {
  static constexpr std::string_view kNames[] = {"PATH",
                                                "HOME",
                                                "USER",
                                                "LOGNAME",
                                                "SHELL",
                                                "LANG",
                                                "LANGUAGE",
                                                "TZ",
                                                "VIRTUAL_ENV",
                                                "CONDA_PREFIX",
                                                "CONDA_DEFAULT_ENV",
                                                "PYTHONPATH",
                                                "PYTHONHOME",
                                                "PYENV_ROOT",
                                                "PYENV_VERSION",
                                                "LD_LIBRARY_PATH",
                                                "CUDA_HOME",
                                                "TMPDIR",
                                                "SSL_CERT_FILE",
                                                "SSL_CERT_DIR",
                                                "REQUESTS_CA_BUNDLE",
                                                "http_proxy",
                                                "https_proxy",
                                                "no_proxy",
                                                "HTTP_PROXY",
                                                "HTTPS_PROXY",
                                                "NO_PROXY",
                                                "OMP_NUM_THREADS",
                                                "MKL_NUM_THREADS"};
  if (StartsWith(name, "LC_")) return true;
  for (auto known : kNames) {
    if (name == known) return true;
  }
  return false;
}

std::string CurrentDir() {
  char path[4096];
  return ::getcwd(path, sizeof path) ? path : ".";
}

std::string Absolute(const std::string& base, const std::string& path) {
  if (!path.empty() && path[0] == '/') return path;
  if (path.empty() || path == ".") return base;
  return JoinPath(base, StartsWith(path, "./") ? path.substr(2) : path);
}

Result<JobSpec> ReadSpec(const RunOptions& options) {
  JobSpec spec;
  auto base = CurrentDir();
  if (!options.file.empty()) {
    // What people type before they have read anything: the script itself.
    for (auto [end, program] : {std::pair{".py", "python3"}, {".sh", "sh"}}) {
      if (!EndsWith(options.file, end)) continue;
      return Fail(Error{ErrorCode::kInvalid,
                        Printable(options.file) + " is a script, not a job file",
                        std::string("ath run -- ") + program + " " + ShellQuote(options.file)}
                      .Why("a command goes after --")
                      .Id("ATH-S0100"));
    }
    auto text = ReadFile(options.file, 16 << 20);
    if (!text) {
      Error error = text.error();
      if (error.code == ErrorCode::kNotFound) {
        error.what = "there is no job file '" + Printable(options.file) + "'";
      }
      error.hint =
          "ath init            writes a job file for the script in this folder\n"
          "ath run -- CMD      runs a command without a job file";
      error.id = "ATH-S0100";
      return Fail(std::move(error));
    }
    ATHANOR_TRY(spec, ParseJobFile(*text, options.file));
    base = Absolute(base, DirName(options.file));
  }
  if (!options.command.empty()) {
    const bool pass = PassesFlags(spec);
    spec.command = options.command;
    spec.shell = false;
    if (pass) ATHANOR_CHECK_OK(PassFlags(spec));
  }
  for (const auto& [flag, value] : options.flags) ATHANOR_CHECK_OK(ApplyFlag(spec, flag, value));
  spec.source.dir = Absolute(base, spec.source.dir);
  for (auto& channel : spec.data) {
    // Channels by flag are relative to the shell, those of a file to the file.
    if (!channel.from.empty() && channel.from[0] != '/' && !IsObjectUri(channel.from)) {
      auto here = Absolute(base, channel.from);
      channel.from = Exists(here) ? here : Absolute(CurrentDir(), channel.from);
    }
  }
  spec.debug = spec.debug || options.debug;
  InheritEnvironment(spec);
  return spec;
}

std::string CacheFileFor(const Home& home, const std::string& dir) {
  return home.cache() + "/hashes/" + Sha256Hex(dir).substr(0, 32);
}

// The pattern that leaves out a path inside the source folder. Empty: it is elsewhere.
std::string PatternOf(const std::string& path, const std::string& dir) {
  std::error_code none;
  const auto inside = std::filesystem::weakly_canonical(path, none)
                          .lexically_relative(std::filesystem::weakly_canonical(dir, none))
                          .string();
  if (inside.empty() || inside == "." || StartsWith(inside, "..")) return "";
  std::string pattern = "/";
  for (const char c : inside) {
    if (std::string_view("*?[]\\ ").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

// What is not the job's and changes all the time: a server's home inside the folder, and the file
// that this command's own output goes to (`ath run ... >run.log`).
void LeaveOutOwnFiles(const Home& home, const std::string& dir, std::vector<std::string>& ignore) {
  if (const auto own = PatternOf(home.root, dir); !own.empty()) ignore.push_back(own + "/");
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat info {};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) continue;
    std::error_code none;
    const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), none);
    if (none) continue;
    if (const auto own = PatternOf(path.string(), dir); !own.empty()) ignore.push_back(own);
  }
}

Result<SourceTree> Scan(const Home& home, const JobSpec& spec) {
  ScanOptions options;
  options.ignore = spec.source.ignore;
  LeaveOutOwnFiles(home, spec.source.dir, options.ignore);
  options.max_size = spec.source.max_size;
  options.cache_file = CacheFileFor(home, spec.source.dir);
  options.now = SystemClock().Wall();
  if (!Exists(DirName(options.cache_file))) {
    ATHANOR_CHECK_OK(MakeDirs(DirName(options.cache_file)));
  }
  auto tree = ScanSource(spec.source.dir, options);
  // The job names the folder: a mistake in the job, as far as the caller is concerned.
  if (!tree && tree.error().code == ErrorCode::kNotFound) tree.error().code = ErrorCode::kInvalid;
  return tree;
}

// A call that may be made twice, made again while the server does not answer or its reply is lost.
Result<HttpReply> DoSurely(Client& client, HttpCall call) {
  call.idempotent = true;
  auto reply = client.Do(call);
  for (int tries = 0; !reply && RowOf(reply.error().code).retry && tries < kMostTries; ++tries) {
    if (reply.error().code == ErrorCode::kExhausted) break;
    ::usleep(kFirstPauseUs << tries);
    reply = client.Do(call);
  }
  return reply;
}

Status PutBlob(Client& client, const std::string& sha, int fd, uint64_t size) {
  HttpCall call;
  call.method = "PUT";
  call.target = "/api/v1/blobs/" + sha;
  call.body_fd = fd;
  call.body_length = size;
  ATHANOR_TRY([[maybe_unused]] auto reply, DoSurely(client, std::move(call)));
  return Ok();
}

Status PutText(Client& client, const std::string& sha, const std::string& text) {
  HttpCall call;
  call.method = "PUT";
  call.target = "/api/v1/blobs/" + sha;
  call.body = text;
  ATHANOR_TRY([[maybe_unused]] auto reply, DoSurely(client, std::move(call)));
  return Ok();
}

Result<HttpReply> PostText(Client& client, const std::string& target, const std::string& text) {
  HttpCall call;
  call.method = "POST";
  call.target = target;
  call.body = text;
  call.headers.Add("Content-Type", "application/json");
  return DoSurely(client, std::move(call));
}

// Sends what the server lacks; the manifest last, so that where it is all is.
Status Upload(Client& client, const Home& home, const JobSpec& spec) {
  ATHANOR_TRY(auto tree, Scan(home, spec));
  auto manifest = WriteManifest(tree.manifest);
  if (Sha256Hex(manifest) != spec.source.bundle) {
    return Fail(ErrorCode::kConflict, "the source changed while it was being packaged",
                "run the command again");
  }
  Json names = Json::array();
  for (const auto& entry : tree.manifest.entries) {
    if (entry.kind == BundleEntry::Kind::kFile) names.push_back(entry.sha256);
  }
  ATHANOR_TRY(const auto reply,
              PostText(client, "/api/v1/blobs/missing", DumpJson(Json{{"sha256", names}})));
  ATHANOR_TRY(auto answer, ParseJson(reply.body));
  std::map<std::string, bool> missing;
  for (const auto& name : answer["missing"]) missing[name.get<std::string>()] = true;
  for (const auto& entry : tree.manifest.entries) {
    if (entry.kind != BundleEntry::Kind::kFile || !missing[entry.sha256]) continue;
    ATHANOR_TRY(auto fd, OpenSourceFile(tree, entry));
    ATHANOR_CHECK_OK(PutBlob(client, entry.sha256, fd.get(), entry.size));
    missing[entry.sha256] = false;
  }
  if (!spec.source.git_diff.empty()) {
    auto facts = ReadGitFacts(spec.source.dir);
    if (Sha256Hex(facts.diff) == spec.source.git_diff) {
      ATHANOR_CHECK_OK(PutText(client, spec.source.git_diff, facts.diff));
    }
  }
  return PutText(client, spec.source.bundle, manifest);
}

Status CheckHere(const JobSpec& spec, const SourceTree& tree) {
  auto path = spec.inherited.find("PATH");
  auto wrong = CheckBeforeSubmit(spec, tree, path == spec.inherited.end() ? "" : path->second);
  if (wrong.empty()) return Ok();
  return Fail(wrong.front());
}

// Running git costs more than all the rest of a submit. Its answer is remembered for
// as long as neither the packaged source nor HEAD changes.
std::string GitKey(const SourceSpec& source) {
  for (std::string dir = source.dir; dir.size() > 1; dir = DirName(dir)) {
    auto head = ReadFile(dir + "/.git/HEAD", 4096);
    if (!head) continue;
    std::string ref(Trim(*head));
    if (StartsWith(ref, "ref: "))
      ref += ReadFile(dir + "/.git/" + ref.substr(5), 4096).value_or("");
    return Sha256Hex(source.bundle + ref);
  }
  return {};
}

void AddGit(const Home& home, SourceSpec& source) {
  auto key = GitKey(source);
  if (key.empty()) return;
  auto cache = CacheFileFor(home, source.dir) + ".git";
  if (auto kept = ReadFile(cache, 4096)) {
    auto parts = Split(*kept, '\n');
    if (parts.size() == 4 && parts[0] == key) {
      source.git_commit = parts[1];
      source.git_branch = parts[2];
      source.git_diff = parts[3];
      return;
    }
  }
  auto facts = ReadGitFacts(source.dir);
  source.git_commit = facts.commit;
  source.git_branch = facts.branch;
  if (!facts.diff.empty()) source.git_diff = Sha256Hex(facts.diff);
  // Without a cache it is only slower.
  (void)ReplaceFile(
      cache, key + "\n" + source.git_commit + "\n" + source.git_branch + "\n" + source.git_diff)
      .ok();
}

}  // namespace

void InheritEnvironment(JobSpec& spec) {
  spec.inherited.clear();
  for (char** entry = environ; *entry; ++entry) {
    std::string_view pair = *entry;
    auto name = pair.substr(0, pair.find('='));
    if (name.size() < pair.size() && IsInherited(name) && IsUtf8(pair)) {
      spec.inherited[std::string(name)] = std::string(pair.substr(name.size() + 1));
    }
  }
}

Result<PreparedJob> PrepareJob(const Home& home, const RunOptions& options) {
  ATHANOR_TRY(auto spec, ReadSpec(options));
  return PrepareAgain(home, std::move(spec));
}

Result<PreparedJob> PrepareAgain(const Home& home, JobSpec spec) {
  PreparedJob job;
  job.spec = std::move(spec);
  ATHANOR_CHECK_OK(CheckSpec(job.spec));
  ATHANOR_TRY(auto tree, Scan(home, job.spec));
  for (const auto& venv : UseOwnVenvs(job.spec, tree)) {
    tree.notes.push_back(Printable(venv) + " is used where it is, not copied");
  }
  ATHANOR_CHECK_OK(CheckHere(job.spec, tree));
  job.spec.entry = FindEntry(job.spec, tree);
  auto text = WriteManifest(tree.manifest);
  auto& source = job.spec.source;
  source.bundle = Sha256Hex(text);
  source.files = tree.manifest.entries.size();
  source.bytes = tree.manifest.bytes;
  source.git_commit = source.git_branch = source.git_diff = "";
  AddGit(home, source);
  job.notes = tree.notes;
  return job;
}

Result<Json> PostWithSource(Client& client, const PreparedJob& job, const std::string& target,
                            const std::string& text, const Home& home) {
  auto reply = PostText(client, target, text);
  // Most often the server has this source already; only when it has not is it sent.
  if (!reply && reply.error().id == "ATH-S0203") {
    ATHANOR_CHECK_OK(Upload(client, home, job.spec));
    reply = PostText(client, target, text);
  }
  if (!reply) return tl::unexpected(reply.error());
  return ParseJson(reply->body);
}

Result<SubmittedJob> SubmitJob(Client& client, const PreparedJob& job, const std::string& key,
                               const Home& home) {
  const auto text = DumpJson(Json{{"key", key}, {"spec", ToJson(job.spec)}});
  auto accepted = PostWithSource(client, job, "/api/v1/jobs", text, home);
  if (!accepted) {
    Error error = accepted.error();
    if (RowOf(error.code).retry && error.code != ErrorCode::kExhausted) {
      error.hint += (error.hint.empty() ? "" : "\n") + std::string("ath run --key ") + key +
                    " ...    submits the same job again, without creating a second one";
    }
    return Fail(std::move(error));
  }
  SubmittedJob out;
  out.id = accepted->value("id", "");
  out.name = accepted->value("name", "");
  out.same_as = accepted->value("same_as", "");
  out.warning = accepted->value("warning", "");
  out.notes = accepted->value("notes", std::vector<std::string>());
  out.simulated = accepted->value("simulated", false);
  return out;
}

}  // namespace athanor
