#include "door/sagemaker/images.h"

#include <fnmatch.h>
#include <re2/re2.h>

#include <filesystem>

#include "base/io/files.h"
#include "base/text/text.h"
#include "submit/yaml.h"

namespace athanor::sagemaker {
namespace {

constexpr char kPackages[] = "/usr/lib/python3/dist-packages";

std::string MajorMinor(std::string_view version) {
  auto parts = Split(version, '.');
  return parts.size() < 2 ? std::string(version) : parts[0] + "." + parts[1];
}

}  // namespace

Result<ImageMap> ImageMap::Read(const std::string& path) {
  ImageMap map;
  map.path_ = path;
  if (Exists(path)) {
    ATHANOR_TRY(const auto text, ReadFile(path, kYamlTextLimit));
    ATHANOR_TRY(const auto root, ParseYaml(text, path));
    for (const auto& entry : root.entries) {
      const auto& base = entry.value.text;
      if (base != "system" && base != "isolated" && base != "host") {
        return Fail(Error{ErrorCode::kInvalid,
                          "image \"" + Printable(entry.key) + "\" has no environment",
                          "system, isolated or host"}
                        .Why("got \"" + Printable(base) + "\"")
                        .Where(WhereOf(path, entry.mark)));
      }
      map.rules_.push_back({entry.key, base});
    }
  }
  for (const char* known : {"*/pytorch-training:*", "pytorch-training:*"}) {
    map.rules_.push_back({known, "system"});
  }
  return map;
}

Result<std::string> ImageMap::BaseFor(std::string_view image) const {
  const std::string name(image);
  for (const auto& rule : rules_) {
    if (::fnmatch(rule.pattern.c_str(), name.c_str(), 0) == 0) return rule.base;
  }
  return Fail(Error{ErrorCode::kNotFound, "image " + Printable(image) + " is not known here",
                    "add the line  \"" + Printable(image) + "\": system  to " + path_}
                  .Why("images are run as environments of this machine, and none is named for it"));
}

std::optional<ImageTag> ReadImageTag(std::string_view image) {
  static const RE2 kKnown(
      R"((?:.*/)?pytorch-training:(\d+(?:\.\d+)*)(?:-(cpu|gpu))?(?:-py(\d)(\d+))?.*)");
  ImageTag tag;
  std::string device, major, minor;
  if (!RE2::FullMatch(image, kKnown, &tag.version, &device, &major, &minor)) return std::nullopt;
  tag.framework = "torch";
  tag.gpu = device == "gpu";
  if (!major.empty()) tag.python = major + "." + minor;
  return tag;
}

HostPython LookAtHost() {
  HostPython host;
  std::error_code none;
  const auto target = std::filesystem::read_symlink("/usr/bin/python3", none).filename().string();
  if (StartsWith(target, "python")) host.version = target.substr(6);
  if (auto names = ListDir(kPackages)) {
    for (const auto& name : *names) {
      if (!StartsWith(name, "torch-")) continue;
      host.torch = name.substr(6, name.find_first_not_of("0123456789.", 6) - 6);
      while (EndsWith(host.torch, ".")) host.torch.pop_back();
    }
  }
  return host;
}

std::string Mismatch(const ImageTag& tag, const HostPython& host, bool has_gpu) {
  std::vector<std::string> differ;
  if (host.torch.empty()) {
    differ.push_back("torch " + tag.version +
                     " is not installed here (requirements.txt may bring it)");
  } else if (MajorMinor(host.torch) != MajorMinor(tag.version)) {
    differ.push_back("torch is " + host.torch + ", not " + tag.version);
  }
  if (!tag.python.empty() && !host.version.empty() && tag.python != host.version) {
    differ.push_back("Python is " + host.version + ", not " + tag.python);
  }
  if (tag.gpu && !has_gpu) differ.push_back("there is no GPU");
  return Join(differ, "; ");
}

}  // namespace athanor::sagemaker
