#include "door/native/openapi.h"

#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"

namespace athanor {
namespace {

struct Operation {
  const char* method;
  const char* path;
  const char* name;  // Route::name
  const char* summary;
  const char* query;  // "limit:integer tail:string"; empty: none
  const char* body;   // schema of the request, "bytes", or empty
  const char* reply;  // schema of a 2xx reply, "bytes", "events", "ndjson", "html" or "text"
  int status = 200;
};

constexpr Operation kOperations[] = {
    {"get", "/healthz", "health", "Is the server up", "", "", "Health"},
    {"get", "/metrics", "prometheus", "Figures for Prometheus", "", "", "text"},
    {"get", "/api/v1/openapi.json", "openapi", "This document", "", "", "Any"},
    {"get", "/api/v1/session", "session", "Who am I, and the token a page must send back", "", "",
     "Session"},
    {"post", "/api/v1/session/link", "session.link",
     "A link that makes a browser the caller, once and soon", "", "", "PageLink", 201},
    {"delete", "/api/v1/session", "session.end", "Take a browser's session away", "", "", "Any"},
    {"get", "/", "page.index", "The page", "", "", "html"},
    {"get", "/ui/{path}", "page.file", "A file of the page", "", "", "bytes"},
    {"get", "/ui/enter/{key}", "page.enter",
     "Use a link: sets the session's cookie and leads to the page", "", "", "html", 303},
    {"get", "/api/v1/server", "server.show", "Version, machine, counts", "", "", "Server"},
    {"get", "/api/v1/server/storage", "server.storage",
     "What takes how much of the disk, counted a while ago where there is much to count", "", "",
     "Storage"},
    {"get", "/api/v1/server/disk", "server.disk",
     "What takes how much of the disk, job by job and by what they share; counted now. "
     "`only=jobs`: without what belongs to no job",
     "only:string", "", "Disk"},
    {"post", "/api/v1/server/stop", "server.stop", "Stop the server; jobs go on", "", "",
     "Stopping"},
    {"post", "/api/v1/server/backup", "server.backup",
     "Copy all the server keeps to a path of its machine", "", "BackupTarget", "Backup"},
    {"post", "/api/v1/gc", "server.gc",
     "Remove runs that were in the trash for long, blobs that no job refers to, and caches that "
     "were not used for long",
     "older:string dry_run:string", "", "Swept"},
    {"post", "/api/v1/sagemaker/training-jobs", "sagemaker.create",
     "Submit a CreateTrainingJob request", "", "Any", "MadeTrainingJob", 201},
    {"get", "/api/v1/jobs/{job}/sagemaker", "sagemaker.show",
     "A job as DescribeTrainingJob shows it", "", "", "Any"},
    {"post", "/api/v1/jobs", "jobs.submit", "Submit a job; durable before the reply", "", "Submit",
     "Accepted", 201},
    {"post", "/api/v1/jobfile", "jobs.text",
     "Submit the text of a job file with the source of an earlier job; with `check`, only say what "
     "it would be",
     "", "JobText", "Any", 201},
    {"get", "/api/v1/jobs", "jobs.list",
     "Jobs, newest first, a page at a time: `before` is the `next` of the page before; with "
     "`count`, how many there are. `tag` is KEY=VALUE or KEY, `name` a pattern, `older` an age "
     "such as 7d; `ended`: only what can be removed",
     "limit:integer state:string experiment:string tag:string name:string older:string live:string "
     "ended:string before:string count:string",
     "", "JobList"},
    {"get", "/api/v1/jobs/{job}", "jobs.show", "Everything about a job", "", "", "Job"},
    {"delete", "/api/v1/jobs/{job}", "jobs.remove", "Remove a finished job", "", "", "Removed"},
    {"get", "/api/v1/jobs/{job}/events", "jobs.events", "Its history", "after:integer", "",
     "EventList"},
    {"post", "/api/v1/jobs/{job}/stop", "jobs.stop",
     "Stop it; asked again with a shorter grace, it has only that", "grace_ms:integer", "",
     "Accepted"},
    {"post", "/api/v1/stop", "jobs.stop_many",
     "Stop jobs that are not over: these `jobs`, those that fit `state`, `experiment`, `tags`, "
     "`name` and `older`, or `all`",
     "", "StopMany", "StoppedMany"},
    {"post", "/api/v1/remove", "jobs.remove_many",
     "Remove these jobs, which have ended, at most 1,000 at a time", "", "RemoveMany",
     "RemovedMany"},
    {"post", "/api/v1/jobs/{job}/interrupt", "jobs.interrupt",
     "Take its machine away; it goes on as a new attempt", "grace_ms:integer", "", "Accepted"},
    {"get", "/api/v1/jobs/{job}/checkpoints", "jobs.checkpoints",
     "Its whole checkpoints, newest first", "", "", "CheckpointList"},
    {"post", "/api/v1/jobs/{job}/resume", "jobs.resume",
     "A new job that goes on from a checkpoint of this one", "from:string key:string", "",
     "Accepted"},
    {"get", "/api/v1/jobs/{job}/capture", "jobs.capture", "Steps its black box kept, newest first",
     "", "", "CaptureList"},
    {"get", "/api/v1/jobs/{job}/capture/{file}", "jobs.captured",
     "One file of a captured step, as bytes", "", "", "bytes"},
    {"post", "/api/v1/jobs/{job}/retry", "jobs.retry", "Run it again as a new job", "", "Retry",
     "Accepted", 201},
    {"get", "/api/v1/jobs/{job}/metrics", "jobs.metrics", "Its metrics, summarised",
     "trend:integer", "", "MetricList"},
    {"get", "/api/v1/jobs/{job}/metrics/{name}", "jobs.points",
     "Points of one metric; `name` stands for a name that is no path",
     "abandoned:string name:string", "", "ndjson"},
    {"get", "/api/v1/jobs/{job}/logs", "jobs.logs",
     "Its log, as bytes; `rank` from 0 over all hosts, `host` as algo-2 or 2",
     "phase:string rank:integer host:string tail:integer since_ms:integer", "", "bytes"},
    {"get", "/api/v1/jobs/{job}/stream", "jobs.stream",
     "Log, states and numbers as they come; resumable by Last-Event-ID",
     "phase:string rank:integer host:string tail:integer since_ms:integer follow:string", "",
     "events"},
    {"get", "/api/v1/jobs/{job}/outputs", "jobs.outputs", "What it kept", "", "", "OutputList"},
    {"get", "/api/v1/jobs/{job}/outputs/{name}", "jobs.file", "One output, as bytes", "", "",
     "bytes"},
    {"get", "/api/v1/jobs/{job}/outputs/files/{path}", "jobs.leftfile",
     "A file that the script left in its working folder, as bytes", "", "", "bytes"},
    {"get", "/api/v1/jobs/{job}/exec", "jobs.exec", "Where it runs, for ath exec", "", "",
     "ExecInfo"},
    {"get", "/api/v1/events", "events.stream", "Events of all jobs; resumable by Last-Event-ID",
     "after:integer follow:string", "", "events"},
    {"get", "/api/v1/live", "live.stream",
     "What a page needs, as it happens: jobs, runs' numbers, which logs grew; resumable by "
     "Last-Event-ID",
     "after:string", "", "events"},
    {"get", "/api/v1/jobs/{job}/log/lines", "jobs.lines",
     "Lines of its log by number, from 0; without `from` the last",
     "phase:string rank:integer host:string from:integer count:integer", "", "LogLines"},
    {"get", "/api/v1/jobs/{job}/log/search", "jobs.search",
     "Lines that hold a text, or match a regular expression",
     "q:string regex:integer phase:string rank:integer host:string limit:integer", "",
     "LogMatches"},
    {"get", "/api/v1/jobs/{job}/source", "jobs.source", "The files it was made of, and its commit",
     "", "", "SourceList"},
    {"get", "/api/v1/jobs/{job}/source/{path}", "jobs.sourcefile", "One of them, as text", "", "",
     "text"},
    {"get", "/api/v1/jobs/{job}/environment", "jobs.environment",
     "What it ran in: packages, variables", "", "", "EnvironmentView"},
    {"get", "/api/v1/queue", "queue.show",
     "Who waits, for what, and what the machine is used for; `after` is the `next` of the page "
     "before",
     "limit:integer after:string", "", "Queue"},
    {"get", "/api/v1/names", "names.list",
     "Names of metrics, params or tags, and how many runs have them",
     "kind:string contains:string experiment:string limit:integer", "", "NameList"},
    {"get", "/api/v1/experiments", "experiments.list", "Experiments", "", "", "ExperimentList"},
    {"get", "/api/v1/models", "models.list", "Registered models with their versions, newest first",
     "", "", "ModelList"},
    {"get", "/api/v1/importance", "runs.importance", "How much each param decides about a metric",
     "metric:string filter:string goal:string experiment:string runs:string", "", "ImportanceList"},
    {"patch", "/api/v1/runs/{run}", "runs.change", "Set or remove tags, name it, note something",
     "", "RunChange", "ChangedRun"},
    {"post", "/api/v1/runs/{run}/delete", "runs.delete", "Put it into the trash", "", "",
     "ChangedRun"},
    {"post", "/api/v1/runs/{run}/restore", "runs.restore", "Take it out again", "", "",
     "ChangedRun"},
    {"get", "/api/v1/runs/{run}/artifacts", "runs.artifacts", "What it keeps, one folder at a time",
     "path:string", "", "ArtifactList"},
    {"get", "/api/v1/runs/{run}/artifacts/{path}", "runs.artifact", "One file, as bytes", "", "",
     "bytes"},
    {"get", "/api/v1/runs/{run}/media", "runs.media",
     "Histograms, images, audio, text and more in its event files", "", "", "MediaList"},
    {"get", "/api/v1/runs/{run}/media/{kind}/{name}", "runs.mediaitems", "One of them by step",
     "max:integer", "", "MediaItems"},
    {"get", "/api/v1/runs/{run}/mediabytes/{key}", "runs.mediabytes",
     "One image or sound, as bytes", "", "", "bytes"},
    {"get", "/api/v1/diff", "jobs.diff", "What differs between jobs; `jobs` is given once for each",
     "jobs:string", "", "Diff"},
    {"get", "/api/v1/runs", "runs.list",
     "Runs, newest first or as ordered; `order` and `column` may be given several times: "
     "metrics.loss DESC, params.lr",
     "filter:string order:string column:string experiment:string limit:integer offset:integer "
     "after:string deleted:string",
     "", "RunList"},
    {"get", "/api/v1/runs/{run}", "runs.show", "One run: its params, tags and last metrics", "", "",
     "Run"},
    {"get", "/api/v1/runs/{run}/metrics/{name}", "runs.points",
     "Points of one metric; with `width`, about two for each of so many pixels",
     "width:integer from:integer to:integer name:string", "", "ndjson"},
    {"post", "/api/v1/runs", "runs.create",
     "Make a run that is no job's; one `source` is one run, however often", "", "NewRun", "MadeRun",
     201},
    {"post", "/api/v1/runs/{run}/points", "runs.add",
     "Add points, in the frames of series files; what is there already is dropped", "", "bytes",
     "AddedPoints"},
    {"post", "/api/v1/runs/{run}/finish", "runs.finish", "Say that it is over", "", "RunEnd",
     "MadeRun"},
    {"get", "/api/v1/objects", "objects.list", "Objects below s3://bucket/prefix, a page at a time",
     "uri:string after:string", "", "ObjectList"},
    {"get", "/api/v1/object", "objects.get", "One object, as bytes", "uri:string", "", "bytes"},
    {"post", "/api/v1/studies", "studies.create", "Create a tuning job; durable before the reply",
     "", "NewStudy", "MadeStudy", 201},
    {"get", "/api/v1/studies", "studies.list", "Tuning jobs, newest first", "", "", "StudyList"},
    {"get", "/api/v1/studies/{study}", "studies.show",
     "Everything about a tuning job; with `wait_ms`, once its journal is longer than `after`",
     "after:integer wait_ms:integer", "", "Study"},
    {"delete", "/api/v1/studies/{study}", "studies.remove",
     "Remove a tuning job that is over; its jobs stay", "", "", "Removed"},
    {"post", "/api/v1/studies/{study}/stop", "studies.stop", "Stop it and its trials", "", "",
     "StudyRow"},
    {"post", "/api/v1/studies/{study}/extend", "studies.extend",
     "Change how much it may do; one that is over goes on", "", "StudyChanges", "StudyRow"},
    {"post", "/api/v1/studies/{study}/trials", "studies.add", "Have it try these parameters, too",
     "", "OwnTrial", "StudyRow"},
    {"post", "/api/v1/blobs/missing", "blobs.missing", "Which of these blobs the server lacks", "",
     "BlobNames", "Missing"},
    {"put", "/api/v1/blobs/{sha256}", "blobs.put", "Store a blob", "", "bytes", "Stored", 201},
    {"get", "/api/v1/blobs/{sha256}", "blobs.get", "Read a blob", "", "", "bytes"},
    {"get", "/api/v1/types", "types.list", "Instance types", "", "", "TypeList"},
    {"get", "/api/v1/secrets", "secrets.list", "Names of secrets", "", "", "SecretList"},
    {"put", "/api/v1/secrets/{name}", "secrets.set", "Keep a secret; the body is its value", "",
     "bytes", "Named"},
    {"delete", "/api/v1/secrets/{name}", "secrets.remove", "Forget a secret", "", "", "Removed"},
    {"get", "/api/v1/tokens", "tokens.list", "Tokens, without their secrets", "", "", "TokenList"},
    {"post", "/api/v1/tokens", "tokens.create", "Make a token", "", "NewToken", "Token", 201},
    {"delete", "/api/v1/tokens/{id}", "tokens.revoke", "Make a token void", "", "", "Revoked"},
};

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
    {"ExecInfo", "attempt! dir! supervisor_pid:integer! secrets:[string]!"},
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

Json OperationOf(const Operation& operation) {
  Json out = {{"operationId", operation.name}, {"summary", operation.summary}};
  Json parameters = Json::array();
  std::string path = operation.path;
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
  for (const auto& operation : kOperations) {
    paths[operation.path][operation.method] = OperationOf(operation);
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
