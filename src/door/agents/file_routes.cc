#include "door/agents/file_routes.h"

#include "base/io/files.h"
#include "base/text/text.h"
#include "record/layout.h"

namespace athanor {
namespace {

// 410 tells the agent that its attempt is over.
Response Over() { return ErrorResponse(410, Error{ErrorCode::kConflict, "this attempt is over"}); }

}  // namespace

bool IsAgentFileRoute(std::string_view route) { return StartsWith(route, "agent.files."); }

std::optional<JobFilesGrant> GrantOf(const DoorContext& context, AttemptId attempt) {
  const auto job = JobNowIn(context, attempt);
  if (!job) return std::nullopt;
  const auto& record = *context.engine.Live(*job);
  const StoreLayout layout{context.info.home};
  JobFilesGrant grant;
  grant.job = job->ToString();
  grant.files.blob_dir = context.blobs.dir();
  grant.files.job_dir = JoinPath(layout.jobs(), grant.job);
  if (!record.resume_job.empty()) {
    grant.files.earlier_dir = JoinPath(layout.jobs(), record.resume_job);
  }
  grant.files.attempt = record.current()->number;
  const auto& source = record.spec.source;
  const auto name = [](std::vector<std::string>& names, const std::string& blob) {
    if (!blob.empty()) names.push_back(blob);
  };
  name(grant.listings, source.bundle);
  name(grant.blobs, source.git_diff);
  name(grant.blobs, record.packages);
  for (const auto& output : record.outputs) {
    name(output.is_listing() ? grant.listings : grant.blobs, output.blob);
  }
  return grant;
}

BodyPolicy AgentFilePolicy(const DoorContext& context, const Router::Match& match,
                           const Request& head, const Caller& caller) {
  const auto grant = GrantOf(context, *caller.attempt);
  if (grant) return context.job_files->PolicyFor(match.route->name, match.captures, head, *grant);
  BodyPolicy policy;
  policy.refuse = Over();
  return policy;
}

std::vector<DoorRoute> AgentFileRoutes(DoorContext& context) {
  context.job_files = std::make_shared<JobFilesService>(context.transfers);
  std::vector<DoorRoute> routes;
  for (const auto& row : JobFilesService::Rows()) {
    routes.push_back({row.method, row.pattern, row.name, [&context, name = row.name](Call call) {
                        auto grant = GrantOf(context, *call.caller.attempt);
                        if (!grant) return call.responder.Send(Over());
                        context.job_files->Handle(name, std::move(call.request),
                                                  std::move(call.captures), std::move(*grant),
                                                  call.responder);
                      }});
  }
  return routes;
}

}  // namespace athanor
