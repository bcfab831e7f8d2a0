// JobSpec is what a user asked for, after parsing and before anything ran. It is a value: no
// defaults are hidden elsewhere, nothing in it changes after submit, and it has only the names of
// secrets.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace athanor {

// A hyper-parameter: its text as the script sees it, and what it was in the file.
struct Param {
  enum class Kind { kString, kNumber, kBool, kNull, kJson };
  std::string name;
  std::string value;
  Kind kind = Kind::kString;
  bool operator==(const Param&) const = default;
};

// The packaged source. `bundle` names the manifest blob (sha256); the rest is for people.
struct SourceSpec {
  std::string dir;                  // where it came from, as given
  std::vector<std::string> ignore;  // extra patterns
  uint64_t max_size = 0;            // bytes; 0 means the default limit
  std::string bundle;
  uint64_t files = 0;
  uint64_t bytes = 0;
  std::string git_commit;
  std::string git_branch;
  std::string git_diff;  // blob (sha256) of the uncommitted change; empty when clean
  bool operator==(const SourceSpec&) const = default;
};

struct EnvironmentSpec {
  std::string base;    // "" or "host": as the submitting shell; "system": a venv over the system's
                       // packages; "isolated": a venv of its own
  std::string python;  // interpreter or version; empty means the one on PATH
  std::string requirements;  // file inside the source
  std::string conda;         // file inside the source
  std::vector<std::string> apt;
  std::string image;
  std::string index_url;
  std::string index_secret;  // name of the secret that holds the index's token
  bool operator==(const EnvironmentSpec&) const = default;
};

// A machine that can be taken away, for a lower price. The preempt_ members take it away
// deliberately; the job cannot tell that from a real loss.
struct SpotSpec {
  bool use = false;
  std::chrono::milliseconds max_wait{0};  // waiting plus running; 0: none
  bool fallback = false;  // after max_wait: continue as an ordinary job instead of ending
  std::chrono::milliseconds preempt_after{0};
  std::chrono::milliseconds preempt_every{0};
  std::chrono::milliseconds preempt_jitter{0};
  uint64_t preempt_seed = 0;
  bool operator==(const SpotSpec&) const = default;
};

struct ResourceSpec {
  std::string type;           // instance type by name; empty means by amounts
  uint32_t cpu_millis = 0;    // 1000 is one CPU; 0 means the default
  uint64_t memory_bytes = 0;  // 0 means no limit
  uint32_t gpus = 0;          // to reserve
  bool no_gpus = false;       // `gpus: 0`: sees none. Else, with gpus 0 and no type (`gpus: auto`),
                              // it may use those that no other job reserved
  // Hosts of an attempt, each with the amounts above. `nodes_most` is not 0 for a job that may run
  // with fewer or more (`nodes: 1..4`): then `nodes` is the least.
  uint32_t nodes = 1;
  uint32_t nodes_most = 0;
  uint32_t processes = 1;  // ranks per node
  SpotSpec spot;
  uint32_t ranks() const { return nodes * processes; }
  bool operator==(const ResourceSpec&) const = default;
};

struct LimitSpec {
  std::chrono::milliseconds max_runtime{0};  // 0: none
  std::chrono::milliseconds stop_grace{120'000};
  std::chrono::milliseconds lost_after{0};  // stop itself after this silence; 0: never
  uint64_t log_bytes = 1ull << 30;          // a stream is cut there
  std::chrono::milliseconds hang_after{0};  // no output, metric or CPU for so long; 0: from steps
  uint32_t hang_steps = 0;                  // ... or for so many median steps; 0: the default
  std::string hang_action = "note";         // note, fail, retry or off
  bool operator==(const LimitSpec&) const = default;
};

// A data channel: a folder or file given to the script under input/data/<name>.
struct ChannelSpec {
  std::string name;
  std::string from;           // a path of this machine, or s3://bucket/prefix of the object store
  std::string mode = "file";  // file: copied before the start; shared: used in place
  bool manifest = false;      // `from` is an object that lists objects (a ManifestFile)
  bool operator==(const ChannelSpec&) const = default;
};

struct MetricSpec {
  std::string name;
  std::string regex;       // group 1 is the value
  std::string step_regex;  // group 1 is the step; empty: no step
  bool operator==(const MetricSpec&) const = default;
};

// A secret by reference. The value is fetched when the job starts and is never part of a spec.
struct SecretSpec {
  std::string name;              // also the environment variable's name
  std::string source = "store";  // store, env, file, command
  std::string locator;           // variable, path or command line; empty for store
  std::string as = "env";        // env or file
  bool optional = false;
  bool operator==(const SecretSpec&) const = default;
};

// How checkpoints are kept.
struct CheckpointSpec {
  std::string store = "objects";       // objects: synced to the object store; shared: kept in place
  std::chrono::milliseconds every{0};  // 0: as advised from what was measured
  uint32_t keep_last = 2;
  uint32_t keep_best = 0;
  std::string best_metric;        // for keep_best
  std::string best_goal = "min";  // min or max
  // s3://bucket/prefix that the files are also copied to, and that a job without its own checkpoint
  // starts from; empty: none.
  std::string uri;
  bool operator==(const CheckpointSpec&) const = default;
};

// Which of the files that the script leaves in its working folder are stored.
struct OutputSpec {
  bool keep = true;
  std::vector<std::string> files;  // patterns as in .gitignore; empty: every new or changed file
  uint64_t limit = 1ull << 30;     // bytes of all of them
  bool operator==(const OutputSpec&) const = default;
};

// A rule on a metric. The rule decides what the numbers mean: see the catalogue in job/rules.h.
struct RuleSpec {
  std::string name;    // the name of its firings; by default the rule's kind
  std::string rule;    // nan, inf, above, below, plateau, divergence, no_progress
  std::string metric;  // a name, or a pattern with *
  std::optional<double> value;
  uint32_t window = 0;  // points; 0: the rule's default
  double min_delta = 0;
  std::string goal = "min";            // min or max: which way is better
  std::chrono::milliseconds after{0};  // of no_progress
  std::string action = "mark";         // mark, stop, retry, webhook
  std::string url;                     // of webhook
  bool operator==(const RuleSpec&) const = default;
};

struct RetrySpec {
  uint32_t max = 0;
  // Causes, exit:N, or log:PATTERN; empty: only failures of the infrastructure.
  std::vector<std::string> on;
  std::chrono::milliseconds backoff{0};
  std::vector<std::string> escalate;  // types to go through, one after each out_of_memory
  bool operator==(const RetrySpec&) const = default;
};

struct JobSpec {
  std::string name;
  std::string experiment;
  std::string run;                   // display name inside the experiment; empty means the name
  std::vector<std::string> command;  // argv; with `shell`, one string for sh -c
  bool shell = false;
  std::string entry;  // the script inside the source, if it is known
  std::vector<Param> params;
  std::map<std::string, std::string> env;        // asked for by the user
  std::map<std::string, std::string> inherited;  // PATH and similar, of the submitting shell
  SourceSpec source;
  EnvironmentSpec environment;
  ResourceSpec resources;
  LimitSpec limits;
  std::vector<ChannelSpec> data;
  std::string checkpoint_dir;  // empty: /opt/ml/checkpoints
  CheckpointSpec checkpoints;
  OutputSpec outputs;
  std::vector<MetricSpec> metrics;
  std::vector<RuleSpec> rules;
  std::vector<SecretSpec> secrets;
  std::map<std::string, std::string> tags;
  RetrySpec retry;
  int32_t priority = 0;  // higher runs first
  bool debug = false;
  // s3://bucket/prefix: outputs are also copied to <prefix>/<name>/output/; empty: only the job
  // keeps them.
  std::string output_to;
  bool output_plain = false;       // there as single files instead of an archive
  std::string origin = "native";   // the door it came through
  std::string request;             // the original request, to be returned as it came
  std::vector<std::string> notes;  // what differs from the request, reported when it was accepted
  bool operator==(const JobSpec&) const = default;
};

}  // namespace athanor
