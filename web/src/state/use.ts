// Hooks: something asked of the server, news, keys, and the theme.
import { signal } from '@preact/signals';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

import { onNews, type News } from './live';

export interface Loaded<T> {
  data?: T;
  error?: Error;
  loading: boolean;
  reload: () => void;
}

// Asks when `key` changes; keeps showing what was there until the answer comes. No key, no call.
export function useLoaded<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string | null; data?: T; error?: Error; loading: boolean }>(
    { key: null, loading: key !== null });
  const [turn, setTurn] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    if (key === null) return;
    const abort = new AbortController();
    setState((old) => ({ ...old, loading: true }));
    latest.current(abort.signal).then(
      (data) => setState({ key, data, loading: false }),
      (error: Error) => {
        if (error.name !== 'AbortError') {
          setState((old) => ({ key, data: old.key === key ? old.data : undefined, error, loading: false }));
        }
      },
    );
    return () => abort.abort();
  }, [key, turn]);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  return { data: state.data, error: state.error, loading: state.loading, reload };
}

export function useNews(listener: (news: News) => void): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => onNews((news) => latest.current(news)), []);
}

// Calls at most once per `ms`, and not while the tab is hidden.
export function useThrottled(act: () => void, ms: number): () => void {
  const latest = useRef(act);
  latest.current = act;
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  return useCallback(() => {
    if (timer.current !== undefined) return;
    const fire = () => {
      if (document.hidden) {
        document.addEventListener('visibilitychange', fire, { once: true });
        return;
      }
      timer.current = undefined;
      latest.current();
    };
    timer.current = setTimeout(fire, ms) as unknown as number;
  }, [ms]);
}

const darkQuery = matchMedia('(prefers-color-scheme: dark)');
export const dark = signal(darkQuery.matches);
darkQuery.addEventListener('change', (event) => (dark.value = event.matches));

// The time, for "3 min ago": one clock for the whole page.
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

export interface Size {
  width: number;
  height: number;
}

export function useSize<T extends HTMLElement>(): [(element: T | null) => void, Size] {
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  const observer = useRef<ResizeObserver | undefined>(undefined);
  const ref = useCallback((element: T | null) => {
    observer.current?.disconnect();
    if (!element) return;
    observer.current = new ResizeObserver(([entry]) => {
      const { width, height } = entry!.contentRect;
      setSize({ width: Math.floor(width), height: Math.floor(height) });
    });
    observer.current.observe(element);
  }, []);
  return [ref, size];
}
