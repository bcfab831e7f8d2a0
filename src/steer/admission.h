// Admission turns a spec that came from outside into a draft of a job: what every door and every
// tuning job submits, retries and resumes with. Everything that can be checked is checked here,
// before anything is stored; the engine then accepts the draft, or knows its key already.
//
// Threads: the executor's.
#pragma once

#include <string>

#include "base/exec/clock.h"
#include "base/result.h"
#include "job/record.h"
#include "price/price.h"

namespace athanor {

class Backends;
class BlobStore;
class Catalogue;
class JobStore;
class SecretStore;
struct Need;

class Admission {
 public:
  struct Parts {
    const Clock& clock;
    JobStore& jobs;
    BlobStore& blobs;
    SecretStore& secrets;
    const Catalogue& catalogue;
    const Backends& backends;  // a job is accepted if one of them can ever hold it
    OwnRates rates;
    bool simulate = false;  // see Engine::Parts
    std::string home;
  };
  explicit Admission(Parts parts) : parts_(std::move(parts)) {}

  // `key` is the caller's, for repetitions; empty: there will be none. kInvalid: it can never run
  // here as it is asked for. kExhausted: the disk is too full to accept anything.
  Result<JobRecord> Draft(JobSpec spec, const std::string& key, const std::string& user) const;

 private:
  Status CheckSecrets(const JobSpec& spec) const;
  Status CheckSpace() const;
  Result<Need> Fitting(const ResourceSpec& resources) const;

  Parts parts_;
};

}  // namespace athanor
