// JobFiles is everything that the agent of an attempt stores for its job and reads of it: bytes by
// their sha256 (sources, outputs, parts of checkpoints) and named entries in the job's folder
// (event files, captures, stacks, manifests of checkpoints). It does not know what they mean.
// LocalJobFiles works on the server's own folders, RemoteJobFiles through its agents' address; an
// agent cannot tell which one it has. One conformance suite (job_files_conformance.h,
// job_checkpoints_conformance.h) holds both.
//
// Names of entries are relative to the job's folder (link/job_dir.h). An agent may write below
// events, capture, stacks, members and values; it may also read manifests, and, if its job
// continues from another one, that job's manifests as earlier/manifests. Everything else is
// kDenied.
//
// Threads: safe from any. Every call may be repeated, and repeating it changes nothing. Errors:
// kExhausted: no room there. kConflict: another attempt of the job has taken over (of calls that
// write), or what each call says. kUnavailable, kTimeout: not reached, although it was tried again
// for as long as the implementation is patient; kCancelled: it was told to stop trying.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/exec/clock.h"
#include "base/io/fd.h"
#include "base/result.h"
#include "record/checkpoints/checkpoint_store.h"
#include "record/objects/blob_store.h"

namespace athanor {

// Which bytes a sha256 is looked for in.
enum class Shelf {
  kBlobs,  // the server's: sources and outputs. An agent sees those that its job names or that it
           // stored
  kParts,  // of this job's checkpoints
  kEarlierParts,  // of the job that this one continues from; read only
};

struct JobEntry {
  std::string name;  // beneath the job's folder: "events/train/x.tfevents"
  uint64_t bytes = 0;
  bool operator==(const JobEntry&) const = default;
};

// What is to be removed from the job's checkpoints.
struct CheckpointCare {
  const CheckpointSpec* keep = nullptr;  // those that it does not keep; null: none
  CheckpointStore::ValueOf value_of;     // for keep->keep_best
  // Parts that neither a checkpoint nor this set names; none: no parts.
  std::optional<std::set<std::string>> needed;
};

class JobFiles {
 public:
  // Called after each piece that was read of a file, with its size; false: give up (kCancelled).
  using Pace = std::function<bool(uint64_t bytes)>;

  virtual ~JobFiles() = default;

  // The same files for someone who may have to stop: while `cancel_fd`, which is borrowed, is
  // readable, calls that wait for a server end with kCancelled. `patience`: with kUnavailable or
  // kTimeout, once no byte got through for so long; zero: they wait without end.
  virtual std::unique_ptr<JobFiles> Until(int cancel_fd, Millis patience) const = 0;

  // Of each blob whether it is there with that size. Those that are there stay for a while, so that
  // they can be named.
  virtual Result<std::vector<bool>> Has(Shelf shelf, const std::vector<BlobRef>& blobs) = 0;
  // The bytes, as an open file at its beginning. kNotFound: not there, or not for this job.
  // kCorrupt: other bytes came. A local blob is not checked: whoever uses it does that.
  virtual Result<UniqueFd> Get(Shelf shelf, const std::string& sha256) = 0;
  // Stores `bytes` of the file `fd` from `offset`; on disk when it returns. Only bytes that are
  // missing travel. A whole file without a name (base/io/unnamed_file.h) may be taken as it is: do
  // not write to it any more. kCorrupt: the file became shorter or changed meanwhile.
  virtual Result<BlobRef> Put(Shelf shelf, int fd, uint64_t offset, uint64_t bytes,
                              const Pace& pace) = 0;

  // The files beneath a folder of entries, by name; empty if there is none.
  virtual Result<std::vector<JobEntry>> List(const std::string& folder) = 0;
  // An open file, at its beginning; it may grow or be replaced meanwhile. kNotFound.
  virtual Result<UniqueFd> Read(const std::string& name) = 0;
  // The file becomes the bytes of `fd` from its beginning: readers see the old ones or the new
  // ones. A file without a name may be taken as it is, as by Put.
  virtual Status Replace(const std::string& name, int fd) = 0;
  // `bytes` come at `offset`, and the file ends after them; it is made at offset 0. Returns its
  // size. kConflict: it is shorter than `offset`.
  virtual Result<uint64_t> Append(const std::string& name, uint64_t offset,
                                  std::string_view bytes) = 0;
  // A file, or a folder with everything in it; succeeds if there is none.
  virtual Status Remove(const std::string& name) = 0;

  // Makes a checkpoint of parts that were stored: complete or invisible, on disk when it returns.
  // Gives it the attempt's number and the next id. Committing the same manifest again gives the
  // same id. kNotFound: a part is missing. kInvalid: CheckManifest.
  virtual Result<CheckpointInfo> Commit(const CheckpointManifest& manifest) = 0;
  // From now on only this attempt and later ones commit; then removes what `care` says. The first
  // call of an attempt also removes parts of checkpoints that were never finished.
  virtual Status Tend(const CheckpointCare& care) = 0;
};

// A text as an entry.
Status ReplaceWith(JobFiles& files, const std::string& name, std::string_view text);
// kInvalid: it is longer than `limit`.
Result<std::string> ReadText(JobFiles& files, const std::string& name, size_t limit);
// A text as a blob.
Result<BlobRef> PutText(JobFiles& files, Shelf shelf, std::string_view text);

// Checkpoints as entries. `folder` is where the manifests are: manifests, or earlier/manifests.
// Where their parts are:
Shelf PartsOf(const std::string& folder);
Result<CheckpointManifest> LoadCheckpoint(JobFiles& files, const std::string& folder,
                                          std::string_view id);
// Whether everything that it names is there with the right size; no byte is read. kNotFound and
// kCorrupt name the file. Shared files are looked for in `shared_dir`.
Status CheckWhole(JobFiles& files, const std::string& folder, const CheckpointManifest& manifest,
                  const std::string& shared_dir);
// The newest that can be read and whose parts are there, as CheckpointStore::Newest. That
// the server cannot be reached is an error: it says nothing about a checkpoint.
Result<CheckpointStore::Found> NewestCheckpoint(JobFiles& files, const std::string& folder,
                                                std::string_view before,
                                                const std::string& shared_dir);

}  // namespace athanor
