#include <cstdint>
#include <cstdlib>
#include <string>

#include "job/causes.h"
#include "watch/diagnose/diagnose.h"
#include "watch/diagnose/modules.h"
#include "watch/diagnose/surroundings.h"

namespace {

// A place that has every file, and the log for its text.
class Anywhere : public athanor::Surroundings {
 public:
  explicit Anywhere(const std::string& text, bool there) : text_(text), there_(there) {}
  bool InFolder(const std::string&) const override { return there_; }
  bool InSource(const std::string&) const override { return !there_; }
  std::string SourceText(const std::string&) const override { return text_; }
  bool OnMachine(const std::string&) const override { return there_; }
  std::string SystemPythonWith(const std::string&) const override {
    return there_ ? "/usr/bin/python3" : "";
  }

 private:
  const std::string& text_;
  bool there_;
};

}  // namespace

// The first bytes choose the circumstances, the rest is the log.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  if (size < 3) return 0;
  const std::string log(reinterpret_cast<const char*>(data) + 3, size - 3);
  EndEvidence evidence;
  evidence.setup_failed = data[0] & 1;
  if (data[0] & 2) {
    evidence.exit.emplace();
    evidence.exit->code = data[1];
    if (data[0] & 4) evidence.exit->signal = data[1] % 65;
    evidence.exit->oom_killed = data[0] & 8;
    evidence.exit->memory_limit = data[0] & 16 ? ~0ull : 0;
    if (data[0] & 32) evidence.exit->spawn_error = log.substr(0, 200);
  }
  if (data[0] & 64) evidence.stop.emplace();
  if (data[0] & 128) evidence.command = {log.substr(0, 40), "train.py"};
  evidence.setup_tail = log;
  if (data[2] & 1) evidence.stderr_tail = log;
  if (data[2] & 2) evidence.stdout_tail = log;
  if (data[2] & 4) evidence.failure_file = log;
  if (data[2] & 8) evidence.code_dir = log.substr(0, 5);
  const Anywhere around(log, data[2] & 32);
  if (data[2] & 16) evidence.around = &around;
  if (data[2] & 64) evidence.environment.requirements = log.substr(0, 20);
  evidence.captured = data[2] & 128;
  (void)Requires(log, log.substr(0, 10));
  const Cause cause = Diagnose(evidence);
  if (FindCause(cause.kind) == nullptr || cause.text.empty() || cause.hint.empty()) std::abort();
  if (cause.text.size() > 8'192) std::abort();
  for (const char c : cause.text) {
    if (static_cast<unsigned char>(c) < 0x20) std::abort();
  }
  return 0;
}
