// The SageMaker door: training jobs (and what belongs to them) in the service's JSON 1.1, over the
// one model of jobs. Operations that are not here get UnknownOperationException.
//
// Only for the files of this folder; others use register.h. Threads: the loop's; what reads the
// disk for long does so on the context's pools.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/text/json.h"
#include "door/aws/aws_front.h"
#include "door/context.h"
#include "door/sagemaker/request.h"

namespace athanor {
struct StudySpec;
}

namespace athanor::sagemaker {

using Answer = tl::expected<Json, AwsError>;
using Answered = std::function<void(Answer)>;

struct Asked;  // asked.h

class Service {
 public:
  explicit Service(DoorContext& context);
  ~Service();

  static void Register(std::shared_ptr<Service> service, AwsFront& front);
  // Answers once, on the loop's thread. UnknownOperationException for operations that do not exist.
  void Do(const std::string& operation, Asked asked, Answered answered);

 private:
  using Operation = void (Service::*)(Asked, Answered);
  // training.cc
  void CreateTrainingJob(Asked asked, Answered answered);
  void DescribeTrainingJob(Asked asked, Answered answered);
  void StopTrainingJob(Asked asked, Answered answered);
  void UpdateTrainingJob(Asked asked, Answered answered);
  void DeleteTrainingJob(Asked asked, Answered answered);
  void DescribeProcessingJob(Asked asked, Answered answered);
  // listing.cc
  void ListTrainingJobs(Asked asked, Answered answered);
  void Search(Asked asked, Answered answered);
  // tags.cc
  void AddTags(Asked asked, Answered answered);
  void ListTags(Asked asked, Answered answered);
  void DeleteTags(Asked asked, Answered answered);
  // tuning.cc
  void CreateTuningJob(Asked asked, Answered answered);
  void DescribeTuningJob(Asked asked, Answered answered);
  void StopTuningJob(Asked asked, Answered answered);
  void DeleteTuningJob(Asked asked, Answered answered);
  void ListTuningJobs(Asked asked, Answered answered);
  void ListTrainingJobsOfTuningJob(Asked asked, Answered answered);

  void EnterTuning(const StudySpec& spec, const Asked& asked, const Answered& answered);
  void SubmitJob(TrainingRequest request, const Asked& asked, const Answered& answered);
  // The view of a job, made on a reader's thread.
  void Show(const JobRecord& record, const Asked& asked, const Answered& answered);
  // Waits until the job ends, for a limited time: for the SDK's first request about a new job.
  bool Hold(const JobRecord& record, const Asked& asked, const Answered& answered);
  // By the name in `key` of the body, refused if it is none or unknown.
  tl::expected<JobRecord, AwsError> Named(const Asked& asked, const char* key);
  Result<std::optional<JobRecord>> Find(const std::string& name) const;
  // Work that may block; its answer is sent on the loop.
  void OnPool(std::function<Answer()> work, Answered answered);

  static const std::map<std::string, Operation, std::less<>>& Operations();

  DoorContext& context_;
  std::map<std::string, WallTime> looked_at_;  // young jobs whose first look was held or passed
};

// What needs the disk before a job can be accepted: its source and its buckets. Blocks.
Status CompleteRequest(DoorContext& context, TrainingRequest& request);

AwsError Refusal(const Error& error);  // our error in the service's form
AwsError NotFound();                   // "Requested resource not found."

// Documents that the door stores.
inline constexpr char kTagsKind[] = "sagemaker.tags";
inline constexpr char kChangesKind[] = "sagemaker.changes";
inline constexpr char kTuningKind[] = "sagemaker.tuning";

}  // namespace athanor::sagemaker
