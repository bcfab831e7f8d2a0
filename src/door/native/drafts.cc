#include "door/native/drafts.h"

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "door/native/views.h"
#include "job/codec.h"
#include "job/object_uri.h"
#include "run/supervisor/launch_supervisor.h"
#include "submit/job_file.h"
#include "submit/notes.h"

namespace athanor {
namespace {

Error OnlyInAShell(const std::string& file, const std::string& what, const std::string& hint) {
  return Error{ErrorCode::kInvalid, what + " has no meaning in a page", hint}
      .Why("the text comes from a browser, which is in no folder of this machine")
      .Id("ATH-S0205")
      .Where(file);
}

}  // namespace

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
