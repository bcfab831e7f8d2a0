// What a diagnosis asks about the place a job ran in: the folder the source came
// from, the copy that was packaged of it, this machine and its Python. Reads only;
// what cannot be read is not there.
#pragma once

#include <string>

#include "job/manifest.h"
#include "link/plan.h"
#include "watch/diagnose/surroundings.h"

namespace athanor {

class JobSurroundings : public Surroundings {
 public:
  explicit JobSurroundings(const AttemptPlan& plan);

  bool InFolder(const std::string& path) const override;
  bool InSource(const std::string& path) const override;
  std::string SourceText(const std::string& path) const override;
  bool OnMachine(const std::string& path) const override;
  std::string SystemPythonWith(const std::string& module) const override;

 private:
  const AttemptPlan& plan_;
  BundleManifest manifest_;
};

// Whether a folder of packages holds the module: a file, a package or an extension.
bool HasModule(const std::string& site, const std::string& module);

}  // namespace athanor
