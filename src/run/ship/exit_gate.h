// ExitGate removes the values of secrets from what leaves the script's host: reports, MLflow calls,
// event files, all kinds of text. Everything that goes to the server, to another machine or into a
// folder that outlives the attempt passes here, in its own form: a log as a stream
// (run/ship/log_follower, because its offsets count), everything else as a whole. A value is
// replaced by
// ***NAME***, and by ___NAME___ where a name must not contain asterisks.
//
// Files that are not text are not inspected. Model outputs, checkpoints and binary artifacts are
// stored as the script wrote them.
//
// Threads: safe from any; ScrubFrames from one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "link/wire.h"
#include "watch/scrub/scrubber.h"

namespace athanor {

// Whether bytes look like the beginning of a text; they may be cut in the middle of a character.
bool IsTextBegin(std::string_view bytes);

class ExitGate {
 public:
  // None: everything passes.
  explicit ExitGate(std::shared_ptr<const SecretPatterns> patterns = nullptr)
      : patterns_(std::move(patterns)) {}

  // Each returns whether there was something to replace; otherwise the bytes are unchanged.
  bool ScrubText(std::string& text) const;
  // The values of a JSON document that are strings, however they are escaped; names of members
  // belong to the protocol, and stay. A value called "key" is a name without asterisks. All of it,
  // as text, if it is not JSON.
  bool ScrubJson(std::string& document) const;
  // The strings of a protocol buffers message, at any depth; lengths are corrected.
  bool ScrubMessage(std::string& message) const;
  // A file that begins as text: copied to `to`, from the beginning of `from`, without secrets.
  // False: it is not text, and nothing was written.
  Result<bool> CopyText(int from, int to) const;
  // Everything except the bytes of logs.
  void ScrubFrames(std::vector<ReportFrame>& frames);

  const std::shared_ptr<const SecretPatterns>& patterns() const { return patterns_; }

 private:
  void ScrubCause(Cause& cause) const;
  void ScrubName(std::string& name);

  std::shared_ptr<const SecretPatterns> patterns_;
  std::unordered_map<std::string, std::string> names_;  // of series, as they leave
};

}  // namespace athanor
