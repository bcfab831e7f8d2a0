// Downloads parts of a job to this machine: its source, blob by blob, and single files.
#pragma once

#include <string>

#include "base/io/fd.h"
#include "base/result.h"
#include "cli/client.h"

namespace athanor {

// A temporary folder below TMPDIR, removed with this object.
class Scratch {
 public:
  explicit Scratch(const char* purpose);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }  // empty: could not be made

 private:
  std::string path_;
};

// A blob in an unnamed file below `dir`, positioned at its beginning.
Result<UniqueFd> FetchBlob(Client& client, const std::string& sha256, const std::string& dir);
// Unpacks the bundle into `dir`, which is created; each file is checked against its hash.
Status FetchSource(Client& client, const std::string& bundle, const std::string& dir);
// Writes the answer to a GET into a new file.
Status FetchFile(Client& client, const std::string& target, const std::string& path);

}  // namespace athanor
