#include "run/agent/upload.h"

#include <string_view>
#include <utility>

#include "base/io/files.h"
#include "base/text/text.h"
#include "run/agent/outputs.h"
#include "run/agent/publish.h"
#include "run/agent/working_files.h"
#include "run/contract/contract.h"

namespace athanor {

UploadedFrame StoreOutputs(const AttemptPlan& plan, const std::string& scratch_dir,
                           const HeldFolder& ml, JobFiles& files) {
  UploadedFrame uploaded;
  const auto failed = [&](const Error& error) {
    uploaded.failure = {"upload_failed", "outputs could not be kept: " + error.what, error.hint,
                        error.why};
  };
  WorkingFolder working{ml / "code", plan.spec.source.bundle, plan.kept_files, {}};
  constexpr std::string_view kCode = "/opt/ml/code/";
  if (StartsWith(plan.spec.checkpoint_dir, kCode)) {
    working.skip.push_back(plan.spec.checkpoint_dir.substr(kCode.size()));
  }
  auto working_files = KeepWorkingFiles(working, plan.spec.outputs, files);
  if (!working_files) failed(working_files.error());
  auto outputs = KeepOutputs(ml, files, scratch_dir);
  if (!outputs) failed(outputs.error());
  if (outputs) {
    if (auto published = PublishOutputs(plan, ml, *outputs); !published) {
      uploaded.failure = {
          "upload_failed",
          "outputs could not be put to " + plan.spec.output_to + ": " + published.error().what,
          "ath cp " + ShellQuote(plan.spec.name + ":model/") + " .", published.error().why};
    }
    for (auto& kept : *outputs) uploaded.outputs.push_back(std::move(kept.output));
  }
  if (working_files && *working_files) {
    uploaded.outputs.push_back(std::move(**working_files));
  }
  if (plan.host == 0) return uploaded;
  for (auto& output : uploaded.outputs) output.name = JoinPath(HostName(plan), output.name);
  return uploaded;
}

}  // namespace athanor
