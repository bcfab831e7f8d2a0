// What every door works on: the one model. The server's wiring owns it; doors borrow it and use it
// on the loop's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/exec/clock.h"
#include "base/exec/thread_pool.h"
#include "base/log.h"
#include "job/inventory.h"
#include "link/wire.h"
#include "net/http/router.h"
#include "net/loop.h"
#include "price/catalogue.h"
#include "price/price.h"
#include "record/documents/document_store.h"
#include "record/jobs/job_store.h"
#include "record/jobs/loss_store.h"
#include "record/keys/access_keys.h"
#include "record/keys/secret_store.h"
#include "record/keys/token_store.h"
#include "record/logs/log_store.h"
#include "record/objects/blob_store.h"
#include "record/objects/object_store.h"
#include "record/runs/run_store.h"
#include "record/runs/run_writer.h"
#include "record/series/series_store.h"
#include "steer/engine.h"
#include "steer/point_intake.h"
#include "track/model_book.h"
#include "track/run_book.h"

namespace athanor {

class Admission;
class Hub;
class JobFilesService;
class Removal;
class Studies;

struct ServerInfo {
  std::string version;
  std::string home;
  std::string url;         // of the TCP port; empty: none
  std::string agents_url;  // https://, for agents of other machines; empty: none are served
  std::string socket;
  uint32_t uid = 0;  // whose server this is
  std::string user;
  WallTime started;
  bool simulate = false;
  OwnRates rates;
  std::vector<std::string> notices;  // what happened to a store, for its owner to see
};

struct DoorContext {
  Loop& loop;
  const Clock& clock;
  Logger& log;
  Engine& engine;
  Admission& admission;
  Removal& removal;
  JobStore& jobs;
  LossStore& losses;
  DocumentStore& documents;
  LogStore& logs;
  SeriesStore& series;  // points enter it by `points` only
  PointIntake& points;
  RunStore& run_store;
  RunBook& runs;
  RunWriter& run_writer;
  ModelBook& models;
  BlobStore& blobs;
  TokenStore& tokens;
  SecretStore& secrets;
  AccessKeys& access_keys;
  ObjectStore& objects;
  const Catalogue& catalogue;
  Inventory inventory;
  Hub& hub;
  ThreadPool& readers;        // for reads that may take long
  ThreadPool& transfers;      // for work on objects
  std::string artifacts;      // folder of what runs keep
  std::string artifact_root;  // URI beneath which experiments are made; may be a local folder
  std::string ingest_key;     // signs agents' tokens and CSRF tokens
  ServerInfo info;
  std::function<void()> shut_down;
  Studies* studies = nullptr;  // tuning jobs; set as soon as they can be made
  // Of agents; made with its routes. Shared: calls may still be answered while routes are removed.
  std::shared_ptr<JobFilesService> job_files = nullptr;
};

// A job by any reference (id, prefix, name, @last): the live record, otherwise the stored one.
Result<JobRecord> FindJob(const DoorContext& context, std::string_view reference);

// The steps that its attempts resumed from: points beyond them no longer count.
Resumes ResumesOf(const JobRecord& record);

// The job whose current attempt this is; none: the attempt has ended, or was replaced.
std::optional<JobId> JobNowIn(const DoorContext& context, AttemptId attempt);

}  // namespace athanor
