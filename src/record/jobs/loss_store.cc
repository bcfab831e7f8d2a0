#include "record/jobs/loss_store.h"

#include <algorithm>

#include "record/db/database.h"

namespace athanor {
namespace {

TypeLosses LossesIn(const Statement& row) {
  return {std::string(row.Text(0)), row.Int(1) != 0, row.Int(2), row.Int(3)};
}

}  // namespace

Status LossStore::Add(std::string_view type, bool spot, int64_t held_ms, bool lost) {
  return database_.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare(
                    "INSERT INTO type_losses (type, spot, held_ms, losses) VALUES (?1, ?2, ?3, ?4) "
                    "ON CONFLICT (type, spot) DO UPDATE SET held_ms = held_ms + ?3, "
                    "losses = losses + ?4"));
    statement->Bind(1, type);
    statement->Bind(2, int64_t{spot});
    statement->Bind(3, std::max<int64_t>(held_ms, 0));
    statement->Bind(4, int64_t{lost});
    ATHANOR_CHECK_OK(statement->Step());
    return Ok();
  });
}

Result<TypeLosses> LossStore::Of(std::string_view type, bool spot) const {
  TypeLosses losses{std::string(type), spot, 0, 0};
  ATHANOR_CHECK_OK(database_.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare("SELECT type, spot, held_ms, losses FROM type_losses "
                                   "WHERE type = ?1 AND spot = ?2"));
    statement->Bind(1, type);
    statement->Bind(2, int64_t{spot});
    ATHANOR_TRY(const bool row, statement->Step());
    if (row) losses = LossesIn(*statement);
    return Ok();
  }));
  return losses;
}

Result<std::vector<TypeLosses>> LossStore::All() const {
  std::vector<TypeLosses> all;
  ATHANOR_CHECK_OK(database_.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare("SELECT type, spot, held_ms, losses FROM type_losses "
                                   "ORDER BY type, spot"));
    while (true) {
      ATHANOR_TRY(const bool row, statement->Step());
      if (!row) return Ok();
      all.push_back(LossesIn(*statement));
    }
  }));
  return all;
}

}  // namespace athanor
