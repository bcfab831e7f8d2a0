// The files of the two databases on the disk: every page against its checksum, and the log.
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "record/db/broken_log.h"
#include "record/db/checked_vfs.h"
#include "record/db/database.h"
#include "record/db/rebuild.h"
#include "record/fsck/checker.h"

namespace athanor {
namespace {

constexpr size_t kMostPages = 20;  // reported one by one
constexpr char kRebuild[] =
    "ath fsck --repair    makes the file anew from its tables: nothing is lost";

// Which table or index each damaged page belongs to, as far as its tree leads to it: the first one
// of each tree. `free`: every tree is complete, so the pages belong to none. `tables_whole`: the
// tables are complete, so indexes can be made again.
struct Owners {
  std::map<uint32_t, std::string> by_page;
  bool free = false;
  bool tables_whole = false;
};

Result<Owners> FindOwners(const Database& database) {
  Owners owners;
  std::vector<std::pair<std::string, std::string>> trees{{"table", "sqlite_schema"}};
  const auto listed = database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* rows,
                connection.Prepare("SELECT type, name FROM sqlite_master WHERE rootpage > 0"));
    while (true) {
      ATHANOR_TRY(const bool row, rows->Step());
      if (!row) return Ok();
      trees.emplace_back(rows->Text(0), rows->Text(1));
    }
  });
  if (!listed.ok()) return owners;  // reported already: not even the list can be read
  size_t whole = 0;
  owners.tables_whole = true;
  for (const auto& [type, name] : trees) {
    const auto walked = database.Read([&, &tree = name](Connection& connection) -> Status {
      ATHANOR_TRY(auto* pages, connection.Prepare("SELECT count(*) FROM dbstat WHERE name = ?1"));
      pages->Bind(1, tree);
      ATHANOR_CHECK_OK(pages->Step());
      return Ok();
    });
    owners.tables_whole = owners.tables_whole && (walked.ok() || type == "index");
    if (walked.ok()) {
      ++whole;
    } else if (walked.error().code == ErrorCode::kCorrupt && !LastBrokenPage().in_log) {
      owners.by_page.emplace(static_cast<uint32_t>(LastBrokenPage().number), type + " " + name);
    }
  }
  owners.free = whole == trees.size();
  return owners;
}

}  // namespace

void Checker::CheckLogOf(const std::string& database) {
  for (const auto& broken : BrokenLogsOf(database)) {
    Add("database", "an earlier start found the log of the store damaged: " + NoteOf(broken),
        "the log as it was: " + broken,
        fmt::format("{}\nor, to go on without what was lost: rm {}*", kRestore, ShellQuote(broken)),
        broken);
  }
  auto state = LookAtLog(database);
  if (!state) {
    Add("database", "the log of the store cannot be read", state.error().what,
        "ls -l " + ShellQuote(database + "-wal"), database + "-wal");
    return;
  }
  if (state->kind == LogState::Kind::kWhole) return;
  const bool lost = state->kind == LogState::Kind::kCut || state->kind == LogState::Kind::kMixed;
  Finding& finding =
      Add("database", state->said, "",
          std::string("ath fsck --repair    keeps a copy of it, and what can be kept\n") + kRestore,
          database + "-wal");
  if (!options_.repair) return;
  const auto mended = MendLog(database);
  if (!mended) return Settle(finding, Status(tl::unexpected(mended.error())));
  if (!lost) return Settle(finding, Ok());
  finding.why = "what can be kept was kept, and the log as it was put beside it";
  finding.hint = kRestore;
}

Status Checker::CheckPagesOf(const std::string& path, std::span<const Migration> migrations) {
  auto database = Database::OpenToLook(path, migrations);
  if (!database) return Ok();  // reported by the code that reads it
  ATHANOR_TRY(const auto pages, (*database)->CheckPages());
  if (pages.broken.empty()) return Ok();
  ATHANOR_TRY(const Owners owners, FindOwners(**database));
  database->reset();
  const size_t first = report_.findings.size();
  for (size_t i = 0; i < pages.broken.size() && i < kMostPages; ++i) {
    const uint32_t page = pages.broken[i];
    const auto owner = owners.by_page.find(page);
    std::string why = "its checksum does not fit its bytes";
    if (owner != owners.by_page.end()) why += "; it is part of " + Printable(owner->second);
    if (owners.free) why += "; nothing is on it any more";
    if (i + 1 == kMostPages && pages.broken.size() > kMostPages) {
      why += fmt::format("; {} more pages are damaged", pages.broken.size() - kMostPages);
    }
    Add("database", fmt::format("page {} of {} is not as it was written", page, BaseName(path)),
        why, owners.tables_whole ? kRebuild : kRestore, path);
  }
  if (!options_.repair || !owners.tables_whole) return Ok();
  const Status rebuilt = [&]() -> Status {
    ATHANOR_TRY(const std::string aside, PlaceAside(path));
    return RebuildDatabase(path, aside);
  }();
  for (size_t i = first; i < report_.findings.size(); ++i) Settle(report_.findings[i], rebuilt);
  return Ok();
}

}  // namespace athanor
