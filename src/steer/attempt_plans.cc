#include "steer/attempt_plans.h"

#include <utility>

#include "job/host_folder.h"
#include "steer/attempt_tokens.h"
#include "steer/loss_rates.h"

namespace athanor {
namespace {

// Where the ranks of an attempt meet: attempts side by side on one machine rarely have the same,
// and an attempt always has the same one, however often it is launched.
uint16_t MasterPortOf(const AttemptId& attempt) {
  constexpr uint16_t kFirst = 20'000;
  constexpr uint32_t kPorts = 10'000;
  const auto& bytes = attempt.value.bytes;  // the last ones are chance
  const uint32_t some = uint32_t{bytes[13]} << 16 | uint32_t{bytes[14]} << 8 | bytes[15];
  return static_cast<uint16_t>(kFirst + some % kPorts);
}

// A script that logs with MLflow logs to its job's run, unless it names another server. Its agent
// tells it where we are.
void AddTracking(const JobRecord& record, const std::string& key, AttemptPlan& plan) {
  if (record.spec.env.contains("MLFLOW_TRACKING_URI")) return;
  plan.spec.env["MLFLOW_RUN_ID"] = record.id.value.ToHex();
  plan.spec.env["MLFLOW_TRACKING_TOKEN"] = RunToken(key, plan.attempt);
}

}  // namespace

Result<LaunchPlan> AttemptPlans::Of(const JobRecord& record) const {
  LaunchPlan plan;
  for (uint32_t i = 0; i < record.current()->hosts.size(); ++i) {
    plan.hosts.push_back(OfHost(record, i));
    ATHANOR_CHECK_OK(parts_.lead(plan.hosts.back()));
  }
  return plan;
}

AttemptPlan AttemptPlans::OfHost(const JobRecord& record, uint32_t host) const {
  const auto& attempt = *record.current();
  AttemptPlan plan;
  plan.job = record.id;
  plan.attempt = attempt.id;
  plan.number = attempt.number;
  plan.spec = record.spec;
  plan.placement = attempt.hosts[host].placement;
  plan.host = host;
  for (const auto& peer : attempt.hosts) plan.peers.push_back({peer.name, peer.address});
  plan.master_port = MasterPortOf(attempt.id);
  plan.token = IngestToken(parts_.key, attempt.id, host);
  plan.webhooks_private = parts_.webhooks_private;
  plan.instance_type = LossRates::TypeOf(record, attempt);
  for (const auto& output : record.outputs) {
    if (output.name == OutputNameOf(host, Output::kFiles)) plan.kept_files = output.blob;
  }
  plan.resume_job = record.resume_job;
  if (!plan.resume_job.empty()) plan.resume_from = record.resume_from;
  parts_.contract(record.spec, plan);
  plan.spec.request.clear();  // the door's own; agents read no request
  auto rate = parts_.losses.Of(record, attempt);
  plan.mtbf_ms = rate.mtbf_ms;
  plan.mtbf_source = std::move(rate.source);
  AddTracking(record, parts_.key, plan);
  return plan;
}

}  // namespace athanor
