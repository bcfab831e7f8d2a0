#include "cli/errors.h"

#include <algorithm>

#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "job/causes.h"
#include "submit/errors.h"

namespace athanor {
namespace {

struct Row {
  const char* code;
  const char* title;
  const char* text;
};

constexpr Row kRows[] = {
    {"ATH-A0001", "not an agent's token", "Only the agent of a running attempt may report about it; its token is void once the attempt is over."},
    {"ATH-A0002", "not authorised", "No credential was presented and the caller is not this server's own user on this machine, or the token is unknown, expired or revoked. The owner makes one with `ath token create`; give it as ATHANOR_TOKEN."},
    {"ATH-A0003", "wrong Host", "The request named another host than this server. This check stops pages that reach a local server through a DNS name of theirs."},
    {"ATH-A0004", "foreign Origin", "A web page of another origin called this server. That is never allowed."},
    {"ATH-A0005", "route without a permission", "A route is in no permission table. That is a bug: please report it."},
    {"ATH-A0006", "scope too small", "The token is valid but its scope does not cover the call: read looks, submit runs and stops jobs, admin also manages secrets and tokens."},
    {"ATH-A0007", "CSRF token missing", "A browser asked for a change without the X-Athanor-Csrf header that GET /api/v1/session gives."},
    {"ATH-C0001", "no server", "No server answered on the socket of ATHANOR_HOME and none could be started. `ath serve` in the foreground shows why."},
    {"ATH-C0002", "the server did not answer", "The connection failed or was cut. Submits carry a key, so trying again never makes two jobs."},
    {"ATH-C0010", "command line", "The arguments were not understood. `ath VERB --help` lists them; everything after -- belongs to the job."},
    {"ATH-C0011", "nothing to run", "`ath run` needs a job file, or a command after --."},
    {"ATH-C0012", "not a regular expression", "--grep takes an RE2 expression. Quote it, so that the shell leaves it alone."},
    {"ATH-C0013", "not over yet", "`ath wait --timeout` gave up; the job goes on."},
    {"ATH-C0020", "no job in the source of a copy", "`ath cp` copies from JOB:path to a local path."},
    {"ATH-C0021", "no such part", "A finished job keeps model/ (what the script wrote to SM_MODEL_DIR), output/ (SM_OUTPUT_DATA_DIR) and code/ (its source)."},
    {"ATH-C0022", "no such file in an output", "The archive does not have that member; copy the whole folder to see what is there."},
    {"ATH-C0023", "nothing to execute", "`ath exec` needs a command after --."},
    {"ATH-C0030", "job file exists", "`ath init` does not write over a file unless told to with --force."},
    {"ATH-C0031", "no such code", "Codes are printed by errors and by `ath why`."},
    {"ATH-C0032", "no such shell", "Completion exists for bash, zsh and fish."},
    {"ATH-S0201", "key used for another job", "An idempotency key names one submit. The same key with the same job gives the same id; with another job it is refused."},
    {"ATH-S0202", "disk too full", "Jobs are accepted only while 64 MB are free where the server keeps its data, so that what runs can be recorded."},
    {"ATH-S0203", "source not uploaded", "The job names a source bundle the server does not have. Clients upload what POST /api/v1/blobs/missing names, the manifest last."},
    {"ATH-V0001", "a server already runs", "One server per ATHANOR_HOME: a lock guarantees one writer."},
    {"ATH-V0002", "TLS needed", "A server that listens on another address than loopback must have a certificate, and callers need tokens."},
    {"ATH-V0003", "port taken", "Another program listens there. --port 0 takes a free one and says which."},
    {"ATH-V0020", "the home is not empty", "A backup is restored into an empty ATHANOR_HOME only, so that two homes are never mixed."},
    {"ATH-V0010", "settings", "settings.yaml of the server has a key or a value it cannot have."},
};

}  // namespace

std::vector<Explained> AllCodes() {
  std::vector<Explained> all;
  for (const auto& row : kRows) all.push_back({row.code, row.title, row.text});
  for (const auto& row : SubmitErrors()) {
    all.push_back({std::string(row.id), std::string(row.title), std::string(row.explain)});
  }
  for (const auto& row : Causes()) {
    all.push_back({std::string(row.code), std::string(row.title), std::string(row.explain)});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.code < b.code; });
  return all;
}

std::optional<Explained> ExplainCode(std::string_view code) {
  auto wanted = ToUpper(code);
  for (auto& row : AllCodes()) {
    if (row.code == wanted) return row;
  }
  if (const auto* cause = FindCause(ToLower(code))) return ExplainCode(cause->code);
  return std::nullopt;
}

std::string ErrorsPage() {
  std::string out = "# Errors and causes\n\nMade by `athanor docs errors`; a test compares it with the "
                    "program. `ath explain CODE` prints one row.\n\n## Exit statuses\n\n`ath run` and "
                    "`ath wait` pass the script's own status through (0-255), and 128 + n when signal n "
                    "ended it. When the script never ran, or for every other verb:\n\n"
                    "| status | meaning |\n|---|---|\n";
  for (auto code : {ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kConflict, ErrorCode::kUnavailable,
                    ErrorCode::kDenied, ErrorCode::kTimeout, ErrorCode::kExhausted, ErrorCode::kCorrupt,
                    ErrorCode::kCancelled, ErrorCode::kBug}) {
    out += fmt::format("| {} | {} |\n", RowOf(code).exit_status, RowOf(code).name);
  }
  for (const auto& row : Causes()) {
    if (row.exit_status != 0) out += fmt::format("| {} | {} ({}) |\n", row.exit_status, row.title, row.code);
  }
  out += "| 15 | the job failed for another reason before the script ran |\n| 130 | Ctrl-C: left the job |\n"
         "\nWith `--json`, a failure of ours carries `\"origin\": \"athanor\"`.\n\n## Codes\n\n"
         "| code | what | meaning |\n|---|---|---|\n";
  for (const auto& row : AllCodes()) {
    out += fmt::format("| {} | {} | {} |\n", row.code, row.title, row.text);
  }
  return out;
}

}  // namespace athanor
