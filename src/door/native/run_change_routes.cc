// The native door's changes of runs: tags, name, note, and their way into the trash and back.
#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"
#include "door/mlflow/validate.h"
#include "door/page/page_doors.h"
#include "door/queries.h"
#include "steer/hub.h"

namespace athanor {
namespace {

constexpr char kNote[] = "mlflow.note.content";  // where MLflow's page keeps it

Error AsNative(Error error) {
  if (error.id.empty() || !StartsWith(error.id, "ATH-")) {
    error.id = error.code == ErrorCode::kNotFound ? "ATH-R0030" : "ATH-R0031";
  }
  if (error.hint.empty()) error.hint = "ath runs";
  return error;
}

tl::unexpected<Error> Wrong(std::string what) {
  return Fail(Error{ErrorCode::kInvalid, std::move(what),
                    R"({"tags": {"key": "value"}, "name": "...", "note": "..."})"}
                  .Id("ATH-R0031"));
}

struct Change {
  RunBook::Pairs set;
  std::vector<std::string> removed;
  std::optional<std::string> name;
};

Result<std::string> ShortText(const Json& value, const std::string& what, size_t most) {
  if (!value.is_string()) return Wrong(what + " must be a text");
  return CutTo(value.get<std::string>(), most);
}

Result<Change> ReadChange(const std::string& body) {
  ATHANOR_TRY(const auto json, ParseJson(body));
  if (!json.is_object()) return Wrong("a change is an object");
  Change change;
  for (const auto& [key, value] : json.items()) {
    if (key == "name") {
      ATHANOR_TRY(change.name, ShortText(value, "name", kMostTagChars));
    } else if (key == "note") {
      ATHANOR_TRY(const auto note, ShortText(value, "note", kMostTagChars));
      change.set.emplace_back(kNote, note);
    } else if (key == "tags") {
      if (!value.is_object()) return Wrong("tags must be an object");
      if (value.size() > kMostBatchTags) return Wrong("more than 100 tags at once");
      for (const auto& [tag, text] : value.items()) {
        ATHANOR_CHECK_OK(CheckMlflowKey(tag, "tags"));
        if (text.is_null()) {
          change.removed.push_back(tag);
          continue;
        }
        ATHANOR_TRY(const auto kept, ShortText(text, "the value of a tag", kMostTagChars));
        change.set.emplace_back(tag, kept);
      }
    } else {
      return Wrong("a run has no \"" + Printable(key.substr(0, 80)) + "\" to change");
    }
  }
  return change;
}

Result<RunBatch> Make(RunBook& book, JobId run, const Change& change) {
  RunBatch batch;
  ATHANOR_CHECK_OK(book.CheckActive(run));
  for (const auto& tag : change.removed) {
    auto gone = book.DeleteTag(run, tag);
    if (!gone && gone.error().code == ErrorCode::kNotFound) continue;  // it is not there: done
    if (!gone) return tl::unexpected(gone.error());
    Append(batch, std::move(*gone));
  }
  if (!change.set.empty()) {
    ATHANOR_TRY(auto set, book.SetTags(run, change.set));
    Append(batch, std::move(set));
  }
  if (change.name) {
    RunUpdate update;
    update.name = change.name;
    ATHANOR_TRY(auto named, book.UpdateRun(run, update));
    Append(batch, std::move(named));
  }
  return batch;
}

// Answers when it is stored.
void Keep(DoorContext& context, const Call& call, JobId run, Result<RunBatch> batch,
          std::string body) {
  if (!batch) return call.Refuse(AsNative(batch.error()));
  context.run_writer.Write(std::move(*batch),
                           [&context, call, run, body = std::move(body)](const Status& status) {
                             if (!status) return call.Refuse(status.error());
                             context.hub.Tell(run, News::kPoints);
                             call.Json(200, body);
                           });
}

void Patch(DoorContext& context, const Call& call) {
  const auto run = ResolveRun(context, call.captures["run"]);
  if (!run) return call.Refuse(AsNative(run.error()));
  const auto change = ReadChange(call.request.body);
  if (!change) return call.Refuse(AsNative(change.error()));
  Keep(context, call, *run, Make(context.runs, *run, *change),
       DumpJson(Json{{"id", run->ToString()}}));
}

// A job's run can be put away like any other; the job itself is not touched.
void SetDeleted(DoorContext& context, const Call& call, bool deleted) {
  // A deleted run is found by its id alone: names are for those that are there.
  const auto& reference = call.captures["run"];
  auto run = [&]() -> Result<JobId> {
    if (const auto id = JobId::Parse(reference); id && context.runs.Has(*id)) return *id;
    return ResolveRun(context, reference);
  }();
  if (!run) return call.Refuse(AsNative(run.error()));
  Keep(context, call, *run, context.runs.SetRunDeleted(*run, deleted, context.clock.Wall().ms),
       DumpJson(Json{{"id", run->ToString()}, {"deleted", deleted}}));
}

}  // namespace

std::vector<DoorRoute> RunChangeRoutes(DoorContext& context) {
  return {
      Native("runs.change", [&context](const Call& call) { Patch(context, call); }),
      Native("runs.delete", [&context](const Call& call) { SetDeleted(context, call, true); }),
      Native("runs.restore", [&context](const Call& call) { SetDeleted(context, call, false); }),
  };
}

}  // namespace athanor
