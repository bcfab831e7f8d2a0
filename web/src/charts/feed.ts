// The points a chart draws: sampled by the server for the width on screen, asked anew for a
// narrower range, and kept up by their tails while a run goes on.
import { useEffect, useRef, useState } from 'preact/hooks';

import { joinTail, lastStep, parsePoints, type Series } from '../lib/points';
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
  from?: number; // steps
  to?: number;
  live: boolean;
}

const kTailMs = 1000;

async function ask(run: string, want: Want, signal: AbortSignal): Promise<Series | undefined> {
  const { width, from, to } = want;
  try {
    return parsePoints(await api.sampled(run, want.metric, { width, from, to }, signal));
  } catch (error) {
    // A run among others that never logged this metric has no line.
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

export function useFeed(want: Want, visible: boolean): Feed {
  const [feed, setFeed] = useState<Feed>({ series: new Map(), loading: true });
  const latest = useRef(want);
  latest.current = want;
  // Widths in steps: a chart that grows by a pixel is not a reason to ask.
  const width = Math.max(200, Math.ceil(want.width / 200) * 200);
  const key = JSON.stringify([want.runs, want.metric, width, want.from, want.to]);
  const asked = useRef<string | undefined>(undefined);
  useEffect(() => {
    if (!visible || want.width === 0 || asked.current === key) return;
    asked.current = key;
    const abort = new AbortController();
    const now = { ...want, width };
    Promise.all(now.runs.map((run) => ask(run, now, abort.signal))).then(
      (all) => {
        const series = new Map<string, Series>();
        all.forEach((one, i) => one && series.set(now.runs[i]!, one));
        setFeed({ series, loading: false });
      },
      (error: Error) => {
        if (error.name !== 'AbortError') setFeed((old) => ({ ...old, error, loading: false }));
      },
    );
    return () => {
      abort.abort();
      if (asked.current === key) asked.current = undefined;
    };
  }, [key, visible && want.width > 0]);

  const behind = useRef(new Set<string>());
  const catchUp = useThrottled(() => {
    const now = latest.current;
    const runs = [...behind.current];
    behind.current.clear();
    if (now.to !== undefined) return; // a range that was chosen does not grow
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
  const from = have && lastStep(have);
  const width = Math.max(200, Math.ceil(want.width / 200) * 200);
  const never = new AbortController().signal;
  if (!have || from === undefined || have.step.length > 5 * width) return ask(run, { ...want, width }, never);
  const fresh = await ask(run, { ...want, width, from }, never);
  return fresh && joinTail(have, fresh);
}
