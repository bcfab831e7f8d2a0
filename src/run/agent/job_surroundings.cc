#include "run/agent/job_surroundings.h"

#include <unistd.h>

#include "base/io/files.h"
#include "base/text/text.h"
#include "run/environment/interpreter.h"

namespace athanor {
namespace {

constexpr size_t kMostText = 64 << 10;

}  // namespace

bool HasModule(const std::string& site, const std::string& module) {
  const auto path = JoinPath(site, ReplaceAll(module, ".", "/"));
  if (Exists(path + ".py") || Exists(path)) return true;
  const auto names = ListDir(DirName(path));
  if (!names) return false;
  const auto stem = BaseName(path) + ".";
  for (const auto& name : *names) {
    if (StartsWith(name, stem) && EndsWith(name, ".so")) return true;
  }
  return false;
}

JobSurroundings::JobSurroundings(const AttemptPlan& plan, JobFiles* files)
    : plan_(plan), files_(files) {
  if (files_ == nullptr || plan.spec.source.bundle.empty()) return;
  const auto fd = files_->Get(Shelf::kBlobs, plan.spec.source.bundle);
  const auto text =
      fd ? ReadAll(fd->get(), kManifestTextLimit) : Result<std::string>(Fail(fd.error()));
  if (!text) return;
  if (auto manifest = ReadManifest(*text)) manifest_ = std::move(*manifest);
}

bool JobSurroundings::InFolder(const std::string& path) const {
  const auto& dir = plan_.spec.source.dir;
  return !dir.empty() && CheckRelativeName(path).ok() && Exists(JoinPath(dir, path));
}

bool JobSurroundings::InSource(const std::string& path) const {
  return manifest_.Find(path) != nullptr;
}

std::string JobSurroundings::SourceText(const std::string& path) const {
  const auto* entry = manifest_.Find(path);
  if (entry == nullptr || entry->kind != BundleEntry::Kind::kFile) return "";
  const auto fd = files_->Get(Shelf::kBlobs, entry->sha256);
  if (!fd) return "";
  std::string text(kMostText, '\0');
  const ssize_t count = ::read(fd->get(), text.data(), text.size());
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return text;
}

bool JobSurroundings::OnMachine(const std::string& path) const { return Exists(path); }

std::string JobSurroundings::SystemPythonWith(const std::string& module) const {
  if (plan_.spec.environment.base == "system" || !plan_.spec.environment.conda.empty()) return "";
  // A name that came out of a log: it must not lead anywhere else.
  if (module.empty() || !CheckRelativeName(ReplaceAll(module, ".", "/")).ok()) return "";
  const auto system = FindInterpreter("", true, plan_.spec.inherited);
  if (!system) return "";
  for (const auto& site : SystemSites(*system)) {
    if (HasModule(site, module)) return system->path;
  }
  return "";
}

}  // namespace athanor
