// The rows of the table, asked for in blocks as they come into view; the server filters, sorts
// and projects, so ten thousand runs cost what is looked at.
import { useCallback, useEffect, useReducer, useRef } from 'preact/hooks';

import { api, type RunsQuery } from '../../state/api';
import type { Run } from '../../state/types';
import { isJobs } from '../../state/live';
import { useNews, useThrottled } from '../../state/use';

const kBlock = 150;

export interface Rows {
  matched: number;
  loaded: boolean;
  error?: Error;
  row: (index: number) => Run | undefined;
  known: () => Run[]; // of all that were loaded so far
  reload: () => void;
  drop: (ids: Set<string>) => void; // until the next reload
}

interface Held {
  blocks: Map<number, Run[]>;
  asked: Set<number>;
  matched: number;
  loaded: boolean;
  error?: Error;
  dropped: Set<string>;
}

const fresh = (): Held => ({ blocks: new Map(), asked: new Set(), matched: 0, loaded: false, dropped: new Set() });

export function useRows(query: RunsQuery): Rows {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const key = JSON.stringify(query);
  const held = useRef<{ key: string; now: Held; before?: Held }>({ key: '', now: fresh() });
  if (held.current.key !== key) {
    // Old rows stay on screen until the first new ones are there.
    const { now } = held.current;
    held.current = { key, now: fresh(), before: now.loaded ? now : held.current.before };
  }
  const load = useCallback(async (block: number) => {
    const mine = held.current.now;
    if (mine.asked.has(block)) return;
    mine.asked.add(block);
    try {
      const page = await api.runs({ ...query, limit: kBlock, offset: block * kBlock });
      mine.blocks.set(block, page.runs);
      mine.matched = page.matched;
      mine.error = undefined;
    } catch (error) {
      mine.error = error as Error;
    }
    mine.loaded = true;
    if (mine === held.current.now) {
      held.current.before = undefined;
      redraw(0);
    }
  }, [key]);
  useEffect(() => void load(0), [key]);

  const reload = useCallback(() => {
    // What is there stays until it is replaced, block by block.
    const mine = held.current.now;
    const blocks = [...mine.blocks.keys()];
    mine.asked.clear();
    for (const block of blocks.slice(-4)) void load(block);
    if (!blocks.includes(0)) void load(0);
  }, [load]);
  const again = useThrottled(reload, 3000);
  useNews((news) => isJobs(news) && again());

  const shown = held.current.now.loaded ? held.current.now : held.current.before ?? held.current.now;
  return {
    matched: shown.matched,
    loaded: shown.loaded,
    error: shown.error,
    row: (index) => {
      const block = Math.floor(index / kBlock);
      const run = shown.blocks.get(block)?.[index - block * kBlock];
      if (!run && shown === held.current.now && index < shown.matched) queueMicrotask(() => void load(block));
      return run && shown.dropped.has(run.id) ? undefined : run;
    },
    known: () => [...shown.blocks.values()].flat(),
    reload,
    drop: (ids) => {
      shown.dropped = ids;
      redraw(0);
    },
  };
}
