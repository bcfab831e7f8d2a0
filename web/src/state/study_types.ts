// What the server's API answers about studies.
import type { Cause } from './types';

export interface Trial {
  trial: number;
  name: string;
  state: string;
  shown_state: string; // "queued" while its job waits
  params: Record<string, string | number | boolean>;
  job?: string;
  value?: number;
  step?: number;
  cause?: Cause;
  asked: string;
  started?: string; // the script of its job
  ended?: string;
}

export interface Study {
  id: string;
  name: string;
  state: string;
  user: string;
  metric: string;
  goal: string;
  strategy: string;
  max_trials: number;
  counts: Record<string, number>;
  cost_micros: number;
  created: string;
  ended?: string;
  best?: Trial;
  trials?: Trial[];
  importance?: { parameter: string; share: number }[];
  hints?: { text: string; next: string }[];
}
