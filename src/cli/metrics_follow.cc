#include "cli/metrics_follow.h"

#include <unistd.h>

#include <cstdio>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "cli/screen/output.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"

namespace athanor {
namespace {

// Up to this many new points are asked for by step; more at a time are read as a whole.
constexpr uint64_t kMostByStep = 1'000;

// How much of a metric was printed.
struct Printed {
  uint64_t count = 0;
  std::optional<int64_t> step;
};

class MetricsFollower {
 public:
  MetricsFollower(const Common& common, Client& client, std::string job, std::string only)
      : common_(common), client_(client), job_(std::move(job)), only_(std::move(only)) {}

  int Run() {
    if (!common_.json)
      std::printf("%s%8s  %-12s  TIME\n", only_.empty() ? "METRIC            " : "", "STEP",
                  "VALUE");
    while (true) {
      // Asked before the points: those that came until it ended are there then.
      const auto record = client_.Get("/api/v1/jobs/" + UrlEncode(job_));
      if (!record) return Refuse(record.error(), common_.json);
      const auto body = client_.Get("/api/v1/jobs/" + UrlEncode(job_) + "/metrics");
      if (!body) return Refuse(body.error(), common_.json);
      for (const auto& metric : (*body)["metrics"]) {
        if (!only_.empty() && Text(metric, "name") != only_) continue;
        if (const auto status = Follow(metric); !status)
          return Refuse(status.error(), common_.json);
      }
      std::fflush(stdout);
      if (!Text(*record, "ended").empty() || std::ferror(stdout)) return 0;
      ::sleep(1);
    }
  }

 private:
  Status Follow(const Json& metric) {
    const std::string name = Text(metric, "name");
    const auto count = static_cast<uint64_t>(Number(metric, "count"));
    auto& printed = printed_[name];
    if (count == printed.count) return Ok();
    std::optional<int64_t> last;
    if (metric.contains("last_step")) last = Number(metric, "last_step");
    // A later attempt that resumed counts from an earlier step: its points are new.
    if (last && printed.step && *last <= *printed.step) printed.step = *last - 1;
    const bool by_step =
        last && printed.step && count > printed.count && count - printed.count < kMostByStep;
    std::string target = PointsTarget("/api/v1/runs/" + UrlEncode(job_) + "/metrics", name);
    if (by_step) target += fmt::format("&from={}&width={}", *printed.step + 1, 4 * kMostByStep);
    ATHANOR_TRY(const auto text, client_.GetText(target));
    uint64_t place = 0;
    for (const auto& line : Split(text, '\n')) {
      const auto point = ParseJson(line);
      if (!point || !point->is_object()) continue;
      if (by_step || place++ >= printed.count) Print(name, *point, line);
    }
    printed = {count, last};
    return Ok();
  }

  void Print(const std::string& name, const Json& point, const std::string& line) const {
    if (common_.json) {
      std::printf("%s\n", line.c_str());
      return;
    }
    if (only_.empty()) std::printf("%-18s", Printable(name).c_str());
    std::printf("%8s  %-12s  %s\n",
                point.contains("step") ? std::to_string(Number(point, "step")).c_str() : "-",
                NumberText(point["value"]).c_str(), Local(TimeOf(point, "time")).c_str());
  }

  const Common& common_;
  Client& client_;
  const std::string job_;
  const std::string only_;
  std::map<std::string, Printed> printed_;
};

}  // namespace

int FollowMetrics(const Common& common, Client& client, const std::string& job,
                  const std::string& name) {
  return MetricsFollower(common, client, job, name).Run();
}

}  // namespace athanor
