#include "door/native/drafts.h"

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "door/native/names.h"
#include "door/native/views.h"
#include "job/codec.h"
#include "job/object_uri.h"
#include "place/need.h"
#include "run/supervisor/launch_supervisor.h"
#include "submit/job_file.h"
#include "submit/notes.h"
#include "submit/spec_check.h"

namespace athanor {
namespace {

constexpr uint64_t kReserveBytes = 64ull << 20;

Status CheckSecrets(const DoorContext& context, const JobSpec& spec) {
  auto check = [&](const std::string& name) -> Status {
    if (context.secrets.Has(name)) return Ok();
    return Fail(Error{ErrorCode::kInvalid, "secret \"" + name + "\" is not set",
                      "ath secret set " + ShellQuote(name)}
                    .Why("the job names it and the built-in store does not have it")
                    .Id("ATH-S0204"));
  };
  for (const auto& secret : spec.secrets) {
    if (secret.source == "store" && !secret.optional) ATHANOR_CHECK_OK(check(secret.name));
  }
  if (!spec.environment.index_secret.empty()) {
    ATHANOR_CHECK_OK(check(spec.environment.index_secret));
  }
  return Ok();
}

Status CheckSpace(const DoorContext& context) {
  auto free = FreeBytes(context.info.home);
  if (!free || *free >= kReserveBytes) return Ok();
  return Fail(Error{ErrorCode::kExhausted, "the disk is too full to accept a job",
                    "free some space, or remove old jobs: ath rm JOB"}
                  .Why(HumanBytes(*free) + " free where " + context.info.home + " lies, " +
                       HumanBytes(kReserveBytes) + " needed")
                  .Id("ATH-S0202"));
}

Error OnlyInAShell(const std::string& file, const std::string& what, const std::string& hint) {
  return Error{ErrorCode::kInvalid, what + " has no meaning in a page", hint}
      .Why("the text comes from a browser, which is in no folder of this machine")
      .Id("ATH-S0205")
      .Where(file);
}

}  // namespace

Result<JobRecord> Draft(const DoorContext& context, JobSpec spec, const std::string& key,
                        const std::string& user) {
  ATHANOR_CHECK_OK(CheckSpec(spec));
  ATHANOR_CHECK_OK(CheckSecrets(context, spec));
  ATHANOR_CHECK_OK(CheckSpace(context));
  auto resolved =
      Resolve(spec.resources, context.catalogue, context.inventory, context.info.simulate);
  // An unknown type is a mistake in the request, not a missing thing of the server's.
  if (!resolved) resolved.error().code = ErrorCode::kInvalid;
  ATHANOR_TRY(auto need, std::move(resolved));
  if (!spec.source.bundle.empty() && !context.blobs.Use(spec.source.bundle)) {
    return Fail(Error{ErrorCode::kInvalid, "the source bundle was not uploaded",
                      "PUT /api/v1/blobs/{sha256} for what POST /api/v1/blobs/missing names"}
                    .Why("no blob " + Printable(spec.source.bundle))
                    .Id("ATH-S0203"));
  }
  JobRecord draft;
  draft.id = JobId::New();
  draft.key = key.empty() ? draft.id.ToString() : key;
  draft.spec_hash = SpecHash(spec);
  draft.user = user;
  draft.created = context.clock.Wall();
  draft.simulated = need.simulated;
  if (!spec.resources.type.empty()) {
    ATHANOR_TRY(auto type, context.catalogue.Find(spec.resources.type));
    draft.price = PriceOfType(type);
  } else {
    draft.price = PriceOfAmounts(need.cpu_millis, need.memory_bytes, need.gpus, context.info.rates);
  }
  auto same = context.jobs.FindSameRun(SameRunHash(spec));
  if (same && *same) draft.same_as = (*same)->ToString();
  if (spec.name.empty()) spec.name = FriendlyName(draft.id.value);
  draft.spec = std::move(spec);
  return draft;
}

Result<JobSpec> SpecFromText(const std::string& text, const JobRecord* like) {
  const std::string file = "job.yaml";
  ATHANOR_TRY(auto spec, ParseJobFile(text, file));
  ATHANOR_TRY(const auto tune, TuneSection(text, file));
  if (!tune.is_null()) return Fail(OnlyInAShell(file, "a search (\"tune\")", "ath tune job.yaml"));
  if (!spec.source.dir.empty() || !spec.source.ignore.empty() || spec.source.max_size != 0) {
    return Fail(OnlyInAShell(file, "a source folder (\"source\")",
                             "choose a job whose source to use, or: ath run job.yaml"));
  }
  for (const auto& channel : spec.data) {
    if (!channel.from.empty() && channel.from[0] != '/' && !IsObjectUri(channel.from)) {
      return Fail(OnlyInAShell(file, "the relative path of data." + channel.name,
                               "write it as an absolute path or as s3://bucket/key"));
    }
  }
  if (like != nullptr) {
    spec.source = like->spec.source;
    spec.inherited = like->spec.inherited;
  }
  return spec;
}

void SubmitDraft(DoorContext& context, Result<JobRecord> draft, const Call& call) {
  if (!draft) return call.Refuse(draft.error());
  // Not the whole call: it is held until the disk has the job, for many at a time.
  const auto accepted_view = [&context](const JobRecord& record) {
    Json view = AcceptedView(context, record);
    // Agents are processes of this server's user on this machine, and may do what it may.
    const auto open = context.info.simulate ? std::string() : OpenJobs(OurIsolation());
    if (!open.empty()) view["warning"] = open;
    auto notes = NotesAbout(record.spec.resources, context.inventory);
    if (!notes.empty()) view["notes"] = std::move(notes);
    return view;
  };
  std::string reply = DumpJson(accepted_view(*draft));
  context.engine.Submit(
      std::move(*draft), [&context, accepted_view, responder = call.responder,
                          reply = std::move(reply)](const Result<Engine::Accepted>& accepted) {
        if (!accepted) {
          bool other_payload = accepted.error().id == "ATH-S0201";
          return responder.Send(other_payload ? ErrorResponse(422, accepted.error())
                                              : ErrorResponse(accepted.error()));
        }
        if (!accepted->duplicate) return responder.Send(Response::Json(201, reply));
        auto earlier = FindJob(context, accepted->id.ToString());
        Json known = earlier ? accepted_view(*earlier) : ParseJson(reply).value();
        known["duplicate"] = true;
        responder.Send(Response::Json(200, DumpJson(known)));
      });
}

}  // namespace athanor
