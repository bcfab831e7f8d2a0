// What the API answers about the attempts of a job and their hosts.
import type { Cause } from './types';

export interface Checkpoint {
  id: string;
  attempt: number;
  step?: number;
  files: number;
  bytes: number;
  new_bytes?: number;
  at?: string;
}

export interface Host {
  name: string;
  state: string;
  started?: string;
  exit?: Attempt['exit'];
  usage?: { cpu_percent: number; memory_bytes: number; memory_peak: number };
  rank_text?: string; // its ranks and how they ended; only if there are several ranks
}

export interface Attempt {
  id: string;
  number: number;
  placed?: string;
  prepared?: string;
  started?: string;
  exited?: string;
  ended?: string;
  held_ms?: number;
  setup_ms?: number;
  lost_ms?: number;
  exit?: { code?: number; signal?: number; oom_killed?: boolean; memory_peak?: number; memory_limit?: number; cpu_ms?: number };
  cause?: Cause;
  placement?: { backend?: string; cpu_millis?: number; memory_bytes?: number; gpus?: number[]; simulated?: boolean };
  spot?: boolean;
  type?: string;
  resumed_from?: string;
  resumed_step?: number;
  saved?: Checkpoint;
  off?: string[];
  hosts?: Host[];
  fall_order?: string[]; // who failed first, and what became of the others
}
