// What a diagnosis asks about where a job ran: the folder the source came from, the packaged copy
// of it, this machine and its Python. Read-only; what cannot be read counts as missing.
#pragma once

#include <string>

#include "job/manifest.h"
#include "link/job_files.h"
#include "link/plan.h"
#include "watch/diagnose/surroundings.h"

namespace athanor {

class JobSurroundings : public Surroundings {
 public:
  // `files`: null where the source cannot be read.
  JobSurroundings(const AttemptPlan& plan, JobFiles* files);

  bool InFolder(const std::string& path) const override;
  bool InSource(const std::string& path) const override;
  std::string SourceText(const std::string& path) const override;
  bool OnMachine(const std::string& path) const override;
  std::string SystemPythonWith(const std::string& module) const override;

 private:
  const AttemptPlan& plan_;
  JobFiles* const files_;
  BundleManifest manifest_;
};

// Whether a folder of packages contains the module: a file, a package or an extension.
bool HasModule(const std::string& site, const std::string& module);

}  // namespace athanor
