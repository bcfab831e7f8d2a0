// The native door to what SageMaker's clients see: a CreateTrainingJob body in, a job's
// DescribeTrainingJob view out.
#include <memory>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "door/doors.h"
#include "door/sagemaker/asked.h"
#include "door/sagemaker/service.h"
#include "link/aws_environment.h"

namespace athanor {
namespace {

void Reply(const Call& call, const sagemaker::Answer& answer, int status) {
  if (answer) return call.Json(status, DumpJson(*answer));
  call.Refuse(
      Error{answer.error().code == "ResourceInUse" ? ErrorCode::kConflict : ErrorCode::kInvalid,
            answer.error().message, "see docs/sagemaker.md"}
          .Why(answer.error().code)
          .Id("ATH-R0020"));
}

sagemaker::Asked AskedBy(const Call& call, Json body) {
  return {std::move(body), call.caller.user, kAwsRegion, false};
}

void Create(sagemaker::Service& service, const Call& call) {
  auto body = ParseJson(call.request.body);
  if (!body) return call.Refuse(body.error());
  const auto name = body->is_object() && body->contains("TrainingJobName") &&
                            (*body)["TrainingJobName"].is_string()
                        ? (*body)["TrainingJobName"].get<std::string>()
                        : std::string();
  service.Do("CreateTrainingJob", AskedBy(call, std::move(*body)),
             [call, name](sagemaker::Answer answer) {
               if (answer) (*answer)["name"] = name;
               Reply(call, answer, 201);
             });
}

void Describe(DoorContext& context, sagemaker::Service& service, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  service.Do("DescribeTrainingJob", AskedBy(call, {{"TrainingJobName", record->spec.name}}),
             [call](const sagemaker::Answer& answer) { Reply(call, answer, 200); });
}

}  // namespace

std::vector<DoorRoute> SageMakerRoutes(DoorContext& context) {
  auto service = std::make_shared<sagemaker::Service>(context);
  return {
      Native("sagemaker.create", [service](const Call& call) { Create(*service, call); }),
      Native("sagemaker.show",
             [&context, service](const Call& call) { Describe(context, *service, call); }),
  };
}

}  // namespace athanor
