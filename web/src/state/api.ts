// Every call of the server's API that the page makes, typed. Addresses are relative to the
// page's own, so that any prefix works. A refusal is an ApiError with the server's words.
import type * as t from './types';

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly what: string,
    readonly why = '',
    readonly hint = '',
    readonly id = '',
    readonly where = '', // "job.yaml:3:7"
  ) {
    super(what);
  }
  // The server is older than the page, or this is not served for such a run.
  get missing(): boolean {
    return this.status === 404 && (this.id === '' || this.id === 'ATH-R0016');
  }
}

type Query = Record<string, string | number | boolean | undefined | string[]>;

export function address(path: string, query: Query = {}): string {
  const url = new URL(`api/v1/${path}`, document.baseURI);
  for (const [key, value] of Object.entries(query)) {
    if (value === undefined || value === '') continue;
    for (const one of Array.isArray(value) ? value : [value]) url.searchParams.append(key, String(one));
  }
  return url.href;
}

export const part = (text: string) => encodeURIComponent(text);
// A name with slashes that stay slashes.
export const parts = (text: string) => text.split('/').map(encodeURIComponent).join('/');

async function refuse(reply: Response): Promise<never> {
  let error: Record<string, string> = {};
  const text = await reply.text();
  try {
    error = (JSON.parse(text) as { error?: Record<string, string> }).error ?? {};
  } catch {
    // Not ours: a proxy's words, or none.
  }
  throw new ApiError(reply.status, error.what || `the server answered ${reply.status}`, error.why,
    error.hint, error.id, error.where);
}

async function send(method: string, url: string, init: RequestInit = {}): Promise<Response> {
  let reply: Response;
  try {
    reply = await fetch(url, { method, credentials: 'same-origin', ...init });
  } catch (cause) {
    if ((cause as Error).name === 'AbortError') throw cause;
    throw new ApiError(0, 'the server does not answer', 'no connection', 'ath serve');
  }
  return reply.ok ? reply : refuse(reply);
}

async function get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  const reply = await send('GET', address(path, query), { signal });
  return (await reply.json()) as T;
}

export async function getText(path: string, query?: Query, signal?: AbortSignal): Promise<string> {
  return (await send('GET', address(path, query), { signal })).text();
}

export async function getBytes(path: string, query?: Query): Promise<ArrayBuffer> {
  return (await send('GET', address(path, query))).arrayBuffer();
}

interface SessionInfo {
  user: string;
  csrf: string;
}
let session: Promise<SessionInfo> | undefined;

export function sessionInfo(): Promise<SessionInfo> {
  session ??= get<SessionInfo>('session').catch((error) => {
    session = undefined;
    throw error;
  });
  return session;
}

// The token is valid for the life of the server; one that was restarted has another.
async function change<T>(method: string, path: string, body?: unknown, query?: Query, signal?: AbortSignal): Promise<T> {
  const once = async () => {
    const { csrf } = await sessionInfo();
    const headers: Record<string, string> = { 'X-Athanor-Csrf': csrf };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    return send(method, address(path, query), {
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  };
  try {
    return (await (await once()).json()) as T;
  } catch (error) {
    if (!(error instanceof ApiError) || error.id !== 'ATH-A0007') throw error;
    session = undefined;
    return (await (await once()).json()) as T;
  }
}

export interface RunsQuery {
  filter?: string;
  order?: string[];
  column?: string[];
  limit?: number;
  offset?: number;
  experiment?: string;
  deleted?: boolean;
}

type Accepted = { id: string; name: string; state: string };

export const api = {
  server: (signal?: AbortSignal) => get<t.ServerInfo>('server', {}, signal),
  storage: (signal?: AbortSignal) => get<t.Storage>('server/storage', {}, signal),
  queue: (signal?: AbortSignal) => get<t.QueueInfo>('queue', {}, signal),
  types: () => get<{ types: Record<string, unknown>[] }>('types'),

  jobs: (query: { limit?: number; live?: boolean; state?: string; before?: string }, signal?: AbortSignal) =>
    get<{ jobs: t.JobSummary[] }>('jobs', query, signal).then((r) => r.jobs),
  job: (job: string, signal?: AbortSignal) => get<t.Job>(`jobs/${part(job)}`, {}, signal),
  events: (job: string, signal?: AbortSignal) =>
    get<{ events: t.JobEvent[] }>(`jobs/${part(job)}/events`, {}, signal).then((r) => r.events),
  checkpoints: (job: string, signal?: AbortSignal) =>
    get<{ checkpoints: t.Checkpoint[] }>(`jobs/${part(job)}/checkpoints`, {}, signal),
  outputs: (job: string, signal?: AbortSignal) =>
    get<{ outputs: t.Output[] }>(`jobs/${part(job)}/outputs`, {}, signal).then((r) => r.outputs),
  jobMetrics: (job: string, trend = 0, signal?: AbortSignal) =>
    get<{ metrics: t.MetricSummary[] }>(`jobs/${part(job)}/metrics`, { trend: trend || undefined }, signal)
      .then((r) => r.metrics),
  allPoints: (job: string, name: string, abandoned: boolean, signal?: AbortSignal) =>
    getText(`jobs/${part(job)}/metrics/${parts(name)}`, { abandoned: abandoned || undefined }, signal),
  stop: (job: string) => change<Accepted>('POST', `jobs/${part(job)}/stop`),
  interrupt: (job: string) => change<Accepted>('POST', `jobs/${part(job)}/interrupt`),
  retry: (job: string, spec?: t.Spec) =>
    change<Accepted>('POST', `jobs/${part(job)}/retry`, spec ? { spec } : undefined),
  resume: (job: string, from?: string) =>
    change<Accepted>('POST', `jobs/${part(job)}/resume`, undefined, { from }),
  submit: (spec: t.Spec) => change<Accepted>('POST', 'jobs', { spec }),
  jobFile: (file: { text: string; source_of?: string; check: true }, signal?: AbortSignal) =>
    change<{ spec: t.Spec }>('POST', 'jobfile', file, {}, signal),
  submitFile: (file: { text: string; source_of?: string }) => change<Accepted>('POST', 'jobfile', file),
  removeJob: (job: string) => change<unknown>('DELETE', `jobs/${part(job)}`),

  source: (job: string, signal?: AbortSignal) => get<t.SourceInfo>(`jobs/${part(job)}/source`, {}, signal),
  sourceFile: (job: string, path: string) => getText(`jobs/${part(job)}/source/${parts(path)}`),
  environment: (job: string, signal?: AbortSignal) =>
    get<Record<string, unknown>>(`jobs/${part(job)}/environment`, {}, signal),
  logLines: (job: string, query: { phase?: string; rank?: string; host?: string; from: number; count: number }, signal?: AbortSignal) =>
    get<t.LogLines>(`jobs/${part(job)}/log/lines`, query, signal),
  logSearch: (job: string, query: { q: string; regex: number; limit: number; phase?: string; rank?: string; host?: string }, signal?: AbortSignal) =>
    get<{ matches: { line: number; text: string }[]; total: number }>(`jobs/${part(job)}/log/search`, query, signal),
  logText: (job: string, query: { phase?: string; rank?: string; host?: string; tail?: number }, signal?: AbortSignal) =>
    getText(`jobs/${part(job)}/logs`, query, signal),

  runs: (query: RunsQuery, signal?: AbortSignal) =>
    get<t.RunPage>('runs', { ...query, deleted: query.deleted || undefined }, signal),
  run: (run: string, signal?: AbortSignal) => get<t.Run>(`runs/${part(run)}`, {}, signal),
  sampled: (run: string, name: string, query: { width: number; from?: number; to?: number }, signal?: AbortSignal) =>
    getText(`runs/${part(run)}/metrics/${parts(name)}`, query, signal),
  patchRun: (run: string, patch: { tags?: Record<string, string | null>; name?: string; note?: string }) =>
    change<unknown>('PATCH', `runs/${part(run)}`, patch),
  deleteRun: (run: string) => change<unknown>('POST', `runs/${part(run)}/delete`),
  restoreRun: (run: string) => change<unknown>('POST', `runs/${part(run)}/restore`),
  artifacts: (run: string, path: string, signal?: AbortSignal) =>
    get<{ entries: t.ArtifactEntry[] }>(`runs/${part(run)}/artifacts`, { path }, signal).then((r) => r.entries),
  artifactUrl: (run: string, path: string) => address(`runs/${part(run)}/artifacts/${parts(path)}`),
  artifactText: (run: string, path: string) => getText(`runs/${part(run)}/artifacts/${parts(path)}`),
  media: (run: string, signal?: AbortSignal) =>
    get<{ media: t.MediaRow[] }>(`runs/${part(run)}/media`, {}, signal).then((r) => r.media),
  mediaItems: (run: string, kind: string, name: string, max: number, signal?: AbortSignal) =>
    get<{ items: t.MediaItem[] }>(`runs/${part(run)}/media/${part(kind)}/${parts(name)}`, { max }, signal)
      .then((r) => r.items),

  names: (query: { kind: string; contains?: string; limit?: number; experiment?: string }, signal?: AbortSignal) =>
    get<{ names: t.NameRow[]; total: number }>('names', query, signal),
  importance: (query: { metric: string; filter?: string; goal?: string; experiment?: string; runs?: string }, signal?: AbortSignal) =>
    get<{ metric: string; runs: number; params: { name: string; importance: number }[] }>('importance', query, signal),
  diff: (jobs: string[], signal?: AbortSignal) =>
    get<{ jobs: { id: string; name: string }[]; differences: t.Difference[] }>('diff', { jobs }, signal),
  experiments: (signal?: AbortSignal) =>
    get<{ experiments: { id: string; name: string; runs: number; last_ms?: number }[] }>('experiments', {}, signal)
      .then((r) => r.experiments),
  models: (signal?: AbortSignal) => get<{ models: Record<string, unknown>[] }>('models', {}, signal),
  studies: (signal?: AbortSignal) => get<{ studies: t.Study[] }>('studies', {}, signal).then((r) => r.studies),
  study: (name: string, signal?: AbortSignal) => get<t.Study>(`studies/${part(name)}`, {}, signal),
  stopStudy: (name: string) => change<unknown>('POST', `studies/${part(name)}/stop`),
};
