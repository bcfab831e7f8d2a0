// Where things are. ATHANOR_HOME, otherwise $XDG_DATA_HOME/athanor, otherwise
// ~/.local/share/athanor.
#pragma once

#include <string>

#include "record/layout.h"

namespace athanor {

struct Home : StoreLayout {
  std::string cache() const { return root + "/cache"; }
  std::string aws() const { return root + "/aws"; }  // for AWS clients: `ath env aws`
  std::string socket() const { return root + "/server.sock"; }
  std::string server_log() const { return root + "/server.log"; }
};

Home HomeFromEnvironment();
// Where it is unless ATHANOR_HOME says otherwise.
std::string UsualHome();
// The path of this program, and of what is installed next to it.
std::string ProgramPath();
std::string PythonPackageDir();

}  // namespace athanor
