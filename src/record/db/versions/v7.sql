-- A store as the program that wrote schema version 7 left it (killed, with a job running and one
-- waiting); read by database_versions_test.cc. Never edited: it stands for what users have.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
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
INSERT INTO jobs VALUES('01m7gsc45amv7sxsktrzg13z9y','quiet-lamp','','ann','Completed',0,1794786070698,1794786071016,1794786071098,'completed','the script ended with status 0','','python3 train.py',1,0,0,'efc9b1c103c4a844e85c52c04ecc310e949a1f2f325fcab45e1f2cbd29e5ce2e');
INSERT INTO jobs VALUES('01m7gsc45mrrejvtdv63gpsn84','broken','','ann','Failed',0,1794786070708,1794786070999,1794786071084,'nonzero_exit','exit status 3','','sh -c ''exit 3''',1,0,0,'97be1f87d6df28bfcf0099dc2fa027921d7726e2a755d1d1d70537f854734f08');
INSERT INTO jobs VALUES('01m7gsc4mekgvjr936gmvcrgyk','runs','','ann','Running',1,1794786071182,1794786071279,0,'','','','sleep 300',1,0,0,'5c6a797ef6ad1013f8ff461c6f3288f12d140356eef1ad825f0b908397e12f5e');
INSERT INTO jobs VALUES('01m7gsc4nqq1h1x11tszcns2p2','waits','','ann','Queued',1,1794786071223,0,0,'waiting_cpus','needs 2 CPUs; 1 of 2 free; frees up when job runs finishes','','sleep 1',0,0,0,'7591752f6f34b2ee8d06f2bd2a4ea74149cf8f8bade1bb974ca047d2a446f17b');
CREATE TABLE records (
  job TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
  json TEXT NOT NULL
) STRICT;
INSERT INTO records VALUES('01m7gsc45amv7sxsktrzg13z9y','{"id":"01m7gsc45amv7sxsktrzg13z9y","key":"first","spec_hash":"fe3519163949dff7354d6a5f562e988c2264b9fc5956a2a521e1580e02c35a6e","user":"ann","spec":{"name":"quiet-lamp","command":["python3","train.py"],"shell":false,"entry":"train.py","params":[{"name":"lr","value":"0.1","kind":"number"}],"inherited":{"HOME":"/home/ann","LANG":"C.UTF-8","PATH":"/usr/local/bin:/usr/bin:/bin"},"source":{"dir":"/home/ann/work","max_size":0,"bundle":"76600021ab92cc310be76641aa19f94fc01b07b1ccc8643e3508384e0ef0767a","files":1,"bytes":26},"resources":{"cpu_millis":0,"memory_bytes":0,"gpus":0},"limits":{"max_runtime_ms":0,"stop_grace_ms":120000,"lost_after_ms":0,"log_bytes":1073741824},"retry":{"max":0,"backoff_ms":0},"priority":0,"debug":false,"origin":"native"},"state":"Completed","created":"2026-11-15T23:41:10.698Z","updated":"2026-11-15T23:41:11.098Z","ended":"2026-11-15T23:41:11.098Z","last_seen":"2026-11-15T23:41:11.098Z","event_seq":6,"cause":{"kind":"completed","text":"the script ended with status 0","hint":"ath show quiet-lamp"},"attempts":[{"id":"01m7gsc45b2rdatzj67t8e2cms","number":1,"placement":{"backend":"process","cpu_millis":1000,"memory_bytes":0,"simulated":false},"handle":"01m7gsc45b2rdatzj67t8e2cms","placed":"2026-11-15T23:41:10.699Z","prepared":"2026-11-15T23:41:10.740Z","started":"2026-11-15T23:41:11.016Z","exited":"2026-11-15T23:41:11.088Z","ended":"2026-11-15T23:41:11.098Z","held_ms":368,"setup_ms":240,"exit":{"code":0,"signal":0,"oom_killed":false,"disk_full":false,"done_called":false,"memory_peak":3133440,"memory_limit":0,"cpu_ms":33,"first_rank":0,"log_dropped":0},"cause":{"kind":"completed","text":"the script ended with status 0","hint":"ath show quiet-lamp"}}],"price":{"micros_per_hour":0,"currency":"USD","source":"own machine"},"simulated":false}');
INSERT INTO records VALUES('01m7gsc45mrrejvtdv63gpsn84','{"id":"01m7gsc45mrrejvtdv63gpsn84","key":"01m7gsc45k5s1jskqm39acttcj","spec_hash":"a68ad2ef69d1332273b5d222ad71d473bdbb0fff2a6ce73746b3f74f009821c8","user":"ann","spec":{"name":"broken","command":["sh","-c","exit 3"],"shell":false,"inherited":{"HOME":"/home/ann","LANG":"C.UTF-8","PATH":"/usr/local/bin:/usr/bin:/bin"},"source":{"dir":"/home/ann/work","max_size":0,"bundle":"76600021ab92cc310be76641aa19f94fc01b07b1ccc8643e3508384e0ef0767a","files":1,"bytes":26},"resources":{"cpu_millis":0,"memory_bytes":0,"gpus":0},"limits":{"max_runtime_ms":0,"stop_grace_ms":120000,"lost_after_ms":0,"log_bytes":1073741824},"retry":{"max":0,"backoff_ms":0},"priority":0,"debug":false,"origin":"native"},"state":"Failed","created":"2026-11-15T23:41:10.708Z","updated":"2026-11-15T23:41:11.084Z","ended":"2026-11-15T23:41:11.084Z","last_seen":"2026-11-15T23:41:11.084Z","event_seq":6,"cause":{"kind":"nonzero_exit","text":"exit status 3","hint":"ath logs broken --tail 50"},"attempts":[{"id":"01m7gsc45mrrejvtdv668tnra7","number":1,"placement":{"backend":"process","cpu_millis":1000,"memory_bytes":0,"simulated":false},"handle":"01m7gsc45mrrejvtdv668tnra7","placed":"2026-11-15T23:41:10.708Z","prepared":"2026-11-15T23:41:10.759Z","started":"2026-11-15T23:41:10.999Z","exited":"2026-11-15T23:41:11.063Z","ended":"2026-11-15T23:41:11.084Z","held_ms":327,"setup_ms":238,"exit":{"code":3,"signal":0,"oom_killed":false,"disk_full":false,"done_called":false,"memory_peak":262144,"memory_limit":0,"cpu_ms":1,"first_rank":0,"log_dropped":0},"cause":{"kind":"nonzero_exit","text":"exit status 3","hint":"ath logs broken --tail 50"}}],"price":{"micros_per_hour":0,"currency":"USD","source":"own machine"},"simulated":false}');
INSERT INTO records VALUES('01m7gsc4mekgvjr936gmvcrgyk','{"id":"01m7gsc4mekgvjr936gmvcrgyk","key":"01m7gsc4me48fjgbk6g5w8hp5x","spec_hash":"14feec5bb981fabf2d915af72e971513444b5a9d0e5d0c465a68c134d8c71b4b","user":"ann","spec":{"name":"runs","command":["sleep","300"],"shell":false,"inherited":{"HOME":"/home/ann","LANG":"C.UTF-8","PATH":"/usr/local/bin:/usr/bin:/bin"},"source":{"dir":"/home/ann/work","max_size":0,"bundle":"76600021ab92cc310be76641aa19f94fc01b07b1ccc8643e3508384e0ef0767a","files":1,"bytes":26},"resources":{"cpu_millis":0,"memory_bytes":0,"gpus":0},"limits":{"max_runtime_ms":0,"stop_grace_ms":120000,"lost_after_ms":0,"log_bytes":1073741824},"retry":{"max":0,"backoff_ms":0},"priority":0,"debug":false,"origin":"native"},"state":"Running","created":"2026-11-15T23:41:11.182Z","updated":"2026-11-15T23:41:11.279Z","last_seen":"2026-11-15T23:41:11.279Z","event_seq":4,"attempts":[{"id":"01m7gsc4mekgvjr936gnahpx5n","number":1,"placement":{"backend":"process","cpu_millis":1000,"memory_bytes":0,"simulated":false},"handle":"01m7gsc4mekgvjr936gnahpx5n","placed":"2026-11-15T23:41:11.182Z","prepared":"2026-11-15T23:41:11.201Z","started":"2026-11-15T23:41:11.279Z","held_ms":66,"setup_ms":21}],"price":{"micros_per_hour":0,"currency":"USD","source":"own machine"},"simulated":false}');
INSERT INTO records VALUES('01m7gsc4nqq1h1x11tszcns2p2','{"id":"01m7gsc4nqq1h1x11tszcns2p2","key":"01m7gsc4nqc35y11k249hed5re","spec_hash":"a0008e564b7d45f48d3c60857c5cc24f4c7a236c7b035f7a151438b112121c4b","user":"ann","spec":{"name":"waits","command":["sleep","1"],"shell":false,"inherited":{"HOME":"/home/ann","LANG":"C.UTF-8","PATH":"/usr/local/bin:/usr/bin:/bin"},"source":{"dir":"/home/ann/work","max_size":0,"bundle":"76600021ab92cc310be76641aa19f94fc01b07b1ccc8643e3508384e0ef0767a","files":1,"bytes":26},"resources":{"cpu_millis":2000,"memory_bytes":0,"gpus":0},"limits":{"max_runtime_ms":0,"stop_grace_ms":120000,"lost_after_ms":0,"log_bytes":1073741824},"retry":{"max":0,"backoff_ms":0},"priority":0,"debug":false,"origin":"native"},"state":"Queued","created":"2026-11-15T23:41:11.223Z","updated":"2026-11-15T23:41:11.223Z","event_seq":2,"cause":{"kind":"waiting_cpus","text":"needs 2 CPUs; 1 of 2 free; frees up when job runs finishes","hint":"ath ps"},"price":{"micros_per_hour":0,"currency":"USD","source":"own machine"},"simulated":false}');
CREATE TABLE IF NOT EXISTS "keys" (
  key TEXT NOT NULL,
  job TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
  spec_hash TEXT NOT NULL,
  created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO keys VALUES('01m7gsc45k5s1jskqm39acttcj','01m7gsc45mrrejvtdv63gpsn84','a68ad2ef69d1332273b5d222ad71d473bdbb0fff2a6ce73746b3f74f009821c8',1794786070708);
INSERT INTO keys VALUES('01m7gsc4me48fjgbk6g5w8hp5x','01m7gsc4mekgvjr936gmvcrgyk','14feec5bb981fabf2d915af72e971513444b5a9d0e5d0c465a68c134d8c71b4b',1794786071182);
INSERT INTO keys VALUES('01m7gsc4nqc35y11k249hed5re','01m7gsc4nqq1h1x11tszcns2p2','a0008e564b7d45f48d3c60857c5cc24f4c7a236c7b035f7a151438b112121c4b',1794786071223);
INSERT INTO keys VALUES('first','01m7gsc45amv7sxsktrzg13z9y','fe3519163949dff7354d6a5f562e988c2264b9fc5956a2a521e1580e02c35a6e',1794786070698);
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
INSERT INTO events VALUES(1,'01m7gsc45amv7sxsktrzg13z9y',1,1794786070698,'submitted','Queued',0,'{"kind":"queued","text":"accepted"}');
INSERT INTO events VALUES(2,'01m7gsc45amv7sxsktrzg13z9y',2,1794786070699,'placed','Placing',1,'');
INSERT INTO events VALUES(3,'01m7gsc45mrrejvtdv63gpsn84',1,1794786070708,'submitted','Queued',0,'{"kind":"queued","text":"accepted"}');
INSERT INTO events VALUES(4,'01m7gsc45mrrejvtdv63gpsn84',2,1794786070708,'placed','Placing',1,'');
INSERT INTO events VALUES(5,'01m7gsc45amv7sxsktrzg13z9y',3,1794786070740,'agent_up','Preparing',1,'');
INSERT INTO events VALUES(6,'01m7gsc45mrrejvtdv63gpsn84',3,1794786070759,'agent_up','Preparing',1,'');
INSERT INTO events VALUES(7,'01m7gsc45mrrejvtdv63gpsn84',4,1794786070999,'script_started','Running',1,'');
INSERT INTO events VALUES(8,'01m7gsc45amv7sxsktrzg13z9y',4,1794786071016,'script_started','Running',1,'');
INSERT INTO events VALUES(9,'01m7gsc45mrrejvtdv63gpsn84',5,1794786071063,'script_ended','Uploading',1,'{"kind":"nonzero_exit","text":"exit status 3","hint":"ath logs broken --tail 50"}');
INSERT INTO events VALUES(10,'01m7gsc45mrrejvtdv63gpsn84',6,1794786071084,'ended','Failed',1,'{"kind":"nonzero_exit","text":"exit status 3","hint":"ath logs broken --tail 50"}');
INSERT INTO events VALUES(11,'01m7gsc45amv7sxsktrzg13z9y',5,1794786071088,'script_ended','Uploading',1,'{"kind":"completed","text":"the script ended with status 0","hint":"ath show quiet-lamp"}');
INSERT INTO events VALUES(12,'01m7gsc45amv7sxsktrzg13z9y',6,1794786071098,'ended','Completed',1,'{"kind":"completed","text":"the script ended with status 0","hint":"ath show quiet-lamp"}');
INSERT INTO events VALUES(13,'01m7gsc4mekgvjr936gmvcrgyk',1,1794786071182,'submitted','Queued',0,'{"kind":"queued","text":"accepted"}');
INSERT INTO events VALUES(14,'01m7gsc4mekgvjr936gmvcrgyk',2,1794786071182,'placed','Placing',1,'');
INSERT INTO events VALUES(15,'01m7gsc4mekgvjr936gmvcrgyk',3,1794786071201,'agent_up','Preparing',1,'');
INSERT INTO events VALUES(16,'01m7gsc4nqq1h1x11tszcns2p2',1,1794786071223,'submitted','Queued',0,'{"kind":"queued","text":"accepted"}');
INSERT INTO events VALUES(17,'01m7gsc4nqq1h1x11tszcns2p2',2,1794786071223,'waiting','Queued',0,'{"kind":"waiting_cpus","text":"needs 2 CPUs; 1 of 2 free; frees up when job runs finishes","hint":"ath ps"}');
INSERT INTO events VALUES(18,'01m7gsc4mekgvjr936gmvcrgyk',4,1794786071279,'script_started','Running',1,'');
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  attempt TEXT NOT NULL
) STRICT;
INSERT INTO outbox VALUES(7,'release','01m7gsc45mrrejvtdv63gpsn84','01m7gsc45m000000000000000a');
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
INSERT INTO tokens VALUES('bf0045142102','d2fe916b84fa469ce129e40f2ac35513daaa6df99d7d507231cb27aab3572d68','ci','read','',1794786071315,0,0,0);
CREATE TABLE secrets (
  name TEXT PRIMARY KEY,
  sealed TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO secrets VALUES('TOKEN_A','2ULUKgjej9lJfUEeXw6aogF+HOl32k0kUudwIW7ObOz7dJkbK97BiR0LQ0lu',1794786071240,1794786071240);
UPDATE sqlite_sequence SET seq=20 WHERE name='events';
CREATE TABLE type_losses (
  type TEXT NOT NULL,
  spot INTEGER NOT NULL,
  held_ms INTEGER NOT NULL,
  losses INTEGER NOT NULL,
  PRIMARY KEY (type, spot)
) STRICT, WITHOUT ROWID;
INSERT INTO type_losses VALUES('ml.m5.large',1,7200000,3);
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
INSERT INTO access_keys VALUES('ATHA0123456789ABCDEF','c2VhbGVk','notebook','submit','',1794786071400,0,0,0);
CREATE TABLE documents (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  json TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
INSERT INTO documents VALUES('sagemaker.tags','training-job/quiet-lamp','[{"Key":"team","Value":"vision"}]',1794786070698,1794786070698);
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
INSERT INTO experiments VALUES(1,'digits','mlflow-artifacts:/1',0,1794786071300,1794786071300);
INSERT INTO runs VALUES('019cd2c7f0b3e5a0d6a1b2c3d4e5f607',1,'merry-wren-12','ann',3,1794786071310,1794786071390,0,0,0,'mlflow-artifacts:/1/019cd2c7f0b3e5a0d6a1b2c3d4e5f607/artifacts');
INSERT INTO labels VALUES(1,'1','team','vision');
INSERT INTO labels VALUES(2,'019cd2c7f0b3e5a0d6a1b2c3d4e5f607','lr','0.1');
INSERT INTO labels VALUES(3,'019cd2c7f0b3e5a0d6a1b2c3d4e5f607','mlflow.runName','merry-wren-12');
INSERT INTO datasets VALUES(1,'digits','abc123','local','{"uri":"digits.csv"}','','');
INSERT INTO run_inputs VALUES('019cd2c7f0b3e5a0d6a1b2c3d4e5f607','digits','abc123','[]');
INSERT INTO models VALUES('digits-net','',1794786071392,1794786071392);
INSERT INTO model_versions VALUES('digits-net',1,'None','','mlflow-artifacts:/1/019cd2c7f0b3e5a0d6a1b2c3d4e5f607/artifacts/model','019cd2c7f0b3e5a0d6a1b2c3d4e5f607','','',1794786071392,1794786071392);
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
INSERT INTO studies VALUES('01kxg5m2qg9t3cb4h6r8w0yz1d','first-study','digits','ann','Running',1,1794786071000,1794786072000,'{"name":"digits","metric":"loss","goal":"minimize","value":"last","space":[{"name":"lr","type":"float","scale":"log","low":1e-05,"high":1.0}],"strategy":"auto","seed":7,"max_trials":2,"parallel":1,"max_failures":10,"origin":"native","job":{"name":"digits","command":["python3","train.py"]}}');
CREATE TABLE study_lines (
  study TEXT NOT NULL REFERENCES studies (id) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  json TEXT NOT NULL,
  PRIMARY KEY (study, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO study_lines VALUES('01kxg5m2qg9t3cb4h6r8w0yz1d',1,'{"e":"created","at":1794786071000}');
INSERT INTO study_lines VALUES('01kxg5m2qg9t3cb4h6r8w0yz1d',2,'{"e":"asked","at":1794786071100,"trial":1,"id":0,"params":{"lr":0.01}}');
CREATE INDEX jobs_live ON jobs (created, id) WHERE live = 1;
CREATE INDEX jobs_over ON jobs (state, created, id, live) WHERE live = 0;
CREATE INDEX outbox_job ON outbox (job);
CREATE INDEX access_keys_bound ON access_keys (bound) WHERE bound <> '';
CREATE INDEX tokens_bound ON tokens (bound) WHERE bound <> '';
CREATE UNIQUE INDEX keys_key ON keys (key);
PRAGMA application_id=1098147950;
PRAGMA user_version=7;
COMMIT;
