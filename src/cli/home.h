// Where things lie. ATHANOR_HOME, else $XDG_DATA_HOME/athanor, else
// ~/.local/share/athanor.
#pragma once

#include <string>

namespace athanor {

struct Home {
  std::string root;
  std::string server() const { return root + "/server"; }          // not for jobs to see
  std::string database() const { return root + "/server/athanor.db"; }
  std::string secret_key() const { return root + "/server/secret.key"; }
  std::string ingest_key() const { return root + "/server/ingest.key"; }
  std::string blobs() const { return root + "/blobs"; }
  std::string logs() const { return root + "/server/logs"; }
  std::string series() const { return root + "/server/series"; }
  std::string attempts() const { return root + "/attempts"; }
  std::string jobs() const { return root + "/jobs"; }
  std::string cache() const { return root + "/cache"; }
  std::string socket() const { return root + "/server.sock"; }
  std::string lock() const { return root + "/server.lock"; }
  std::string server_log() const { return root + "/server.log"; }
  std::string settings() const { return root + "/settings.yaml"; }
};

Home HomeFromEnvironment();
// The path of this program, and of what is installed beside it.
std::string ProgramPath();
std::string PythonPackageDir();

}  // namespace athanor
