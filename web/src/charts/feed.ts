// The points that a chart draws: sampled by the server for the width on screen, loaded again for a
// narrower range, and extended while a run continues.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { joinTail, parsePoints, putIn, tailFrom, type Series, type Steps } from '../lib/points';
import { api, ApiError } from '../state/api';
import { useNews, useThrottled } from '../state/use';

export interface Feed {
  series: Map<string, Series>;
  error?: Error;
  loading: boolean;
}

interface Want {
  runs: string[];
  metric: string;
  width: number;
}

const kTailMs = 1000;

// Widths in steps: a chart that grows by a pixel is not a reason to ask.
const rounded = (width: number) => Math.max(200, Math.ceil(width / 200) * 200);

async function ask(run: string, want: Want, steps: Steps, signal?: AbortSignal): Promise<Series | undefined> {
  try {
    return parsePoints(await api.sampled(run, want.metric, { width: rounded(want.width), ...steps }, signal));
  } catch (error) {
    // A run among others that never logged this metric has no line.
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

// Asks for all runs when the key changes; what was there stays until the answer.
function useAsked(key: string | null, want: Want, steps: (run: string) => Steps | undefined) {
  const [feed, setFeed] = useState<Feed>({ series: new Map(), loading: true });
  const asked = useRef<string | null>(null);
  useEffect(() => {
    if (key === null || asked.current === key) return;
    asked.current = key;
    const abort = new AbortController();
    const each = want.runs.map((run) => {
      const part = steps(run);
      return part ? ask(run, want, part, abort.signal) : undefined;
    });
    Promise.all(each).then(
      (all) => {
        const series = new Map<string, Series>();
        all.forEach((one, i) => one && series.set(want.runs[i]!, one));
        setFeed({ series, loading: false });
      },
      (error: Error) => {
        if (error.name !== 'AbortError') setFeed((old) => ({ ...old, error, loading: false }));
      },
    );
    return () => {
      abort.abort();
      if (asked.current === key) asked.current = null;
    };
  }, [key]);
  return [feed, setFeed] as const;
}

// The whole of a metric, growing while its runs do.
export function useFeed(want: Want, visible: boolean): Feed {
  const latest = useRef(want);
  latest.current = want;
  const on = visible && want.width > 0;
  const key = on ? JSON.stringify([want.runs, want.metric, rounded(want.width)]) : null;
  const [feed, setFeed] = useAsked(key, want, () => ({}));
  const behind = useRef(new Set<string>());
  const catchUp = useThrottled(() => {
    const now = latest.current;
    const runs = [...behind.current];
    behind.current.clear();
    void Promise.all(runs.map((run) => tail(run, now, feed.series.get(run)))).then((all) => {
      if (latest.current.metric !== now.metric) return;
      setFeed((old) => {
        const series = new Map(old.series);
        all.forEach((one, i) => one && series.set(runs[i]!, one));
        return { ...old, series };
      });
    }, () => undefined);
  }, kTailMs);
  useNews((news) => {
    if (!visible || news.kind !== 'run' || !latest.current.runs.includes(news.run.run)) return;
    if (!news.run.metrics.some((metric) => metric.name === latest.current.metric)) return;
    behind.current.add(news.run.run);
    catchUp();
  });
  return feed;
}

// What came since; all of it again when tails have made the line twice as fine as was asked for.
async function tail(run: string, want: Want, have: Series | undefined): Promise<Series | undefined> {
  const from = have && tailFrom(have);
  if (!have || from === undefined || have.step.length > 5 * rounded(want.width)) return ask(run, want, {});
  const fresh = await ask(run, want, { from });
  return fresh && joinTail(have, fresh);
}

// The same with the detail of a range inserted: `steps` says for each run which of its steps are in
// it, from what is known about the whole series. Until it is loaded, and for runs without steps,
// the whole series.
export function useDetail(whole: Feed, want: Want, steps: Map<string, Steps> | undefined): Feed {
  const key = steps && steps.size ? JSON.stringify([want.metric, rounded(want.width), [...steps]]) : null;
  const [fine] = useAsked(key, want, (run) => steps?.get(run));
  return useMemo(() => {
    if (key === null) return whole;
    const series = new Map(whole.series);
    for (const [run, one] of fine.series) {
      const all = series.get(run);
      if (all) series.set(run, putIn(all, one));
    }
    return { ...whole, series };
  }, [whole, fine, key]);
}
