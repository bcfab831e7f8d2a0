#include "record/db/database.h"

namespace athanor {
namespace {

// A migration that has been released is never edited: add the next one.
//
// `jobs` has what lists show, small and in list order; the whole record is in another table, so
// that listing ten thousand jobs never reads their specs.
constexpr Migration kMigrations[] = {
    {1, R"sql(
CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  experiment TEXT NOT NULL,
  owner TEXT NOT NULL,
  state TEXT NOT NULL,
  live INTEGER NOT NULL,
  created INTEGER NOT NULL,
  started INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  cause_kind TEXT NOT NULL,
  cause_text TEXT NOT NULL,
  type TEXT NOT NULL,
  command TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  cost_micros INTEGER NOT NULL,
  simulated INTEGER NOT NULL,
  same_hash TEXT NOT NULL,
  PRIMARY KEY (created, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_live ON jobs (created, id) WHERE live = 1;
CREATE INDEX jobs_state ON jobs (state, created, id);
CREATE INDEX jobs_name ON jobs (name, created, id);
CREATE INDEX jobs_same ON jobs (same_hash, created, id);

CREATE TABLE records (
  job TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
  json TEXT NOT NULL
) STRICT;

CREATE TABLE keys (
  key TEXT PRIMARY KEY,
  job TEXT NOT NULL UNIQUE REFERENCES jobs (id) ON DELETE CASCADE,
  spec_hash TEXT NOT NULL,
  created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  cause TEXT NOT NULL,
  UNIQUE (job, seq)
) STRICT;

CREATE TABLE outbox (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  attempt TEXT NOT NULL
) STRICT;
CREATE INDEX outbox_job ON outbox (job);

CREATE TABLE tokens (
  id TEXT PRIMARY KEY,
  hash TEXT NOT NULL,
  note TEXT NOT NULL,
  scope TEXT NOT NULL,
  bound TEXT NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  last_used INTEGER NOT NULL,
  revoked INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_bound ON tokens (bound) WHERE bound <> '';

CREATE TABLE secrets (
  name TEXT PRIMARY KEY,
  sealed TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
)sql"},
    // How long machines of a type were held, and how often they were taken away meanwhile.
    {2, R"sql(
CREATE TABLE type_losses (
  type TEXT NOT NULL,
  spot INTEGER NOT NULL,
  held_ms INTEGER NOT NULL,
  losses INTEGER NOT NULL,
  PRIMARY KEY (type, spot)
) STRICT, WITHOUT ROWID;
)sql"},
    // Pairs of an id and a secret that sign requests. The secret is needed to verify, so it is
    // encrypted and not hashed.
    {3, R"sql(
CREATE TABLE access_keys (
  id TEXT PRIMARY KEY,
  sealed TEXT NOT NULL,
  note TEXT NOT NULL,
  scope TEXT NOT NULL,
  bound TEXT NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  last_used INTEGER NOT NULL,
  revoked INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX access_keys_bound ON access_keys (bound) WHERE bound <> '';
)sql"},
    // What doors store in addition to jobs; experiments, runs and models. `labels` has their keys
    // and values: parameters, tags, aliases (record/runs/run_rows.h has the kinds).
    {4, R"sql(
CREATE TABLE documents (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  json TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE experiments (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  location TEXT NOT NULL,
  deleted INTEGER NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL
) STRICT;
INSERT INTO experiments VALUES (0, 'Default', 'mlflow-artifacts:/0', 0, 0, 0);

CREATE TABLE runs (
  id TEXT PRIMARY KEY,
  experiment INTEGER NOT NULL REFERENCES experiments (id),
  name TEXT NOT NULL,
  owner TEXT NOT NULL,
  status INTEGER NOT NULL,
  started INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  deleted_at INTEGER NOT NULL,
  is_job INTEGER NOT NULL,
  artifacts TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE labels (
  kind INTEGER NOT NULL,
  owner TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (kind, owner, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE datasets (
  experiment INTEGER NOT NULL REFERENCES experiments (id),
  name TEXT NOT NULL,
  digest TEXT NOT NULL,
  source_type TEXT NOT NULL,
  source TEXT NOT NULL,
  schema TEXT NOT NULL,
  profile TEXT NOT NULL,
  PRIMARY KEY (experiment, name, digest)
) STRICT;

CREATE TABLE run_inputs (
  run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  digest TEXT NOT NULL,
  tags TEXT NOT NULL,
  PRIMARY KEY (run, name, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE run_models (
  run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  model TEXT NOT NULL,
  output INTEGER NOT NULL,
  step INTEGER NOT NULL,
  PRIMARY KEY (run, model, output)
) STRICT, WITHOUT ROWID;

CREATE TABLE models (
  name TEXT PRIMARY KEY,
  description TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE model_versions (
  name TEXT NOT NULL REFERENCES models (name) ON DELETE CASCADE,
  version INTEGER NOT NULL,
  stage TEXT NOT NULL,
  description TEXT NOT NULL,
  source TEXT NOT NULL,
  run TEXT NOT NULL,
  run_link TEXT NOT NULL,
  model TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  PRIMARY KEY (name, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE logged_models (
  id TEXT PRIMARY KEY,
  experiment INTEGER NOT NULL REFERENCES experiments (id),
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  run TEXT NOT NULL,
  artifacts TEXT NOT NULL,
  status INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
)sql"},
    // Tuning jobs and their journals.
    {5, R"sql(
CREATE TABLE studies (
  id TEXT PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  owner TEXT NOT NULL,
  state TEXT NOT NULL,
  live INTEGER NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  spec TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE study_lines (
  study TEXT NOT NULL REFERENCES studies (id) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  json TEXT NOT NULL,
  PRIMARY KEY (study, seq)
) STRICT, WITHOUT ROWID;
)sql"},
    // A submit only appends to tables: jobs are found by name, key and run through
    // record/jobs/newest_times.h, and only jobs that have ended are indexed by state.
    {6, R"sql(
DROP INDEX jobs_state;
DROP INDEX jobs_name;
DROP INDEX jobs_same;
CREATE INDEX jobs_over ON jobs (state, created, id, live) WHERE live = 0;

CREATE TABLE keys_by_job (
  key TEXT NOT NULL,
  job TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
  spec_hash TEXT NOT NULL,
  created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO keys_by_job SELECT key, job, spec_hash, created FROM keys ORDER BY job;
DROP TABLE keys;
ALTER TABLE keys_by_job RENAME TO keys;
)sql"},
    // Two jobs with one key are refused by the store itself. Keys that nobody chose rise with time,
    // so that a submit adds to the end of this index, too.
    {7, R"sql(
CREATE UNIQUE INDEX keys_key ON keys (key);
)sql"},
};

}  // namespace

std::span<const Migration> ServerMigrations() { return kMigrations; }

}  // namespace athanor
