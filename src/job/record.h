// JobRecord is what is known about a job now. Only `steer` changes it; everything else reads
// copies. Stored as a whole, as JSON made from the field table.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/exec/clock.h"
#include "job/cause.h"
#include "job/host.h"
#include "job/ids.h"
#include "job/spec.h"
#include "job/state.h"

namespace athanor {

struct StopRequest {
  Cause cause;
  std::string who;
  WallTime at;
  std::chrono::milliseconds grace{120'000};
  bool operator==(const StopRequest&) const = default;
};

// A complete checkpoint: its manifest was committed.
struct CheckpointInfo {
  std::string id;        // "<attempt>-<sequence>", in the order they were committed
  uint32_t attempt = 0;  // number
  std::optional<int64_t> step;
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t new_bytes = 0;  // of these, not stored before
  WallTime at;
  int64_t held_ms = 0;  // of the attempt, when its files were last written
  int64_t save_ms = 0;  // how long the script took to write it; 0: unknown
  int64_t sync_ms = 0;  // how long storing it took
  bool operator==(const CheckpointInfo&) const = default;
};

// How often a checkpoint should be made, and why.
struct IntervalAdvice {
  int64_t every_ms = 0;  // 0: no advice yet
  int64_t save_ms = 0;   // measured cost of one
  int64_t mtbf_ms = 0;   // mean time between losses of this kind of machine
  std::string source;    // where mtbf comes from
  bool operator==(const IntervalAdvice&) const = default;
};

// A rule that fired.
struct Firing {
  std::string rule;  // its name
  std::string kind;  // "nan"
  std::string metric;
  std::optional<int64_t> step;
  std::string value;  // as text: NaN and infinities are values here
  std::string threshold;
  std::string action;  // what was done
  std::string advice;
  WallTime at;
  bool operator==(const Firing&) const = default;
};

struct Attempt {
  AttemptId id;
  uint32_t number = 1;  // also the fencing number
  Placement placement;  // of all hosts together
  std::string handle;   // the back end's; empty until launched
  WallTime placed;
  WallTime prepared;     // the agent came up
  WallTime started;      // the script started; 0: never
  WallTime exited;       // the script ended
  WallTime ended;        // the reservation was released
  int64_t held_ms = 0;   // of the host that held it longest
  int64_t setup_ms = 0;  // part of it, before the script started
  std::optional<ExitInfo> exit;
  Cause cause;                   // how it ended
  std::vector<std::string> off;  // isolation that this machine cannot provide
  std::string type;  // requested for this attempt if it differs from the spec's (escalated)
  int64_t micros_per_hour = -1;          // its price if it differs from the job's
  bool spot = false;                     // its machine can be taken away
  std::optional<StopRequest> interrupt;  // its machine is being taken away
  std::string resumed_from;              // checkpoint; empty: from the beginning
  std::optional<int64_t> resumed_step;
  std::optional<CheckpointInfo> saved;  // newest of this attempt
  int64_t lost_ms = 0;                  // part of its held time that the next attempt repeats
  std::vector<Host> hosts;              // by index; one unless the job asked for more
  std::optional<FirstFall> fell;        // set once, by the first rank or host that ended badly
  bool operator==(const Attempt&) const = default;
};

// A file that the script left and that was not stored.
struct LeftFile {
  std::string name;  // printable
  uint64_t bytes = 0;
  std::string why;
  bool operator==(const LeftFile&) const = default;
};
struct LeftOut {
  uint64_t files = 0;
  uint64_t bytes = 0;
  std::vector<LeftFile> largest = {};  // a few of them
  bool operator==(const LeftOut&) const = default;
};

// What is stored of what the script left, in the object store: the model and output folders as
// archives, and the files of the working folder by a manifest (job/manifest.h) that names one blob
// per file.
struct Output {
  static constexpr char kFiles[] = "files";  // the name of the manifest

  std::string name;    // "model.tar.gz", "output.tar.gz", or kFiles
  std::string blob;    // sha256 of the archive or the manifest
  uint64_t bytes = 0;  // of the archive, or of all listed files
  uint64_t files = 0;
  std::string largest = {};  // of a manifest: its largest file, if its name is printable
  LeftOut left_out = {};     // of a listing
  bool operator==(const Output&) const = default;
  bool is_listing() const { return name == kFiles || name.ends_with("/files"); }
};
// Under which name what a host left is stored: as it is for the first, "algo-2/model.tar.gz" for
// the second.
std::string OutputNameOf(uint32_t host, std::string_view name);

// The price in force when the job was submitted, in millionths of `currency` an hour.
struct PriceTag {
  int64_t micros_per_hour = 0;
  std::string currency = "USD";
  std::string source;  // "own machine", "catalogue 2026-08-22"
  bool operator==(const PriceTag&) const = default;
};

struct JobRecord {
  JobId id;
  std::string key;  // idempotency key
  std::string spec_hash;
  std::string user;
  JobSpec spec;
  JobState state = JobState::kQueued;
  WallTime created;
  WallTime updated;
  WallTime ended;          // 0 until terminal
  WallTime last_seen;      // of its agent
  uint64_t event_seq = 0;  // events so far
  Cause cause;             // of the state it is in: the reason for a wait, or for the end
  std::optional<StopRequest> stop;
  std::vector<Attempt> attempts;
  std::vector<Output> outputs;
  PriceTag price;
  bool simulated = false;
  std::string packages;     // blob: the output of `pip freeze`, for diff; empty if unknown
  std::string same_as;      // an earlier job with the same source, params and data
  std::string parent;       // job this one is a retry of
  std::string resume_job;   // `ath resume`: the job whose checkpoint the first attempt starts from
  std::string resume_from;  // that checkpoint; empty: its newest complete one
  uint32_t retries = 0;     // spent of the user's budget
  IntervalAdvice advice;
  std::vector<Firing> firings;  // the first of each rule
  bool spot_fell_back = false;  // max_wait ran out and it continued as an ordinary job

  bool operator==(const JobRecord&) const = default;
  const Attempt* current() const { return attempts.empty() ? nullptr : &attempts.back(); }
  Attempt* current() { return attempts.empty() ? nullptr : &attempts.back(); }
};

// Cost of a job so far, in millionths: held seconds of all hosts of all attempts at its frozen
// price.
int64_t CostMicros(const JobRecord& record);

// Attempts of before there were hosts ran on one: what is known of them is that host's, too.
void AddMissingHosts(JobRecord& record);

}  // namespace athanor
