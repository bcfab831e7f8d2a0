// Training images, resolved to environments of this machine. The map is a file of the server's
// home, images.yaml, read again for each request:
//
//   "*/pytorch-training:*": system      # a venv over the system's packages
//   "me/train:*": isolated              # a venv of its own, filled by requirements.txt
//
// The first pattern that matches wins (* is any text); the built-in ones come last.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor::sagemaker {

struct ImageRule {
  std::string pattern;
  std::string base;  // of EnvironmentSpec
};

class ImageMap {
 public:
  static Result<ImageMap> Read(const std::string& path);  // kInvalid: where; no file: built-in
  // kNotFound: with the line to add.
  Result<std::string> BaseFor(std::string_view image) const;

 private:
  std::string path_;
  std::vector<ImageRule> rules_;
};

// What a well-known image promises: "…/pytorch-training:2.0.1-gpu-py310".
struct ImageTag {
  std::string framework;  // "torch"
  std::string version;    // "2.0.1"
  std::string python;     // "3.10"
  bool gpu = false;
};
std::optional<ImageTag> ReadImageTag(std::string_view image);

// What this machine's Python has.
struct HostPython {
  std::string version;  // "3.11"; empty: none found
  std::string torch;    // "1.13.1"; empty: not installed
};
HostPython LookAtHost();
// How the machine differs from what the image promises; empty: in nothing that matters.
std::string Mismatch(const ImageTag& tag, const HostPython& host, bool has_gpu);

}  // namespace athanor::sagemaker
