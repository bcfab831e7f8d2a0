#include "door/native/openapi.h"

#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"
#include "door/native/route_table.h"

namespace athanor {
namespace {

// "id! name! count:integer jobs:[Job] any:Any end:integer?": a schema in one line; ! means
// required, ? that it may be null.
struct Schema {
  const char* name;
  const char* members;
};

constexpr Schema kSchemas[] = {
    {"Any", ""},
    {"Health", "status!"},
    {"Session", "user! csrf!"},
    {"PageLink", "path! url! expires!"},
    {"Server",
     "version! pid:integer! url! socket! home! user! started! uptime_ms:integer! instances! "
     "machine:Machine! waits_for_disk:Any jobs:integer states:Any notices:[string]"},
    {"Machine", "host! cpu_millis:integer! memory_bytes:integer! gpus:integer! gpu_model"},
    {"JobDisk",
     "id! name! bytes:integer! logs:integer! metrics:integer! checkpoints:integer! "
     "outputs:integer! scratch:integer!"},
    {"DiskPart", "name! bytes:integer!"},
    {"Disk", "home! bytes:integer! jobs:[JobDisk]! shared:[DiskPart]! free_bytes:integer"},
    {"RemoveMany", "jobs:[string]!"},
    {"RefusedJob", "job! what!"},
    {"RemovedMany", "removed:integer! refused:[RefusedJob]!"},
    {"Storage", "parts:[StoragePart]! bytes:integer! free_bytes:integer counted_ms:integer!"},
    {"StoragePart", "name! path! bytes:integer!"},
    {"Stopping", "stopping:boolean!"},
    {"BackupTarget", "to!"},
    {"Backup",
     "path! version! home! made! schema:integer! jobs:integer! live:integer! files:integer! "
     "bytes:integer! linked:integer! secret_key:boolean!"},
    {"MadeTrainingJob", "TrainingJobArn! name!"},
    {"Submit", "key spec:Spec!"},
    {"JobText", "key text! source_of check:boolean"},
    {"Retry", "key spec:Spec"},
    {"Spec",
     "name experiment run command:[string]! shell:boolean entry params:[Param] env:Any "
     "inherited:Any source:Source environment:Any resources:Resources limits:Any data:[Channel] "
     "checkpoint_dir checkpoints:Any outputs:Any metrics:[MetricSpec] rules:[Any] "
     "secrets:[SecretSpec] tags:Any retry:Any priority:integer debug:boolean output_to "
     "output_plain:boolean origin request notes:[string]"},
    {"Resources",
     "type cpu_millis:integer memory_bytes:integer gpus:integer no_gpus:boolean nodes:integer "
     "nodes_most:integer processes:integer spot:Any"},
    {"Param", "name! value kind!"},
    {"Source",
     "dir ignore:[string] max_size:integer bundle files:integer bytes:integer git_commit "
     "git_branch git_diff"},
    {"Channel", "name! from! mode! manifest:boolean"},
    {"MetricSpec", "name! regex! step_regex"},
    {"SecretSpec", "name! source! locator as! optional:boolean"},
    {"Accepted",
     "id! name! state! shown_state! simulated:boolean same_as duplicate:boolean warning "
     "notes:[string]"},
    {"StopMany",
     "jobs:[string] state experiment tags:[string] name older all:boolean grace_ms:integer "
     "dry_run:boolean"},
    {"StoppedMany", "matched:integer! stopped:integer! stopping:integer! jobs:[Accepted]"},
    {"Cause", "kind text hint detail code title"},
    {"JobRow",
     "id! name! state! shown_state! experiment! user! created! started ended cause:Cause type "
     "ranks command! attempts:integer! cost_micros:integer! simulated:boolean!"},
    {"UnreadParam", "name! value! mark!"},
    {"Unread", "text! hint! params:[UnreadParam]!"},
    {"JobList", "jobs:[JobRow]! next matched:integer"},
    {"Job",
     "id! name! state! shown_state! user spec_hash spec:Spec! created! updated started ended "
     "last_seen event_seq:integer cause:Cause stop:Any attempts:[Attempt] outputs:[Output] "
     "price:Any simulated:boolean packages same_as parent resume_job resume_from retries:integer "
     "advice:Any firings:[Firing] spot_fell_back:boolean spot:Any command_line! unread:Unread "
     "cost_micros:integer! metrics:[Metric] usage:Any progress:Any rules_without_metric:[string] "
     "log_bytes:integer notes:[string]"},
    {"Attempt",
     "id! number:integer! placement:Any handle placed prepared started exited ended "
     "held_ms:integer setup_ms:integer exit:Exit cause:Cause off:[string] type "
     "micros_per_hour:integer spot:boolean interrupt:Any resumed_from resumed_step:integer "
     "saved:Checkpoint lost_ms:integer hosts:[Host] fell:Fall fall_order:[string]"},
    {"Host",
     "name! state! address handle placement:Any up started exited over last_seen held_ms:integer "
     "exit:Exit cause:Cause ranks:[RankEnd] rank_text usage:Any"},
    {"RankEnd", "rank:integer! code:integer! signal:integer! ran_ms:integer!"},
    {"Fall", "host:integer! rank:integer at cause:Cause"},
    {"Exit",
     "code:integer! signal:integer! oom_killed:boolean disk_full:boolean done_called:boolean "
     "memory_peak:integer memory_limit:integer cpu_ms:integer first_rank:integer "
     "log_dropped:integer spawn_error notice_ms:integer saved_ms:integer matched:[string]"},
    {"Output", "name! blob! bytes:integer! files:integer largest left_out:LeftOut"},
    {"LeftOut", "files:integer! bytes:integer! largest:[LeftFile]"},
    {"LeftFile", "name! bytes:integer! why!"},
    {"Event", "job! seq:integer! at! name! state! attempt:integer cause:Cause"},
    {"Checkpoint",
     "id! attempt:integer! step:integer files:integer! bytes:integer! new_bytes:integer! at! "
     "held_ms:integer save_ms:integer sync_ms:integer"},
    {"Damaged", "id! why!"},
    {"CheckpointList", "checkpoints:[Checkpoint]! damaged:[Damaged]! advice:Any"},
    {"CapturedFile", "name! bytes:integer!"},
    {"Capture",
     "name! step:integer! rank:integer wall_ns:integer! steps:[integer]! reason error weights "
     "python files:[CapturedFile]!"},
    {"CaptureList", "captures:[Capture]!"},
    {"Firing", "rule! kind! metric step:integer value threshold action advice at"},
    {"EventList", "events:[Event]!"},
    {"Metric",
     "name! count:integer! last:number! last_step:integer last_time! min:number! max:number! "
     "trend:Any"},
    {"MetricList", "metrics:[Metric]!"},
    {"KeptOutput", "name! sha256! bytes:integer! members:[Member] left_out:LeftOut"},
    {"Member", "name! bytes:integer! link sha256"},
    {"OutputList", "outputs:[KeptOutput]!"},
    {"ExecInfo",
     "attempt! dir! host:integer! local_rank:integer! supervisor_pid:integer! secrets:[string]!"},
    {"LogLines",
     "from:integer! total:integer! first_error:integer?! lines:[string]! ranks:[integer]"},
    {"LogMatch", "line:integer! text! rank:integer"},
    {"LogMatches", "total:integer! matches:[LogMatch]!"},
    {"SourceFile", "path! size:integer! sha256! link"},
    {"SourceList", "files:[SourceFile]! git:Any?!"},
    {"EnvironmentView",
     "packages:[string]! environment:Any python image variables:Any resources:Any host"},
    {"Waiting", "job:JobRow! reason! since_ms:integer! position:integer! estimate_ms:integer?!"},
    {"MachineUse",
     "host cpus:number! cpus_used:number! memory:integer! memory_used:integer! gpus:integer! "
     "gpus_used:integer! load:number!"},
    {"Queue", "waiting:[Waiting]! matched:integer! next machine:MachineUse!"},
    {"NameRow", "name! runs:integer!"},
    {"NameList", "total:integer! names:[NameRow]!"},
    {"ExperimentRow", "id! name! runs:integer! last_ms:integer!"},
    {"ExperimentList", "experiments:[ExperimentRow]!"},
    {"ModelVersion",
     "version:integer! stage! description source run_id created_ms:integer! updated_ms:integer! "
     "aliases:[string]! tags:Any!"},
    {"Model",
     "name! description created_ms:integer! updated_ms:integer! tags:Any! "
     "versions:[ModelVersion]!"},
    {"ModelList", "models:[Model]!"},
    {"ImportanceRow", "name! importance:number!"},
    {"ImportanceList", "metric! runs:integer! params:[ImportanceRow]!"},
    {"RunChange", "tags:Any name note"},
    {"ChangedRun", "id! deleted:boolean"},
    {"ArtifactEntry", "path! size:integer! dir:boolean!"},
    {"ArtifactList", "entries:[ArtifactEntry]!"},
    {"MediaRow", "kind! name! count:integer! last_step:integer!"},
    {"MediaList", "media:[MediaRow]!"},
    {"MediaItems", "items:[Any]!"},
    {"DiffRow", "section! key! values:[string]!"},
    {"DiffJob", "id! name!"},
    {"Diff", "jobs:[DiffJob]! differences:[DiffRow]!"},
    {"Run",
     "id! run_id! name! experiment! user! status! created! started ended job:boolean! metrics:Any! "
     "params:Any! tags:Any!"},
    {"NewRun", "name experiment source started_ms:integer"},
    {"MadeRun", "id! run_id! new:boolean!"},
    {"AddedPoints", "stored:integer!"},
    {"RunEnd", "status ended_ms:integer"},
    {"StoredObject", "key! size:integer! etag!"},
    {"ObjectList", "objects:[StoredObject]! after"},
    {"RunList", "matched:integer! runs:[Run]! next:string"},
    {"NewStudy", "key spec:StudySpec!"},
    {"StudySpec",
     "name metric! goal value space:Any! strategy seed:integer max_trials:integer parallel:integer "
     "budget:Any target:number no_improvement:integer converge:boolean max_failures:integer "
     "early_stopping:Any warm_start:[string] transfer:boolean origin request job:Spec!"},
    {"MadeStudy", "id! name! duplicate:boolean"},
    {"Trial",
     "trial:integer! name! state! shown_state! params:Any! job value:number step:integer "
     "own:boolean losses:integer promotions:integer cause:Cause cost_micros:integer! "
     "held_ms:integer! asked! started ended curve:[Any]"},
    {"StudyRow",
     "id! name! state! user! metric! goal! strategy! seed:integer! max_trials:integer! "
     "parallel:integer! counts:Any! imported:integer! cost_micros:integer! created! lines:integer! "
     "ended cause:Cause best:Trial"},
    {"StudyList", "studies:[StudyRow]!"},
    {"Share", "parameter! share:number!"},
    {"StudyHint", "text! next! kind"},
    {"Study",
     "id! name! state! user! metric! goal! strategy! seed:integer! max_trials:integer! "
     "parallel:integer! counts:Any! imported:integer! cost_micros:integer! created! lines:integer! "
     "ended cause:Cause best:Trial spec:Any! trials:[Trial]! best_so_far:[number]! "
     "importance:[Share]! hints:[StudyHint]!"},
    {"StudyChanges",
     "max_trials:integer parallel:integer budget:Any target:number no_improvement:integer"},
    {"OwnTrial", "params:Any!"},
    {"Swept",
     "dry_run:boolean! bytes:integer! blobs:SweptPart! environments:SweptPart! sources:SweptPart! "
     "trash:SweptPart!"},
    {"SweptPart", "removed:integer! bytes:integer! kept:integer!"},
    {"BlobNames", "sha256:[string]!"},
    {"Missing", "missing:[string]!"},
    {"Stored", "stored:boolean!"},
    {"Type",
     "name! cpus:number! memory_bytes:integer! gpus:integer! gpu_model! on_demand_micros:integer! "
     "spot_micros:integer source! fits:boolean! held_ms:integer losses:integer"},
    {"TypeList", "types:[Type]! machine:Machine! instances!"},
    {"Secret", "name! created! updated!"},
    {"SecretList", "secrets:[Secret]!"},
    {"Named", "name!"},
    {"Removed", "removed!"},
    {"NewToken", "note scope expires_in kind"},
    {"Token",
     "id! note! scope! created! revoked:boolean! expires last_used token kind access_key_id "
     "secret_access_key"},
    {"TokenList", "tokens:[Token]!"},
    {"Revoked", "revoked!"},
    {"ErrorBody", "code! what! why hint id where"},
    {"Error", "error:ErrorBody!"},
};

Json TypeOf(std::string type) {
  if (StartsWith(type, "[")) {
    return {{"type", "array"}, {"items", TypeOf(type.substr(1, type.size() - 2))}};
  }
  if (EndsWith(type, "?")) {  // or null
    Json nullable = TypeOf(type.substr(0, type.size() - 1));
    nullable["nullable"] = true;
    return nullable;
  }
  if (type == "Any") return Json::object();
  // Numbers that JSON lacks travel as the strings NaN, Infinity and -Infinity.
  if (type == "number") return {{"oneOf", {{{"type", "number"}}, {{"type", "string"}}}}};
  if (type == "string" || type == "integer" || type == "boolean") return {{"type", type}};
  return {{"$ref", "#/components/schemas/" + type}};
}

Json SchemaOf(const Schema& schema) {
  Json out = {{"type", "object"}};
  Json properties = Json::object();
  Json required = Json::array();
  for (auto word : Split(schema.members, ' ')) {
    if (word.empty()) continue;
    if (word.back() == '!') {
      word.pop_back();
      required.push_back(word.substr(0, word.find(':')));
    }
    auto colon = word.find(':');
    properties[word.substr(0, colon)] =
        TypeOf(colon == std::string::npos ? "string" : word.substr(colon + 1));
  }
  out["properties"] = std::move(properties);
  if (!required.empty()) out["required"] = std::move(required);
  return out;
}

Json Content(std::string_view kind) {
  auto of = [](const char* media, Json schema) {
    return Json{{media, {{"schema", std::move(schema)}}}};
  };
  if (kind == "bytes")
    return of("application/octet-stream", {{"type", "string"}, {"format", "binary"}});
  if (kind == "events") return of("text/event-stream", {{"type", "string"}});
  if (kind == "ndjson") return of("application/x-ndjson", {{"type", "string"}});
  if (kind == "html") return of("text/html", {{"type", "string"}});
  if (kind == "text") return of("text/plain", {{"type", "string"}});
  return of("application/json", TypeOf(std::string(kind)));
}

// In a document, "{path...}" is an ordinary parameter.
std::string PathOf(const NativeRoute& route) {
  std::string path = route.path;
  if (const auto dots = path.find("..."); dots != std::string::npos) path.erase(dots, 3);
  return path;
}

Json OperationOf(const NativeRoute& operation) {
  Json out = {{"operationId", operation.name}, {"summary", operation.summary}};
  Json parameters = Json::array();
  const std::string path = PathOf(operation);
  for (size_t open = path.find('{'); open != std::string::npos; open = path.find('{', open + 1)) {
    auto name = path.substr(open + 1, path.find('}', open) - open - 1);
    parameters.push_back(
        {{"name", name}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}});
  }
  for (const auto& word : Split(operation.query, ' ')) {
    if (word.empty()) continue;
    auto colon = word.find(':');
    parameters.push_back({{"name", word.substr(0, colon)},
                          {"in", "query"},
                          {"schema", {{"type", word.substr(colon + 1)}}}});
  }
  if (!parameters.empty()) out["parameters"] = std::move(parameters);
  if (*operation.body) out["requestBody"] = {{"content", Content(operation.body)}};
  Json replies = Json::object();
  replies[std::to_string(operation.status)] = {{"description", "Done"},
                                               {"content", Content(operation.reply)}};
  // A known key or blob is answered 200 where a new one is 201.
  if (operation.status == 201)
    replies["200"] = {{"description", "Was there"}, {"content", Content(operation.reply)}};
  replies["default"] = {{"description", "Refused"}, {"content", Content("Error")}};
  out["responses"] = std::move(replies);
  return out;
}

std::string Build() {
  Json paths = Json::object();
  for (const auto& route : NativeRoutes()) {
    if (*route.summary) paths[PathOf(route)][ToLower(route.method)] = OperationOf(route);
  }
  Json schemas = Json::object();
  for (const auto& schema : kSchemas) {
    if (std::string_view(schema.name) != "Any") schemas[schema.name] = SchemaOf(schema);
  }
  Json document = {{"openapi", "3.0.3"},
                   {"info",
                    {{"title", "Athanor"},
                     {"version", "1"},
                     {"description", "The native API: jobs, logs, metrics, secrets, tokens."}}},
                   {"paths", std::move(paths)},
                   {"components",
                    {{"schemas", std::move(schemas)},
                     {"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}}}},
                   {"security", Json::array({{{"token", Json::array()}}, Json::object()})}};
  return DumpJson(document);
}

}  // namespace

const std::string& OpenApiDocument() {
  static const std::string document = Build();
  return document;
}

}  // namespace athanor
