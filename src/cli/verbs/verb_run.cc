#include <cstdio>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/ids.h"
#include "base/io/files.h"
#include "base/text/text.h"
#include "cli/attach.h"
#include "cli/client.h"
#include "cli/preflight.h"
#include "cli/screen/output.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"
#include "job/codec.h"
#include "submit/notes.h"

namespace athanor {
namespace {

constexpr uint64_t kMostRequest = 4u << 20;

// Lines before the job starts: what is not safe, what runs, from what, on what.
void PrintHead(const SubmittedJob& job, const PreparedJob& prepared, const Terminal& terminal) {
  if (!job.warning.empty()) std::fprintf(stderr, "  warning %s\n", Printable(job.warning).c_str());
  const auto& source = prepared.spec.source;
  std::string where =
      prepared.spec.resources.type.empty() ? "this machine" : prepared.spec.resources.type;
  if (job.simulated) where += " (simulated)";
  if (const auto ranks = RanksText(prepared.spec.resources); !ranks.empty()) where += ", " + ranks;
  std::fprintf(stderr, "  job     %s (%s)   on %s\n", Paint(terminal, Ink::kBold, job.name).c_str(),
               job.id.substr(job.id.size() - 6).c_str(), where.c_str());
  std::fprintf(stderr, "  source  %s, %s\n", Counted(source.files, "file").c_str(),
               HumanBytes(source.bytes).c_str());
  for (const auto& note : prepared.notes) std::fprintf(stderr, "  note    %s\n", note.c_str());
  for (const auto& note : job.notes)
    std::fprintf(stderr, "  note    %s\n", Printable(note).c_str());
  if (!job.same_as.empty()) {
    std::fprintf(stderr, "  note    same source, parameters and data as %s: ath diff %s %s\n",
                 job.same_as.c_str(), job.same_as.c_str(), job.name.c_str());
  }
}

// The exit status if the run ends here; none: continue and submit.
std::optional<int> PreflightFirst(const Common& common, const RunOptions& options,
                                  const PreparedJob& prepared) {
  auto wanted = options.preflight      ? Result<bool>(true)
                : options.no_preflight ? Result<bool>(false)
                                       : WantsPreflight(common.home, prepared.spec);
  if (!wanted) return Refuse(wanted.error(), common.json);
  if (!*wanted) return std::nullopt;
  // Before a real run, the report is only a message: the run's own lines follow it.
  Common talk = common;
  talk.json = common.json && options.preflight;
  auto outcome = RunPreflight(talk, options, prepared);
  if (!outcome) return Refuse(outcome.error(), common.json);
  if (outcome->cancelled) return 130;
  if (!outcome->passed) {
    const auto error =
        Error{ErrorCode::kInvalid, "the preflight found problems, so the job was not submitted",
              "ath run --no-preflight ...    submits it anyway"}
            .Id("ATH-C0042");
    if (!talk.json) PrintError(error, common.json);
    return RowOf(error.code).exit_status;
  }
  if (!options.preflight) return std::nullopt;
  if (!talk.json)
    PrintHint("ath run " + (options.file.empty() ? "..." : ShellQuote(options.file)), common.quiet);
  return 0;
}

// A request of SageMaker's API in place of a job file: the server reads it.
int RunRequest(const Common& common, const RunOptions& options) {
  auto text = options.sagemaker == "-" ? ReadFile("/dev/stdin", kMostRequest)
                                       : ReadFile(options.sagemaker, kMostRequest);
  if (!text) return Refuse(text.error(), common.json);
  auto request = ParseJson(*text);
  if (!request) {
    Error error = request.error();
    error.what = options.sagemaker + " is not valid JSON: " + error.what;
    error.hint = "aws sagemaker create-training-job --generate-cli-skeleton   prints a template";
    error.id = "ATH-C0043";
    return Refuse(error, common.json);
  }
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto made = client->Post("/api/v1/sagemaker/training-jobs", *text);
  if (!made) return Refuse(made.error(), common.json);
  const auto name = made->value("name", "");
  auto job = client->Get("/api/v1/jobs/" + UrlEncode(name));
  if (!job) return Refuse(job.error(), common.json);
  const auto id = job->value("id", "");
  if (options.detach) {
    if (common.json) {
      std::printf("%s\n", DumpJson({{"id", id}, {"name", name}, {"state", "Queued"}}).c_str());
    } else {
      std::printf("%s\n", id.c_str());
      PrintHint(
          "ath logs -f " + ShellQuote(name) + " · ath show " + ShellQuote(name) + " --sagemaker",
          common.quiet);
    }
    return 0;
  }
  if (!common.json && !common.quiet) {
    for (const auto& note : (*job)["spec"].value("notes", Json::array())) {
      std::fprintf(stderr, "  note    %s\n", Printable(note.get<std::string>()).c_str());
    }
  }
  return FollowJob(common, *client, id, name);
}

}  // namespace

int RunVerb(const Common& common, const RunOptions& options) {
  if (!options.sagemaker.empty()) return RunRequest(common, options);
  if (options.file.empty() && options.command.empty()) {
    return Refuse(
        Error{ErrorCode::kInvalid, "nothing to run", "ath run -- python train.py\nath run job.yaml"}
            .Why("there is no job file, and no command after --")
            .Id("ATH-C0011"),
        common.json);
  }
  if (options.preflight && options.no_preflight) {
    return Refuse(Error{ErrorCode::kInvalid,
                        "--preflight and --no-preflight cannot be used together", "ath run --help"}
                      .Id("ATH-C0010"),
                  common.json);
  }
  auto prepared = PrepareJob(common.home, options);
  if (!prepared) return Refuse(prepared.error(), common.json);
  if (options.dry_run) {
    std::printf("%s\n", DumpJsonPretty(ToJson(prepared->spec)).c_str());
    return 0;
  }
  if (auto status = PreflightFirst(common, options, *prepared)) return *status;
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto key = options.key.empty() ? NewUlid().ToString() : options.key;
  auto job = SubmitJob(*client, *prepared, key, common.home);
  if (!job) return Refuse(job.error(), common.json);
  auto terminal = DetectTerminal();
  if (options.detach) {
    if (common.json) {
      Json line = {{"id", job->id}, {"name", job->name}, {"state", "Queued"}};
      if (job->simulated) line["simulated"] = true;
      if (!job->same_as.empty()) line["same_as"] = job->same_as;
      if (!job->warning.empty()) line["warning"] = job->warning;
      if (!job->notes.empty()) line["notes"] = job->notes;
      std::printf("%s\n", DumpJson(line).c_str());
    } else {
      std::printf("%s\n", job->id.c_str());
      if (!job->warning.empty() && !common.quiet) {
        std::fprintf(stderr, "  warning %s\n", Printable(job->warning).c_str());
      }
      for (const auto& note : job->notes) {
        if (!common.quiet) std::fprintf(stderr, "  note    %s\n", Printable(note).c_str());
      }
      PrintHint("ath logs -f " + ShellQuote(job->name) + " · ath wait " + ShellQuote(job->name),
                common.quiet);
    }
    return 0;
  }
  if (!common.json && !common.quiet) PrintHead(*job, *prepared, terminal);
  return FollowJob(common, *client, job->id, job->name);
}

int FollowJob(const Common& common, Client& client, const std::string& id,
              const std::string& name) {
  AttachOptions attach;
  attach.job = id;
  attach.name = name;
  attach.query = "phase=all";
  attach.json = common.json;
  attach.quiet = common.quiet;
  attach.head = true;
  auto end = Attach(client, attach);
  if (!end) return Refuse(end.error(), common.json);
  if (!*end) {
    PrintHint("stopped following " + name + ": ath logs -f " + ShellQuote(name), common.quiet);
    return 130;
  }
  if (!common.json) PrintEnding(**end, DetectTerminal(), common.quiet);
  return ExitStatusOf(**end);
}

}  // namespace athanor
