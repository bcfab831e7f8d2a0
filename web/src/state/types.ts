// What the server's API answers (see /api/v1/openapi.json): only the members the page reads.

import type { Attempt } from './attempt_types';

export type { Attempt, Checkpoint, Host } from './attempt_types';
export type { Study, Trial } from './study_types';

export interface Cause {
  kind: string;
  text: string;
  hint?: string;
  detail?: string;
  code?: string;
  title?: string;
}

export type JobState =
  | 'Queued' | 'Placing' | 'Preparing' | 'Running' | 'Uploading' | 'Interrupted'
  | 'Completed' | 'Failed' | 'Stopped';

export interface JobSummary {
  id: string;
  name: string;
  state: JobState;
  shown_state: string;
  experiment: string;
  user: string;
  created?: string;
  started?: string;
  ended?: string;
  cause?: Cause;
  type?: string;
  command: string;
  attempts: number;
  cost_micros: number;
  simulated: boolean;
}

export interface Param {
  name: string;
  value: string;
  kind?: string;
}

export interface Spec {
  name: string;
  experiment?: string;
  command?: string[];
  shell?: boolean;
  entry?: string;
  params?: Param[];
  env?: Record<string, string>;
  inherited?: Record<string, string>;
  source?: { dir?: string; files?: number; bytes?: number; git_commit?: string; git_branch?: string; git_diff?: string; bundle?: string };
  environment?: Record<string, unknown>;
  resources?: { type?: string; cpu_millis?: number; memory_bytes?: number; gpus?: number; no_gpus?: boolean; nodes?: number; nodes_most?: number; processes?: number; spot?: { use?: boolean } };
  limits?: Record<string, unknown>;
  data?: { name: string; from: string; mode?: string }[];
  tags?: Record<string, string>;
  notes?: string[];
  priority?: number;
  [other: string]: unknown;
}

export interface Firing {
  rule: string;
  kind: string;
  metric: string;
  step?: number;
  value: string;
  threshold?: string;
  action: string;
  advice?: string;
  at?: string;
}

export interface MetricSummary {
  name: string;
  count: number;
  last: number | string;
  last_step?: number;
  last_time?: string;
  min?: number | string;
  max?: number | string;
  trend?: (number | string | null)[];
}

export interface Output {
  name: string;
  sha256?: string;
  bytes: number;
  files?: number;
  members?: { name: string; bytes: number; link?: string }[];
  left_out?: { files: number; bytes: number; largest?: { name: string; bytes: number; why: string }[] };
}

/** The name of the output that lists the files of the working folder; the others are archives. */
export const WORKING_FILES = 'files';

export interface Job {
  id: string;
  name: string;
  user: string;
  spec: Spec;
  state: JobState;
  shown_state: string;
  created: string;
  updated?: string;
  started?: string; // its script, for the first time
  ended?: string;
  last_seen?: string;
  cause?: Cause;
  command_line?: string; // as it ran
  unread?: { text: string; hint: string; params: { name: string; value: string; mark: string }[] }; // parameters that the script did not read
  attempts?: Attempt[];
  outputs?: Output[];
  price?: { micros_per_hour: number; currency: string; source: string };
  cost_micros: number;
  simulated?: boolean;
  same_as?: string;
  parent?: string;
  resume_job?: string;
  retries?: number;
  firings?: Firing[];
  metrics?: MetricSummary[];
  usage?: { cpu_percent: number; memory_bytes: number; memory_peak: number };
  progress?: { done: number; total: number };
  log_bytes?: number;
  notes?: string[]; // what should be known of what was asked
  spot?: { held_ms: number; training_ms: number; lost_ms: number; restarts: number; saved_micros: number; on_demand_micros: number };
}

export interface JobEvent {
  seq: number;
  at: string;
  name: string;
  state: JobState;
  attempt?: number;
  cause?: Cause;
}

export interface RunMetric {
  last: number | string;
  step: number;
  min: number | string;
  max: number | string;
  count: number;
}

export interface Run {
  id: string;
  run_id: string;
  name: string;
  experiment: string;
  user: string;
  status: string;
  created: string;
  started?: string; // none: a job whose script never ran
  ended?: string;
  job: boolean;
  metrics: Record<string, RunMetric>;
  params: Record<string, string>;
  tags: Record<string, string>;
}

export interface RunPage {
  matched: number;
  runs: Run[];
}

export interface ServerInfo {
  version: string;
  pid: number;
  url: string;
  socket: string;
  home: string;
  user: string;
  started: string;
  uptime_ms: number;
  instances: string;
  machine: Machine;
  jobs?: number;
  states?: Record<string, number>;
}

export interface Machine {
  cpu_millis?: number;
  memory_bytes?: number;
  gpus?: unknown;
  [other: string]: unknown;
}

export interface QueueInfo {
  waiting: { job: JobSummary; reason: string; since_ms: number; position: number; estimate_ms: number | null }[];
  matched: number;  // that wait, on all pages
  next?: string;
  machine: {
    cpus: number; cpus_used: number; memory: number; memory_used: number;
    gpus: number; gpus_used: number; load: number | number[];
  };
}

export interface Difference {
  section: string;
  key: string;
  values: (string | null)[];
}

export interface NameRow {
  name: string;
  runs: number;
}

export interface ArtifactEntry {
  path: string;
  size: number;
  dir: boolean;
}

export interface SourceInfo {
  files: { path: string; size: number; sha256: string }[];
  git: { commit: string; dirty: boolean; diff?: string; branch?: string } | null;
}

export interface MediaRow {
  kind: string;
  name: string;
  count: number;
  last_step: number;
}

export interface MediaItem {
  step: number;
  wall_ms: number;
  edges?: number[];
  counts?: number[];
  text?: string;
  precision?: number[];
  recall?: number[];
  url?: string;
  images?: number; // in one step
  params?: Record<string, string | number | boolean>;
  metrics?: string[];
  shape?: number[];
  values?: number[];
  labels?: string[]; // of an embedding's vectors
  rows?: number; // it has; some may have been left out
  nodes?: { name: string; op?: string; inputs?: string[] }[];
}

export interface LogLines {
  from: number;
  total: number;
  lines: string[];
  ranks?: number[]; // of each line, if they are of several
  first_error?: number | null;
}

export interface Storage {
  parts: { name: string; path: string; bytes: number }[];
  bytes: number;
  free_bytes?: number;
  counted_ms: number;
}
