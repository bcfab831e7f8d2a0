// The lines of a job's log, loaded in blocks as they come into view. A server without numbered
// lines is asked for the end of the log as a whole.
import { useCallback, useEffect, useReducer, useRef } from 'preact/hooks';

import { api, ApiError } from '../../state/api';
import { useNews, useThrottled } from '../../state/use';

const kBlock = 400;
const kBlocksKept = 250;
const kWholeTail = 50_000;
const kPauseMs = 250;

// The block that the last line is in: it may still be open, and change without a new one.
const lastBlock = (total: number) => Math.floor(Math.max(0, total - 1) / kBlock);

interface Matches {
  matches: { line: number; text: string }[];
  total: number;
}

export interface LogSource {
  total: number;
  firstError?: number;
  error?: Error;
  loaded: boolean;
  line: (index: number) => string | undefined; // asks for what it does not have
  rank: (index: number) => number | undefined; // whose that line is, if there are several
  search: (q: string, regex: boolean) => Promise<Matches>;
}

interface Held {
  blocks: Map<number, { lines: string[]; ranks?: number[] }>;
  asked: Set<number>;
  total: number;
  firstError?: number;
  error?: Error;
  loaded: boolean;
  whole?: string[];
}

const fresh = (): Held => ({ blocks: new Map(), asked: new Set(), total: 0, loaded: false });

export interface LogPart {
  phase: string;
  rank?: string;
  host?: string;
}

export function useLog(job: string, part: LogPart, live: boolean): LogSource {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const held = useRef(fresh());
  const key = `${job} ${part.phase} ${part.rank} ${part.host}`;
  const current = useRef(key);
  if (current.current !== key) {
    current.current = key;
    held.current = fresh();
  }
  const query = part;

  const load = useCallback(async (block: number) => {
    // Also called when another part is shown, for the one that was shown before.
    if (current.current !== key) return;
    const mine = held.current;
    if (mine.asked.has(block)) return;
    mine.asked.add(block);
    try {
      if (mine.whole) await loadWhole(mine, job, query);
      else await loadBlock(mine, job, query, block);
      mine.error = undefined;
    } catch (error) {
      mine.error = error as Error;
    }
    mine.loaded = true;
    mine.asked.delete(block);
    if (mine === held.current) redraw(0);
  }, [key]);

  useEffect(() => void load(0), [key]);
  useEffect(() => {
    if (!live) return;
    // What was written between the last news and the end.
    return () => void load(lastBlock(held.current.total));
  }, [key, live]);
  const newest = useThrottled(() => void load(lastBlock(held.current.total)), kPauseMs);
  useNews((news) => ((news.kind === 'log' && news.job === job) || news.kind === 'reload') && newest());

  const now = held.current;
  return {
    total: now.total,
    firstError: now.firstError,
    error: now.error,
    loaded: now.loaded,
    line: (index) => {
      if (now.whole) return now.whole[index];
      const block = Math.floor(index / kBlock);
      const line = now.blocks.get(block)?.lines[index - block * kBlock];
      if (line === undefined && index < now.total) queueMicrotask(() => void load(block));
      return line;
    },
    rank: (index) => now.blocks.get(Math.floor(index / kBlock))?.ranks?.[index % kBlock],
    search: (q, regex) =>
      now.whole ? Promise.resolve(searchIn(now.whole, q, regex))
        : api.logSearch(job, { ...query, q, regex: regex ? 1 : 0, limit: 1000 }),
  };
}

async function loadBlock(mine: Held, job: string, query: LogPart, block: number): Promise<void> {
  try {
    const reply = await api.logLines(job, { ...query, from: block * kBlock, count: kBlock });
    mine.blocks.set(block, reply);
    mine.total = reply.total;
    mine.firstError = reply.first_error ?? undefined;
    // The oldest blocks go: a million lines are not kept in a tab.
    if (mine.blocks.size > kBlocksKept) mine.blocks.delete(mine.blocks.keys().next().value!);
  } catch (error) {
    if (!(error instanceof ApiError && error.missing)) throw error;
    await loadWhole(mine, job, query);
  }
}

async function loadWhole(mine: Held, job: string, query: LogPart): Promise<void> {
  const lines = (await api.logText(job, { ...query, tail: kWholeTail })).split('\n');
  if (lines[lines.length - 1] === '') lines.pop();
  mine.whole = lines;
  mine.total = lines.length;
  const at = lines.findIndex((line) => /\b(error|exception|traceback)\b/i.test(line));
  mine.firstError = at < 0 ? undefined : at;
}

function searchIn(lines: string[], q: string, regex: boolean): Matches {
  const pattern = new RegExp(regex ? q : q.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i');
  const found = lines.flatMap((text, line) => (pattern.test(text) ? [{ line, text }] : []));
  return { matches: found.slice(0, 1000), total: found.length };
}
