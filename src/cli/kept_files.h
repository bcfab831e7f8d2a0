// The files of a job as one tree, for `ath cp`: what the script left in its working folder, the
// model folder as model/, the output folder as output/, and the source as code/.
//
// If a name could mean two things: for model/ and output/, the contract's folder wins over a file
// of that name in the working folder, and other files below are found, too; code/ means the source
// first. files/NAME is always in the working folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/text/json.h"
#include "cli/client.h"
#include "job/manifest.h"

namespace athanor {

class KeptFiles {
 public:
  struct File {
    std::string path;
    uint64_t bytes = 0;
  };

  static Result<KeptFiles> Open(Client& client, const std::string& job);

  // By path. Below code/ only if `path` asks for it.
  Result<std::vector<File>> List(const std::string& path) const;
  // Downloads what `path` names into `dir`, an existing folder of its own, and returns where it is:
  // a file, or a folder. kNotFound (ATH-C0022) says what exists instead.
  Result<std::string> Fetch(const std::string& path, const std::string& dir) const;

  Json left_out() const;  // an object, empty if all was kept
  const std::string& name() const { return name_; }

 private:
  explicit KeptFiles(Client& client) : client_(&client) {}

  Status FetchArchive(const std::string& top, const std::string& tree) const;
  // A path of the working folder without the links in it.
  std::string Resolved(std::string path) const;
  // Writes the files to `tree` that are `path` or are below it; returns whether there were any.
  Result<bool> FetchLeft(const std::string& path, const std::string& tree) const;
  Error Missing(const std::string& path) const;

  Client* client_;
  std::string id_;
  std::string name_;
  std::string state_;
  std::string source_;                 // the source's listing
  std::vector<std::string> archives_;  // "model", "algo-2/output"
  BundleManifest left_;                // those of other hosts as "algo-2/files/..."
  std::string left_out_;               // as text
};

}  // namespace athanor
