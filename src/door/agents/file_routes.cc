#include "door/agents/file_routes.h"

#include <functional>
#include <memory>
#include <set>

#include "base/text/text.h"
#include "link/job_folder.h"
#include "link/tb_links.h"

namespace athanor {
namespace {

// The jobs whose event files are shown below tb/, as far as this server has made the links: one
// that has started again makes them once more. Threads: the loop's.
class ShownJobs {
 public:
  explicit ShownJobs(DoorContext& context) : context_(context) {}

  // What is to be done before event files of `job` are stored; empty: nothing more.
  std::function<void()> Show(JobId job) {
    const auto* record = context_.engine.Live(job);
    if (record == nullptr || jobs_.contains(job)) return {};
    if (jobs_.size() >= kMostJobs) jobs_.clear();
    jobs_.insert(job);
    JobSpec names;
    names.name = record->spec.name;
    names.experiment = record->spec.experiment;
    names.run = record->spec.run;
    return [&context = context_, job, names = std::move(names)] {
      const auto link = LinkEvents(context.info.home, job, names);
      if (link) return;
      context.log.Log(LogLevel::kWarning, "event files are not shown below tb/",
                      {{"job", job.ToString()}, {"why", link.error().what}});
    };
  }

 private:
  static constexpr size_t kMostJobs = 10'000;
  DoorContext& context_;
  std::set<JobId> jobs_;
};

bool MayStoreEvents(std::string_view route) {
  return route == "agent.files.append" || route == "agent.files.replace";
}

}  // namespace

bool IsAgentFileRoute(std::string_view route) { return StartsWith(route, "agent.files."); }

std::optional<JobFilesGrant> GrantOf(const DoorContext& context, AttemptId attempt, uint32_t host) {
  const auto job = JobNowIn(context, attempt);
  if (!job) return std::nullopt;
  const auto& record = *context.engine.Live(*job);
  JobFilesGrant grant;
  grant.job = job->ToString();
  grant.host = host;
  grant.files.blob_dir = context.blobs.dir();
  grant.files.job_dir = JobFolder(context.info.home, *job).path();
  if (const auto earlier = JobId::Parse(record.resume_job)) {
    grant.files.earlier_dir = JobFolder(context.info.home, *earlier).path();
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
  const auto grant = GrantOf(context, *caller.attempt, caller.host);
  if (grant) return context.job_files->PolicyFor(match.route->name, match.captures, head, *grant);
  BodyPolicy policy;
  policy.refuse = AttemptOver();
  return policy;
}

std::vector<DoorRoute> AgentFileRoutes(DoorContext& context) {
  context.job_files = std::make_shared<JobFilesService>(context.transfers);
  auto shown = std::make_shared<ShownJobs>(context);  // lives as long as the routes
  std::vector<DoorRoute> routes;
  for (const auto& row : JobFilesService::Rows()) {
    routes.push_back(
        {row.method, row.pattern, row.name, [&context, shown, name = row.name](Call call) {
           auto grant = GrantOf(context, *call.caller.attempt, call.caller.host);
           if (!grant) return call.responder.Send(AttemptOver());
           if (MayStoreEvents(name) && job_dir::IsEvents(call.request.Query("name").value_or(""))) {
             grant->on_events = shown->Show(*JobNowIn(context, *call.caller.attempt));
           }
           context.job_files->Handle(name, std::move(call.request), std::move(call.captures),
                                     std::move(*grant), call.responder);
         }});
  }
  return routes;
}

}  // namespace athanor
