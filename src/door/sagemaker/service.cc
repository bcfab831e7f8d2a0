#include "door/sagemaker/service.h"

#include <nlohmann/json.hpp>

#include "base/text/text.h"
#include "door/sagemaker/asked.h"
#include "door/sagemaker/register.h"
#include "door/sagemaker/shapes.h"

namespace athanor::sagemaker {

AwsError Refusal(const Error& error) {
  std::string message = error.what;
  if (!error.why.empty()) message += ": " + error.why;
  if (!error.hint.empty()) message += " (" + ReplaceAll(error.hint, "\n", "; ") + ")";
  switch (error.code) {
    case ErrorCode::kExhausted:
      return {400, "ResourceLimitExceeded", message};
    case ErrorCode::kConflict:
      return {400, "ResourceInUse", message};
    case ErrorCode::kNotFound:
    case ErrorCode::kInvalid:
    case ErrorCode::kCorrupt:
      return Invalid(message);
    case ErrorCode::kDenied:
      return {400, "AccessDeniedException", message};
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
    case ErrorCode::kCancelled:
    case ErrorCode::kBug:
      break;
  }
  return {500, "InternalFailure", message};
}

AwsError NotFound() { return Invalid("Requested resource not found."); }

Service::Service(DoorContext& context) : context_(context) {}
Service::~Service() = default;

const std::map<std::string, Service::Operation, std::less<>>& Service::Operations() {
  static const std::map<std::string, Operation, std::less<>> kOperations = {
      {"CreateTrainingJob", &Service::CreateTrainingJob},
      {"DescribeTrainingJob", &Service::DescribeTrainingJob},
      {"StopTrainingJob", &Service::StopTrainingJob},
      {"UpdateTrainingJob", &Service::UpdateTrainingJob},
      {"DeleteTrainingJob", &Service::DeleteTrainingJob},
      {"ListTrainingJobs", &Service::ListTrainingJobs},
      {"DescribeProcessingJob", &Service::DescribeProcessingJob},
      {"Search", &Service::Search},
      {"AddTags", &Service::AddTags},
      {"ListTags", &Service::ListTags},
      {"DeleteTags", &Service::DeleteTags},
      {"CreateHyperParameterTuningJob", &Service::CreateTuningJob},
      {"DescribeHyperParameterTuningJob", &Service::DescribeTuningJob},
      {"StopHyperParameterTuningJob", &Service::StopTuningJob},
      {"DeleteHyperParameterTuningJob", &Service::DeleteTuningJob},
      {"ListHyperParameterTuningJobs", &Service::ListTuningJobs},
      {"ListTrainingJobsForHyperParameterTuningJob", &Service::ListTrainingJobsOfTuningJob},
  };
  return kOperations;
}

void Service::Do(const std::string& operation, Asked asked, Answered answered) {
  const auto found = Operations().find(operation);
  if (found == Operations().end()) {
    return answered(tl::unexpected(
        AwsError{400, "UnknownOperationException",
                 "SageMaker's operation " + Printable(operation) + " is not available here"}));
  }
  if (!asked.body.is_object()) {
    return answered(
        tl::unexpected(AwsError{400, "SerializationException", "the body is no JSON object"}));
  }
  // Members of another type than the model's, met where they are read.
  try {
    (this->*found->second)(std::move(asked), answered);
  } catch (const Json::exception& error) {
    answered(tl::unexpected(AwsError{400, "SerializationException", error.what()}));
  }
}

void Service::Register(std::shared_ptr<Service> service, AwsFront& front) {
  front.OnTarget("SageMaker", [service = std::move(service)](const AwsCall& call) {
    const bool looks = StartsWith(call.operation, "Describe") ||
                       StartsWith(call.operation, "List") || call.operation == "Search";
    if (call.RefusedBelow(looks ? Scope::kRead : Scope::kSubmit)) return;
    Asked asked;
    auto body = ParseJson(call.request.body.empty() ? "{}" : call.request.body);
    if (!body) {
      return call.RefuseJson({400, "SerializationException", body.error().what});
    }
    asked.body = std::move(*body);
    asked.user = call.identity.user();
    asked.region = call.identity.claim.region;
    asked.from_sdk = call.UserAgent().find("AWS-SageMaker-Python-SDK") != std::string_view::npos;
    service->Do(call.operation, std::move(asked), [call](const Answer& answer) {
      if (!answer) return call.RefuseJson(answer.error());
      call.Json(200, DumpJson(*answer));
    });
  });
}

void Service::OnPool(std::function<Answer()> work, Answered answered) {
  bool taken =
      context_.readers.Submit([this, work = std::move(work), answered = std::move(answered)] {
        auto guarded = [&work]() -> Answer {
          try {
            return work();
          } catch (const Json::exception& error) {
            return tl::unexpected(AwsError{400, "SerializationException", error.what()});
          }
        };
        context_.loop.Post([answered, answer = guarded()] { answered(answer); });
      });
  if (!taken) {
    context_.log.Log(LogLevel::kWarning, "a SageMaker call came while the server stopped", {});
  }
}

// A name is the newest job's that was created by it; jobs of other doors are found too.
Result<std::optional<JobRecord>> Service::Find(const std::string& name) const {
  ATHANOR_TRY(const auto hit, context_.jobs.FindKey("sagemaker:" + name));
  if (hit) {
    // An end only when it is stored: its events are read from the store.
    ATHANOR_TRY(auto known, FindJob(context_, hit->id.ToString()));
    return std::optional(std::move(known));
  }
  auto found = FindJob(context_, name);
  // Only by its full name: clients of this API mean it exactly.
  if (found && found->spec.name == name) return std::optional(std::move(*found));
  return std::optional<JobRecord>();
}

tl::expected<JobRecord, AwsError> Service::Named(const Asked& asked, const char* key) {
  ShapeCheck check;
  const auto name = check.Text(asked.body, key, "", {1, 63, kNamePattern}, Need::kRequired);
  // Names of other doors have other letters; what is asked for by them is simply looked up.
  if (!name) return tl::unexpected(*check.Error());
  auto found = Find(*name);
  if (!found) return tl::unexpected(Refusal(found.error()));
  if (!*found) {
    if (auto error = check.Error()) return tl::unexpected(*error);
    return tl::unexpected(NotFound());
  }
  return std::move(**found);
}

}  // namespace athanor::sagemaker

namespace athanor {

void RegisterSageMaker(DoorContext& context, AwsFront& front) {
  sagemaker::Service::Register(std::make_shared<sagemaker::Service>(context), front);
}

}  // namespace athanor
