// Runs the programs that build an environment (venv, pip, conda): in an environment
// of their own, what they say going to the set-up log, ended when the job is.
//
// The token of a private index reaches them as a netrc that exists only in this
// process's memory: no file, no argument and no variable holds it, nothing is left
// of it when this object goes, however it goes. Programs of this user that run
// meanwhile could read it; that includes the build scripts of the packages
// themselves, so an index whose packages are not trusted gets no token.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "run/environment.h"
#include "watch/scrub/scrubber.h"

namespace athanor {

class Installer {
 public:
  // Borrows `options`. `index_url` may be empty; the token is used only with one. A
  // token of the form NAME:PASSWORD is taken so, another is the password of __token__.
  static Result<Installer> Make(const EnvironmentOptions& options, const std::string& index_url);

  // Runs in the source's folder. kCancelled. kExhausted: the disk is full. kInvalid:
  // the program failed; `why` and `hint` are read from what it said. When it failed,
  // what `details` (a file it wrote, may be empty) says of the index is added.
  Status Run(const std::vector<std::string>& argv, const std::string& details = {});
  // Whether a program ends with 0; says nothing to the log.
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

// The options' base with what configures pip on this machine, and without what would
// point an installer at another Python. Holds no token.
std::map<std::string, std::string> InstallerEnvironment(const EnvironmentOptions& options);
// Without a user or password: https://host/simple.
std::string WithoutUserInfo(std::string url);
// The same failure, in the words every failure to build starts with; what was said
// before moves to `why`. Leaves kCancelled alone.
tl::unexpected<Error> NotBuilt(Error error);

}  // namespace athanor
