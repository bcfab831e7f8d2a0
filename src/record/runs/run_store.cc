#include "record/runs/run_store.h"

#include <functional>
#include <initializer_list>
#include <string_view>
#include <variant>

#include "record/db/database.h"

namespace athanor {
namespace {

using Value = std::variant<int64_t, std::string_view>;

// Runs one statement that gives no rows.
Status Run(Connection& connection, std::string_view sql, std::initializer_list<Value> values) {
  ATHANOR_TRY(auto* statement, connection.Prepare(sql));
  int index = 0;
  for (const auto& value : values) {
    ++index;
    std::visit([&](const auto& v) { statement->Bind(index, v); }, value);
  }
  ATHANOR_CHECK_OK(statement->Step());
  statement->Reset();
  return Ok();
}

Status EachRow(Connection& connection, std::string_view sql,
               const std::function<void(const Statement&)>& visit) {
  ATHANOR_TRY(auto* statement, connection.Prepare(sql));
  while (true) {
    ATHANOR_TRY(const bool row, statement->Step());
    if (!row) return Ok();
    visit(*statement);
  }
}

Value Number(bool value) { return int64_t{value}; }
Value Number(LabelKind kind) { return static_cast<int64_t>(kind); }

class RowWriter {
 public:
  explicit RowWriter(Connection& connection) : db_(connection) {}

  Status operator()(const ExperimentRow& x) {
    return Run(db_,
               "INSERT INTO experiments (id, name, location, deleted, created, updated) "
               "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (id) DO UPDATE SET name = ?2, "
               "location = ?3, deleted = ?4, created = ?5, updated = ?6",
               {x.id, x.name, x.location, Number(x.deleted), x.created_ms, x.updated_ms});
  }
  Status operator()(const RunRow& x) {
    const std::string id = x.id.value.ToHex();
    return Run(db_,
               "INSERT INTO runs (id, experiment, name, owner, status, started, ended, deleted, "
               "deleted_at, is_job, artifacts) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
               "?11) ON CONFLICT (id) DO UPDATE SET experiment = ?2, name = ?3, owner = ?4, "
               "status = ?5, started = ?6, ended = ?7, deleted = ?8, deleted_at = ?9, "
               "is_job = ?10, artifacts = ?11",
               {id, x.experiment, x.name, x.user, static_cast<int64_t>(x.status), x.started_ms,
                x.ended_ms, Number(x.deleted), x.deleted_ms, Number(x.is_job), x.artifacts});
  }
  Status operator()(const Label& x) {
    if (!x.value) {
      return Run(db_, "DELETE FROM labels WHERE kind = ?1 AND owner = ?2 AND key = ?3",
                 {Number(x.kind), x.owner, x.key});
    }
    return Run(db_,
               "INSERT INTO labels (kind, owner, key, value) VALUES (?1, ?2, ?3, ?4) "
               "ON CONFLICT (kind, owner, key) DO UPDATE SET value = ?4",
               {Number(x.kind), x.owner, x.key, *x.value});
  }
  Status operator()(const DatasetRow& x) {
    return Run(db_,
               "INSERT INTO datasets (experiment, name, digest, source_type, source, schema, "
               "profile) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
               {x.experiment, x.name, x.digest, x.source_type, x.source, x.schema, x.profile});
  }
  Status operator()(const InputRow& x) {
    const std::string run = x.run.value.ToHex();
    return Run(db_,
               "INSERT INTO run_inputs (run, name, digest, tags) VALUES (?1, ?2, ?3, ?4) "
               "ON CONFLICT (run, name, digest) DO UPDATE SET tags = ?4",
               {run, x.name, x.digest, x.tags});
  }
  Status operator()(const ModelLinkRow& x) {
    const std::string run = x.run.value.ToHex();
    return Run(db_,
               "INSERT INTO run_models (run, model, output, step) VALUES (?1, ?2, ?3, ?4) "
               "ON CONFLICT (run, model, output) DO UPDATE SET step = ?4",
               {run, x.model, Number(x.output), x.step});
  }
  Status operator()(const ModelRow& x) {
    return Run(db_,
               "INSERT INTO models (name, description, created, updated) "
               "VALUES (?1, ?2, ?3, ?4) ON CONFLICT (name) DO UPDATE SET description = ?2, "
               "created = ?3, updated = ?4",
               {x.name, x.description, x.created_ms, x.updated_ms});
  }
  Status operator()(const VersionRow& x) {
    return Run(db_,
               "INSERT INTO model_versions (name, version, stage, description, source, run, "
               "run_link, model, created, updated) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, "
               "?10) ON CONFLICT (name, version) DO UPDATE SET stage = ?3, description = ?4, "
               "source = ?5, run = ?6, run_link = ?7, model = ?8, created = ?9, updated = ?10",
               {x.name, x.version, x.stage, x.description, x.source, x.run_id, x.run_link,
                x.model_id, x.created_ms, x.updated_ms});
  }
  Status operator()(const LoggedModelRow& x) {
    return Run(db_,
               "INSERT INTO logged_models (id, experiment, name, type, run, artifacts, status, "
               "deleted, created, updated) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) "
               "ON CONFLICT (id) DO UPDATE SET experiment = ?2, name = ?3, type = ?4, run = ?5, "
               "artifacts = ?6, status = ?7, deleted = ?8, created = ?9, updated = ?10",
               {x.id, x.experiment, x.name, x.type, x.run_id, x.artifacts, x.status,
                Number(x.deleted), x.created_ms, x.updated_ms});
  }

  Status DropRun(JobId id) {
    const std::string run = id.value.ToHex();
    for (const LabelKind kind : {LabelKind::kParam, LabelKind::kTag}) {
      ATHANOR_CHECK_OK(DropLabels(kind, run));
    }
    return Run(db_, "DELETE FROM runs WHERE id = ?1", {run});
  }
  Status DropModel(const std::string& name) {
    ATHANOR_CHECK_OK(DropLabels(LabelKind::kModelTag, name));
    ATHANOR_CHECK_OK(DropLabels(LabelKind::kModelAlias, name));
    ATHANOR_CHECK_OK(DropLabels(LabelKind::kModelNote, name));
    return Run(db_, "DELETE FROM models WHERE name = ?1", {name});
  }
  Status DropVersion(const std::string& name, int64_t version) {
    ATHANOR_CHECK_OK(DropLabels(LabelKind::kVersionTag, VersionOwner(name, version)));
    ATHANOR_CHECK_OK(DropLabels(LabelKind::kVersionNote, VersionOwner(name, version)));
    return Run(db_, "DELETE FROM model_versions WHERE name = ?1 AND version = ?2", {name, version});
  }

 private:
  Status DropLabels(LabelKind kind, const std::string& owner) {
    return Run(db_, "DELETE FROM labels WHERE kind = ?1 AND owner = ?2", {Number(kind), owner});
  }

  Connection& db_;
};

template <class Rows>
Status WriteAllOf(RowWriter& write, const Rows& rows) {
  for (const auto& row : rows) ATHANOR_CHECK_OK(write(row));
  return Ok();
}

Status WriteBatch(Connection& connection, const RunBatch& batch) {
  RowWriter write(connection);
  for (const JobId run : batch.runs_gone) ATHANOR_CHECK_OK(write.DropRun(run));
  for (const auto& [name, version] : batch.versions_gone) {
    ATHANOR_CHECK_OK(write.DropVersion(name, version));
  }
  for (const auto& name : batch.models_gone) ATHANOR_CHECK_OK(write.DropModel(name));
  ATHANOR_CHECK_OK(WriteAllOf(write, batch.experiments));
  ATHANOR_CHECK_OK(WriteAllOf(write, batch.runs));
  ATHANOR_CHECK_OK(WriteAllOf(write, batch.labels));
  ATHANOR_CHECK_OK(WriteAllOf(write, batch.datasets));
  ATHANOR_CHECK_OK(WriteAllOf(write, batch.inputs));
  ATHANOR_CHECK_OK(WriteAllOf(write, batch.links));
  ATHANOR_CHECK_OK(WriteAllOf(write, batch.models));
  ATHANOR_CHECK_OK(WriteAllOf(write, batch.versions));
  return WriteAllOf(write, batch.logged);
}

JobId RunIn(const Statement& row, int column) {
  return JobId::Parse(row.Text(column)).value_or(JobId());
}

std::string TextIn(const Statement& row, int column) { return std::string(row.Text(column)); }

Status VisitRuns(Connection& connection, RunVisitor& visitor) {
  ATHANOR_CHECK_OK(EachRow(connection,
                           "SELECT id, name, location, deleted, created, updated FROM experiments",
                           [&](const Statement& row) {
                             visitor.On(ExperimentRow{row.Int(0), TextIn(row, 1), TextIn(row, 2),
                                                      row.Int(3) != 0, row.Int(4), row.Int(5)});
                           }));
  ATHANOR_CHECK_OK(EachRow(
      connection,
      "SELECT id, experiment, name, owner, status, started, ended, deleted, deleted_at, is_job, "
      "artifacts FROM runs ORDER BY id",
      [&](const Statement& row) {
        visitor.On(RunRow{RunIn(row, 0), row.Int(1), TextIn(row, 2), TextIn(row, 3),
                          static_cast<RunStatus>(row.Int(4)), row.Int(5), row.Int(6),
                          row.Int(7) != 0, row.Int(8), row.Int(9) != 0, TextIn(row, 10)});
      }));
  for (const LabelKind kind : {LabelKind::kExperimentTag, LabelKind::kParam, LabelKind::kTag}) {
    ATHANOR_TRY(auto* row, connection.Prepare("SELECT owner, key, value FROM labels "
                                              "WHERE kind = ?1 ORDER BY owner, key"));
    row->Bind(1, static_cast<int64_t>(kind));
    while (true) {
      ATHANOR_TRY(const bool more, row->Step());
      if (!more) break;
      visitor.On(LabelView{kind, row->Text(0), row->Text(1), row->Text(2)});
    }
  }
  ATHANOR_CHECK_OK(
      EachRow(connection, "SELECT run, name, digest, tags FROM run_inputs ORDER BY run, name",
              [&](const Statement& row) {
                visitor.On(InputRow{RunIn(row, 0), TextIn(row, 1), TextIn(row, 2), TextIn(row, 3)});
              }));
  return EachRow(
      connection, "SELECT run, model, output, step FROM run_models ORDER BY run, model",
      [&](const Statement& row) {
        visitor.On(ModelLinkRow{RunIn(row, 0), TextIn(row, 1), row.Int(2) != 0, row.Int(3)});
      });
}

Status LoadModelsInto(Connection& connection, RunBatch& all) {
  ATHANOR_CHECK_OK(EachRow(connection,
                           "SELECT kind, owner, key, value FROM labels WHERE kind > 3 "
                           "ORDER BY kind, owner, key",
                           [&](const Statement& row) {
                             all.labels.push_back({static_cast<LabelKind>(row.Int(0)),
                                                   TextIn(row, 1), TextIn(row, 2), TextIn(row, 3)});
                           }));
  ATHANOR_CHECK_OK(
      EachRow(connection, "SELECT name, description, created, updated FROM models",
              [&](const Statement& row) {
                all.models.push_back({TextIn(row, 0), TextIn(row, 1), row.Int(2), row.Int(3)});
              }));
  ATHANOR_CHECK_OK(EachRow(
      connection,
      "SELECT name, version, stage, description, source, run, run_link, model, created, updated "
      "FROM model_versions ORDER BY name, version",
      [&](const Statement& row) {
        all.versions.push_back({TextIn(row, 0), row.Int(1), TextIn(row, 2), TextIn(row, 3),
                                TextIn(row, 4), TextIn(row, 5), TextIn(row, 6), TextIn(row, 7),
                                row.Int(8), row.Int(9)});
      }));
  return EachRow(
      connection,
      "SELECT id, experiment, name, type, run, artifacts, status, deleted, created, updated "
      "FROM logged_models ORDER BY created, id",
      [&](const Statement& row) {
        all.logged.push_back({TextIn(row, 0), row.Int(1), TextIn(row, 2), TextIn(row, 3),
                              TextIn(row, 4), TextIn(row, 5), row.Int(6), row.Int(7) != 0,
                              row.Int(8), row.Int(9)});
      });
}

}  // namespace

Status RunStore::Commit(const std::vector<const RunBatch*>& batches) {
  return database_.Write([&](Connection& connection) -> Status {
    for (const auto* batch : batches) ATHANOR_CHECK_OK(WriteBatch(connection, *batch));
    return Ok();
  });
}

Status RunStore::Visit(RunVisitor& visitor) const {
  return database_.Read(
      [&](Connection& connection) -> Status { return VisitRuns(connection, visitor); });
}

Result<RunBatch> RunStore::LoadModels() const {
  RunBatch all;
  ATHANOR_CHECK_OK(database_.Read(
      [&](Connection& connection) -> Status { return LoadModelsInto(connection, all); }));
  return all;
}

Result<DatasetRow> RunStore::Dataset(int64_t experiment, const std::string& name,
                                     const std::string& digest) const {
  DatasetRow found;
  bool any = false;
  ATHANOR_CHECK_OK(database_.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* row,
                connection.Prepare("SELECT source_type, source, schema, profile FROM datasets "
                                   "WHERE experiment = ?1 AND name = ?2 AND digest = ?3"));
    row->Bind(1, experiment);
    row->Bind(2, std::string_view(name));
    row->Bind(3, std::string_view(digest));
    ATHANOR_TRY(any, row->Step());
    if (any) {
      found = {experiment,      name,           digest, TextIn(*row, 0), TextIn(*row, 1),
               TextIn(*row, 2), TextIn(*row, 3)};
      row->Reset();
    }
    return Ok();
  }));
  if (!any) return Fail(ErrorCode::kNotFound, "no data set " + name);
  return found;
}

}  // namespace athanor
