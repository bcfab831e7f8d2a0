#include "record/documents/document_store.h"

#include "base/text/text.h"
#include "record/db/database.h"

namespace athanor {
namespace {

Document DocumentIn(const Statement& row) {
  return {std::string(row.Text(0)), std::string(row.Text(1)), WallTime{row.Int(2)},
          WallTime{row.Int(3)}};
}

}  // namespace

Status DocumentStore::Create(std::string_view kind, std::string_view name, std::string_view text,
                             WallTime now) {
  return database_.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* find,
                connection.Prepare("SELECT 1 FROM documents WHERE kind = ?1 AND name = ?2"));
    find->Bind(1, kind);
    find->Bind(2, name);
    ATHANOR_TRY(const bool there, find->Step());
    find->Reset();
    if (there) return Fail(ErrorCode::kConflict, "there is a " + Printable(name) + " already");
    ATHANOR_TRY(auto* insert,
                connection.Prepare("INSERT INTO documents (kind, name, json, created, updated) "
                                   "VALUES (?1, ?2, ?3, ?4, ?4)"));
    insert->Bind(1, kind);
    insert->Bind(2, name);
    insert->Bind(3, text);
    insert->Bind(4, now.ms);
    ATHANOR_CHECK_OK(insert->Step());
    return Ok();
  });
}

Status DocumentStore::Put(std::string_view kind, std::string_view name, std::string_view text,
                          WallTime now) {
  return database_.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* insert,
                connection.Prepare("INSERT INTO documents (kind, name, json, created, updated) "
                                   "VALUES (?1, ?2, ?3, ?4, ?4) ON CONFLICT (kind, name) "
                                   "DO UPDATE SET json = ?3, updated = ?4"));
    insert->Bind(1, kind);
    insert->Bind(2, name);
    insert->Bind(3, text);
    insert->Bind(4, now.ms);
    ATHANOR_CHECK_OK(insert->Step());
    return Ok();
  });
}

Result<std::optional<Document>> DocumentStore::Find(std::string_view kind,
                                                    std::string_view name) const {
  std::optional<Document> found;
  ATHANOR_CHECK_OK(database_.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* find, connection.Prepare("SELECT name, json, created, updated FROM documents "
                                               "WHERE kind = ?1 AND name = ?2"));
    find->Bind(1, kind);
    find->Bind(2, name);
    ATHANOR_TRY(const bool there, find->Step());
    if (there) found = DocumentIn(*find);
    return Ok();
  }));
  return found;
}

Status DocumentStore::Remove(std::string_view kind, std::string_view name) {
  return database_.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* remove,
                connection.Prepare("DELETE FROM documents WHERE kind = ?1 AND name = ?2"));
    remove->Bind(1, kind);
    remove->Bind(2, name);
    ATHANOR_CHECK_OK(remove->Step());
    return Ok();
  });
}

Result<std::vector<Document>> DocumentStore::List(std::string_view kind) const {
  std::vector<Document> all;
  ATHANOR_CHECK_OK(database_.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* list, connection.Prepare("SELECT name, json, created, updated FROM documents "
                                               "WHERE kind = ?1 ORDER BY created DESC, name"));
    list->Bind(1, kind);
    for (;;) {
      ATHANOR_TRY(const bool more, list->Step());
      if (!more) return Ok();
      all.push_back(DocumentIn(*list));
    }
  }));
  return all;
}

}  // namespace athanor
