#include "steer/admission.h"

#include <utility>

#include "base/io/files.h"
#include "base/text/text.h"
#include "job/codec.h"
#include "job/friendly_name.h"
#include "launch/backends.h"
#include "place/need.h"
#include "price/catalogue.h"
#include "record/jobs/job_store.h"
#include "record/keys/secret_store.h"
#include "record/objects/blob_store.h"
#include "submit/spec_check.h"

namespace athanor {
namespace {

constexpr uint64_t kReserveBytes = 64ull << 20;

}  // namespace

Status Admission::CheckSecrets(const JobSpec& spec) const {
  const auto check = [&](const std::string& name) -> Status {
    if (parts_.secrets.Has(name)) return Ok();
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

Status Admission::CheckSpace() const {
  const auto free = FreeBytes(parts_.home);
  if (!free || *free >= kReserveBytes) return Ok();
  return Fail(Error{ErrorCode::kExhausted, "the disk is too full to accept a job",
                    "free some space, or remove old jobs: ath rm JOB"}
                  .Why(HumanBytes(*free) + " free where " + parts_.home + " lies, " +
                       HumanBytes(kReserveBytes) + " needed")
                  .Id("ATH-S0202"));
}

// What it needs where it fits first; otherwise why it does not fit at the first back end.
Result<Need> Admission::Fitting(const ResourceSpec& resources) const {
  Result<Need> refused = Fail(ErrorCode::kInvalid, "this server has no back end");
  for (const auto& at : parts_.backends.all()) {
    auto need = Resolve(resources, parts_.catalogue, at.inventory, parts_.simulate);
    if (need) return need;
    if (&at == &parts_.backends.all().front()) refused = std::move(need);
  }
  return refused;
}

Result<JobRecord> Admission::Draft(JobSpec spec, const std::string& key,
                                   const std::string& user) const {
  ATHANOR_CHECK_OK(CheckSpec(spec));
  ATHANOR_CHECK_OK(CheckSecrets(spec));
  ATHANOR_CHECK_OK(CheckSpace());
  auto resolved = Fitting(spec.resources);
  // An unknown type is a mistake in the request, not a missing thing of the server's.
  if (!resolved) resolved.error().code = ErrorCode::kInvalid;
  ATHANOR_TRY(auto need, std::move(resolved));
  if (!spec.source.bundle.empty() && !parts_.blobs.Use(spec.source.bundle)) {
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
  draft.created = parts_.clock.Wall();
  draft.simulated = need.simulated;
  if (!spec.resources.type.empty()) {
    ATHANOR_TRY(auto type, parts_.catalogue.Find(spec.resources.type));
    draft.price = PriceOfType(type);
  } else {
    draft.price = PriceOfAmounts(need.cpu_millis, need.memory_bytes, need.gpus, parts_.rates);
  }
  auto same = parts_.jobs.FindSameRun(SameRunHash(spec));
  if (same && *same) draft.same_as = (*same)->ToString();
  if (spec.name.empty()) spec.name = FriendlyName(draft.id.value);
  draft.spec = std::move(spec);
  return draft;
}

}  // namespace athanor
