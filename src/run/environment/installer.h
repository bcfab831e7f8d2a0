// Runs the programs that build an environment (venv, pip, conda) in an environment of their own.
// Their output goes to the set-up log, and they end when the job does.
//
// The token of a private index reaches them as a netrc that exists only in this process's memory:
// it is in no file, no argument and no variable, and nothing is left of it when this object is
// gone, even after a crash. Programs of this user that run meanwhile could read it. That includes
// the build scripts of packages, so give no token to an index whose packages you do not trust.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/io/fd.h"
#include "base/result.h"
#include "run/environment/environment.h"
#include "watch/scrub/scrubber.h"

namespace athanor {

class Installer {
 public:
  // Borrows `options`. `index_url` may be empty; the token is used only with one. A token of the
  // form NAME:PASSWORD is used as such, any other is the password of __token__.
  static Result<Installer> Make(const EnvironmentOptions& options, const std::string& index_url);

  // Runs in the source's folder. kCancelled. kExhausted: the disk is full. kInvalid: the program
  // failed; `why` and `hint` come from its output. If it failed, what `details` (a file it wrote,
  // may be empty) says about the index is added.
  Status Run(const std::vector<std::string>& argv, const std::string& details = {});
  // Whether a program ends with 0; writes nothing to the log.
  bool Succeeds(const std::vector<std::string>& argv);
  void Say(const std::string& line);

 private:
  Installer(const EnvironmentOptions& options, std::shared_ptr<const SecretPatterns> patterns);
  Status OfferIndex(const std::string& index_url);

  const EnvironmentOptions* options_;
  std::shared_ptr<const SecretPatterns> patterns_;
  std::map<std::string, std::string> environment_;
  UniqueFd netrc_;
};

// The options' base with what configures pip on this machine, and without variables that would
// direct an installer to another Python. Contains no token.
std::map<std::string, std::string> InstallerEnvironment(const EnvironmentOptions& options);
// Without a user or password: https://host/simple.
std::string WithoutUserInfo(std::string url);
// The same failure, with the text that every failed build starts with; the original text moves to
// `why`. Leaves kCancelled as it is.
tl::unexpected<Error> NotBuilt(Error error);

}  // namespace athanor
