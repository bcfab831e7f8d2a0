#include "record/studies/study_store.h"

#include "base/text/text.h"
#include "record/db/database.h"

namespace athanor {
namespace {

constexpr char kColumns[] =
    "id, key, name, owner, state, live, created, updated, spec, "
    "(SELECT count(*) FROM study_lines WHERE study = studies.id)";

StudyRow RowIn(const Statement& row) {
  StudyRow out;
  out.id = StudyId::Parse(row.Text(0)).value_or(StudyId{});
  out.key = row.Text(1);
  out.name = row.Text(2);
  out.user = row.Text(3);
  out.state = row.Text(4);
  out.live = row.Int(5) != 0;
  out.created = WallTime{row.Int(6)};
  out.updated = WallTime{row.Int(7)};
  out.spec = row.Text(8);
  out.lines = static_cast<uint64_t>(row.Int(9));
  return out;
}

Status AddLines(Connection& connection, StudyId id, uint64_t after,
                const std::vector<std::string>& lines) {
  ATHANOR_TRY(auto* insert, connection.Prepare("INSERT INTO study_lines (study, seq, json) "
                                               "VALUES (?1, ?2, ?3)"));
  for (size_t i = 0; i < lines.size(); ++i) {
    insert->Bind(1, id.ToString());
    insert->Bind(2, static_cast<int64_t>(after + 1 + i));
    insert->Bind(3, lines[i]);
    ATHANOR_CHECK_OK(insert->Step());
  }
  return Ok();
}

}  // namespace

Status StudyStore::Create(const StudyRow& row, const std::vector<std::string>& lines) {
  return database_.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(
        auto* insert,
        connection.Prepare("INSERT INTO studies (id, key, name, owner, state, live, created, "
                           "updated, spec) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8)"));
    insert->Bind(1, row.id.ToString());
    insert->Bind(2, row.key);
    insert->Bind(3, row.name);
    insert->Bind(4, row.user);
    insert->Bind(5, row.state);
    insert->Bind(6, int64_t{row.live});
    insert->Bind(7, row.created.ms);
    insert->Bind(8, row.spec);
    ATHANOR_CHECK_OK(insert->Step());
    return AddLines(connection, row.id, 0, lines);
  });
}

Status StudyStore::Append(StudyId id, uint64_t after, const std::vector<std::string>& lines,
                          std::string_view state, bool live, WallTime now) {
  return database_.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* count,
                connection.Prepare("SELECT count(*) FROM study_lines WHERE study = ?1"));
    count->Bind(1, id.ToString());
    ATHANOR_TRY(const bool counted, count->Step());
    const auto there = counted ? static_cast<uint64_t>(count->Int(0)) : 0;
    count->Reset();
    if (there != after) {
      return Fail(ErrorCode::kConflict, "the study's journal was written by another");
    }
    ATHANOR_TRY(auto* change, connection.Prepare("UPDATE studies SET state = ?2, live = ?3, "
                                                 "updated = ?4 WHERE id = ?1 RETURNING 1"));
    change->Bind(1, id.ToString());
    change->Bind(2, state);
    change->Bind(3, int64_t{live});
    change->Bind(4, now.ms);
    ATHANOR_TRY(const bool known, change->Step());
    change->Reset();
    if (!known) return Fail(ErrorCode::kConflict, "the study was removed");
    return AddLines(connection, id, after, lines);
  });
}

Status StudyStore::Remove(StudyId id) {
  return database_.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* remove, connection.Prepare("DELETE FROM studies WHERE id = ?1"));
    remove->Bind(1, id.ToString());
    ATHANOR_CHECK_OK(remove->Step());
    return Ok();
  });
}

Result<std::vector<StudyRow>> StudyStore::List(bool live_only) const {
  std::vector<StudyRow> all;
  ATHANOR_CHECK_OK(database_.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* list, connection.Prepare(std::string("SELECT ") + kColumns +
                                               " FROM studies WHERE live >= ?1 ORDER BY id DESC"));
    list->Bind(1, int64_t{live_only});
    for (;;) {
      ATHANOR_TRY(const bool more, list->Step());
      if (!more) return Ok();
      all.push_back(RowIn(*list));
    }
  }));
  return all;
}

Result<std::optional<StudyRow>> StudyStore::FindKey(std::string_view key) const {
  std::optional<StudyRow> found;
  ATHANOR_CHECK_OK(database_.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* find, connection.Prepare(std::string("SELECT ") + kColumns +
                                               " FROM studies WHERE key = ?1"));
    find->Bind(1, key);
    ATHANOR_TRY(const bool there, find->Step());
    if (there) found = RowIn(*find);
    return Ok();
  }));
  return found;
}

Result<StudyRow> StudyStore::Resolve(std::string_view reference) const {
  ATHANOR_TRY(auto all, List());
  const auto lower = ToLower(reference);
  const auto exact = StudyId::Parse(reference);
  std::vector<std::string> names;
  for (auto& row : all) {
    if (reference == "@last" || row.name == reference || row.key == reference ||
        (exact && row.id == *exact)) {
      return std::move(row);
    }
    names.push_back(row.name);
  }
  if (lower.size() >= 4) {
    StudyRow* only = nullptr;
    for (auto& row : all) {
      if (!EndsWith(row.id.ToString(), lower)) continue;
      if (only) {
        return Fail(Error{ErrorCode::kConflict, "several studies end in " + Printable(reference),
                          "give more digits: ath tune ls"}
                        .Id("ATH-T0010"));
      }
      only = &row;
    }
    if (only) return std::move(*only);
  }
  const auto near = Nearest(reference, names);
  return Fail(Error{ErrorCode::kNotFound, "there is no study " + Printable(reference),
                    near ? "did you mean " + *near + "?\nath tune ls" : "ath tune ls"}
                  .Id("ATH-T0010"));
}

Result<std::vector<std::string>> StudyStore::Lines(StudyId id) const {
  std::vector<std::string> lines;
  ATHANOR_CHECK_OK(database_.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* list, connection.Prepare("SELECT json FROM study_lines WHERE study = ?1 "
                                               "ORDER BY seq"));
    list->Bind(1, id.ToString());
    for (;;) {
      ATHANOR_TRY(const bool more, list->Step());
      if (!more) return Ok();
      lines.emplace_back(list->Text(0));
    }
  }));
  return lines;
}

}  // namespace athanor
