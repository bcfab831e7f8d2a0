// ExitGate takes the values of secrets out of what leaves the script's host: reports, MLflow calls,
// event files, texts of all kinds. Whatever goes to the server, to another machine or into a folder
// that outlives the attempt passes here, in the form that it has: a log as a stream (run/log_follower,
// since its offsets count), all else whole. A value is replaced by ***NAME***, and by ___NAME___ where
// a name must have no asterisks.
//
// Not looked into: files that are no text. Model outputs, checkpoints and binary artifacts are kept
// as the script wrote them.
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

// Whether bytes look like the begin of a text; they may be cut in the middle of a character.
bool IsTextBegin(std::string_view bytes);

class ExitGate {
 public:
  // None: everything passes.
  explicit ExitGate(std::shared_ptr<const SecretPatterns> patterns = nullptr)
      : patterns_(std::move(patterns)) {}

  // Each says whether there was something to replace; else the bytes are as they were.
  bool ScrubText(std::string& text) const;
  // The values of a JSON document that are strings, however they are escaped; members' names are the
  // protocol's, and stay. A value called "key" is a name without asterisks. All of it, as text, if
  // it is no JSON.
  bool ScrubJson(std::string& document) const;
  // The strings of a protocol buffers message, at any depth; lengths are put right.
  bool ScrubMessage(std::string& message) const;
  // A file that begins as text: copied to `to`, from the begin of `from`, without secrets. False:
  // it is not text, and nothing was written.
  Result<bool> CopyText(int from, int to) const;
  // All but the bytes of logs.
  void ScrubFrames(std::vector<ReportFrame>& frames);

  const std::shared_ptr<const SecretPatterns>& patterns() const { return patterns_; }

 private:
  void ScrubCause(Cause& cause) const;
  void ScrubName(std::string& name);

  std::shared_ptr<const SecretPatterns> patterns_;
  std::unordered_map<std::string, std::string> names_;  // of series, as they leave
};

}  // namespace athanor
