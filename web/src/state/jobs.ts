// The jobs this tab knows of, newest news first: one list for Home, tables and titles.
import { signal } from '@preact/signals';

import { api } from './api';
import { onNews } from './live';
import type { JobSummary } from './types';

const kKept = 1000;

export const jobs = signal<JobSummary[]>([]);
export const jobsState = signal<{ loaded: boolean; error?: Error }>({ loaded: false });

export async function loadJobs(): Promise<void> {
  try {
    jobs.value = await api.jobs({ limit: kKept });
    jobsState.value = { loaded: true };
  } catch (error) {
    jobsState.value = { loaded: jobsState.peek().loaded, error: error as Error };
  }
}

onNews((news) => {
  if (news.kind === 'reload') void loadJobs();
  if (news.kind !== 'job') return;
  const list = jobs.peek();
  const at = list.findIndex((job) => job.id === news.job.id);
  if (at < 0) jobs.value = [news.job, ...list].slice(0, kKept);
  else jobs.value = list.map((job, i) => (i === at ? news.job : job));
});

export function findJob(id: string): JobSummary | undefined {
  return jobs.value.find((job) => job.id === id);
}

export const kTerminal = ['Completed', 'Failed', 'Stopped'];
export const isOver = (state: string) => kTerminal.includes(state);
