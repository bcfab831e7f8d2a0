// One event stream for all tabs of this browser: HTTP/1.1 gives a host six connections. The tab
// that holds the lock has the stream and passes on what comes; when it goes, another takes over.
// Where there are no locks (plain HTTP of another machine) each tab has its own.
import { signal } from '@preact/signals';

import { address } from './api';
import type { JobSummary } from './types';

export interface RunNews {
  run: string;
  metrics: { name: string; last: number | string; step?: number; count: number }[];
}

export type News =
  | { kind: 'job'; job: JobSummary; usage?: Usage; progress?: { done: number; total: number } }
  | { kind: 'run'; run: RunNews }
  | { kind: 'log'; job: string } // its log grew
  | { kind: 'reload' }; // something may have been missed: ask again

export interface Usage {
  cpu_percent: number;
  memory_bytes: number;
}

// Whether lists of jobs may have changed.
export const isJobs = (news: News) => news.kind === 'job' || news.kind === 'reload';

interface State {
  online: boolean;
  since: number; // ms; when it became so
  version: string;
}

export const liveState = signal<State>({ online: true, since: Date.now(), version: '' });

type Message = { news: News } | { state: State } | { ask: true };

const listeners = new Set<(news: News) => void>();
const name = `athanor-live ${new URL('.', document.baseURI).href}`;
const channel = typeof BroadcastChannel === 'undefined' ? undefined : new BroadcastChannel(name);
let leading = false;
let everConnected = false;

export function onNews(listener: (news: News) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function hear(news: News): void {
  for (const listener of listeners) listener(news);
}

function tell(news: News): void {
  hear(news);
  channel?.postMessage({ news } satisfies Message);
}

function setState(change: Partial<State>): void {
  const before = liveState.peek();
  const next = { ...before, ...change };
  if (change.online !== undefined && change.online !== before.online) next.since = Date.now();
  liveState.value = next;
  if (leading) channel?.postMessage({ state: next } satisfies Message);
}

if (channel) {
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if ('news' in data) hear(data.news);
    else if ('state' in data) liveState.value = data.state;
    else if (leading) channel.postMessage({ state: liveState.peek() } satisfies Message);
  };
}

function parse<T>(event: Event): T {
  return JSON.parse((event as MessageEvent<string>).data) as T;
}

// Ends never: until the tab is closed.
function lead(): Promise<void> {
  leading = true;
  connect(address('live'), 1000);
  return new Promise(() => {});
}

function connect(url: string, pause: number): void {
  const stream = new EventSource(url);
  stream.addEventListener('hello', (event) => {
    const hello = parse<{ server?: string; gap?: boolean }>(event);
    setState({ online: true, version: hello.server ?? '' });
    if (hello.gap || everConnected) tell({ kind: 'reload' });
    everConnected = true;
    pause = 1000;
  });
  stream.addEventListener('job', (event) => tell({ ...parse<Omit<News & { kind: 'job' }, 'kind'>>(event), kind: 'job' }));
  stream.addEventListener('log', (event) => tell({ kind: 'log', ...parse<{ job: string }>(event) }));
  stream.addEventListener('run', (event) => tell({ kind: 'run', run: parse<RunNews>(event) }));
  stream.onerror = () => {
    setState({ online: false });
    // A browser tries again by itself unless it was refused.
    if (stream.readyState !== EventSource.CLOSED) return;
    stream.close();
    setTimeout(() => connect(url, Math.min(pause * 2, 15_000)), pause);
  };
}

export function startLive(): void {
  if (navigator.locks && channel) {
    channel.postMessage({ ask: true } satisfies Message);
    void navigator.locks.request(name, lead);
  } else {
    void lead();
  }
}
