// The runs that are compared, kept up to date: what is asked again is what changed, not the list.
import { useRef, useState } from 'preact/hooks';

import { merged } from '../../lib/merged';
import { api } from '../../state/api';
import type { Run } from '../../state/types';
import { useLoaded, useNews, useThrottled, type Loaded } from '../../state/use';

export interface Among {
  names: string[]; // ids or names; none: the newest of an experiment, or of all
  experiment?: string;
  filter: string;
  most: number;
}

const kAgainMs = 5000;
const kMostAsked = 50; // more at once are one list again

async function whole({ names, experiment, filter, most }: Among, signal: AbortSignal): Promise<Run[]> {
  if (names.length) return Promise.all(names.map((name) => api.run(name, signal)));
  return (await api.runs({ limit: most, experiment, filter, order: ['attributes.start_time DESC'] }, signal)).runs;
}

// Those of `ids` that belong to what is compared, as they are now.
async function some(ids: string[], { names, experiment, filter }: Among): Promise<Run[]> {
  if (names.length) return Promise.all(ids.map((id) => api.run(id)));
  const these = `attributes.run_id IN (${ids.map((id) => `'${id}'`).join(', ')})`;
  return (await api.runs({ limit: ids.length, experiment, filter: [filter, these].filter(Boolean).join(' AND ') })).runs;
}

export function useRunList(key: string, among: Among): Loaded<Run[]> {
  const loaded = useLoaded(key, (signal) => whole(among, signal));
  const [held, setHeld] = useState<{ of?: Run[]; now?: Run[] }>({});
  const changed = useRef(new Set<string>());
  const data = held.of === loaded.data ? held.now : loaded.data;
  const latest = useRef({ among, data, of: loaded.data });
  latest.current = { among, data, of: loaded.data };
  const again = useThrottled(() => {
    const ids = [...changed.current];
    changed.current.clear();
    const { among: which, of } = latest.current;
    if (!of || ids.length > kMostAsked) return loaded.reload();
    some(ids, which).then((found) => {
      if (latest.current.of !== of) return;
      setHeld({ of, now: merged(latest.current.data ?? of, ids, found, which.names.length || which.most) });
    }, () => undefined);
  }, kAgainMs);
  useNews((news) => {
    if (news.kind === 'reload') return loaded.reload();
    const id = news.kind === 'job' ? news.job.id : news.kind === 'run' ? news.run.run : undefined;
    if (!id) return;
    const { among: which, data: list = [] } = latest.current;
    const known = list.some((run) => run.id === id);
    // Another job's news are none here: it was not chosen, or belongs to another experiment.
    const mayJoin = !which.names.length && news.kind === 'job' && (!which.experiment || news.job.experiment === which.experiment);
    if (!known && !mayJoin) return;
    changed.current.add(id);
    again();
  });
  return { ...loaded, data };
}
