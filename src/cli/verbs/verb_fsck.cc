// fsck: looks the stores over while no server runs.
#include <sys/stat.h>

#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "cli/screen/output.h"
#include "cli/screen/refuse.h"
#include "cli/screen/reports.h"
#include "cli/verbs/verbs.h"
#include "serve/home_lock.h"

namespace athanor {

void PrintFindings(const FsckReport& report) {
  auto terminal = DetectTerminal();
  for (const auto& finding : report.findings) {
    std::string line = finding.repaired ? Paint(terminal, Ink::kGreen, "repaired")
                                        : Paint(terminal, Ink::kRed, "found");
    line += " " + finding.part + ": " + Printable(finding.what);
    if (!finding.why.empty()) line += " (" + Printable(finding.why) + ")";
    if (!finding.where.empty()) line += " in " + Printable(finding.where);
    if (!finding.hint.empty()) line += "; next: " + ReplaceAll(finding.hint, "\n", ", or ");
    std::printf("%s\n", line.c_str());
  }
  std::printf("%s, %s, %s, %s series, %s, %s: %s\n", Counted(report.jobs, "job").c_str(),
              Counted(report.events, "event").c_str(), Counted(report.blobs, "blob").c_str(),
              std::to_string(report.series).c_str(), Counted(report.logs, "log").c_str(),
              Counted(report.checkpoints, "checkpoint").c_str(),
              report.clean() ? "clean"
                             : fmt::format("{} found, {} repaired", report.findings.size(),
                                           report.findings.size() - report.left())
                                   .c_str());
}

Json ReportView(const FsckReport& report) {
  Json findings = Json::array();
  for (const auto& finding : report.findings) {
    findings.push_back({{"part", finding.part},
                        {"what", finding.what},
                        {"why", finding.why},
                        {"hint", finding.hint},
                        {"where", finding.where},
                        {"repaired", finding.repaired}});
  }
  return {{"clean", report.clean()},
          {"findings", std::move(findings)},
          {"left", report.left()},
          {"jobs", report.jobs},
          {"events", report.events},
          {"blobs", report.blobs},
          {"series", report.series},
          {"logs", report.logs},
          {"checkpoints", report.checkpoints},
          {"objects", report.objects},
          {"bytes", report.bytes},
          {"schema", report.version}};
}

int FsckVerb(const Common& common, bool repair, bool deep) {
  ::umask(077);
  if (!Exists(common.home.database())) {
    // Says what is missing; a lock file would be made for nothing.
    return Refuse(Fsck(common.home, {}).error(), common.json);
  }
  auto lock = LockHome(common.home, "ath server stop\nath fsck");
  if (!lock) return Refuse(lock.error(), common.json);
  auto report = Fsck(common.home, {repair, deep});
  if (!report) return Refuse(report.error(), common.json);
  if (common.json) {
    std::printf("%s\n", DumpJson(ReportView(*report)).c_str());
  } else {
    PrintFindings(*report);
  }
  return report->left() == 0 ? 0 : 1;
}

}  // namespace athanor
