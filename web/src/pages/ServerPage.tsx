// The server: version, machine, storage and health.
import { bytes, count, duration, number } from '../lib/format';
import { Await } from '../parts/Box';
import { Command } from '../parts/Command';
import { State } from '../parts/State';
import { Time } from '../parts/Time';
import { api } from '../state/api';
import { isJobs, liveState } from '../state/live';
import { useLoaded, useNews, useThrottled } from '../state/use';

const kWords: Record<string, string> = { host: 'Host', cpu_millis: 'CPUs', memory_bytes: 'Memory', gpus: 'GPUs', gpu_model: 'GPU' };
function show(key: string, value: unknown): string {
  if (typeof value === 'number') return /bytes|memory|disk/.test(key) ? bytes(value) : /millis$/.test(key) ? number(value / 1000) : number(value);
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const kParts: Record<string, string> = {
  logs: 'Logs', series: 'Numbers over time', database: 'Database', blobs: 'Sources and outputs', objects: 'Objects (S3)',
  artifacts: 'Artifacts of runs', attempts: 'Folders of attempts', cache: 'Caches',
};

function Storage() {
  const storage = useLoaded('storage', api.storage);
  return (
    <section class="card">
      <header><h2>Storage</h2>{storage.data ? <span class="dim num">{bytes(storage.data.bytes)}, counted <Time at={storage.data.counted_ms} /></span> : null}
        <button class="button small" onClick={storage.reload}>Look again</button></header>
      <Await of={storage}>
        {(all) => (
          <div class="importance">
            {all.parts.map((part) => (
              <>
                <span title={part.path}>{kParts[part.name] ?? part.name}</span>
                <span class="bar"><i style={{ width: percentOf(part.bytes, all.bytes) }} /></span>
                <span class="num">{bytes(part.bytes)}</span>
              </>
            ))}
            {all.free_bytes !== undefined ? <><span class="dim">Free on this disk</span><span /><span class="num dim">{bytes(all.free_bytes)}</span></> : null}
          </div>
        )}
      </Await>
    </section>
  );
}

const percentOf = (part: number, whole: number) => `${whole ? (100 * part) / whole : 0}%`;

export function ServerPage() {
  const server = useLoaded('server', api.server);
  const again = useThrottled(server.reload, 5000);
  useNews((news) => isJobs(news) && again());
  return (
    <div class="page">
      <div class="page-head"><h1>Server</h1></div>
      <Await of={server}>
        {(info) => (
          <div class="columns">
            <div class="stack">
              <section class="card">
                <header><h2>Athanor {info.version}</h2><State state={liveState.value.online ? 'Running' : 'Unknown'} /></header>
                <dl class="facts">
                  <dt>Address</dt><dd class="mono">{info.url || '–'}</dd>
                  <dt>Home</dt><dd class="mono">{info.home}</dd>
                  <dt>Socket</dt><dd class="mono">{info.socket}</dd>
                  <dt>User</dt><dd>{info.user}</dd>
                  <dt>Process</dt><dd>{info.pid}</dd>
                  <dt>Started</dt><dd><Time at={info.started} exact /> <span class="dim">up {duration(info.uptime_ms)}</span></dd>
                  <dt>Instances</dt><dd>{info.instances}</dd>
                </dl>
              </section>
              <Storage />
              <section class="card">
                <header><h2>Care</h2></header>
                <div class="stack" style={{ gap: '8px' }}>
                  <Command text="ath server backup athanor-backup" />
                  <Command text="ath gc --dry-run" />
                  <Command text="ath server stop && ath fsck" />
                </div>
              </section>
            </div>
            <div class="stack">
              <section class="card">
                <header><h2>Jobs</h2><span class="dim num">{count(info.jobs ?? 0)}</span></header>
                <dl class="facts">
                  {Object.entries(info.states ?? {}).map(([state, n]) => <><dt><State state={state} bare /></dt><dd class="num">{count(n)}</dd></>)}
                </dl>
              </section>
              <section class="card">
                <header><h2>Machine</h2></header>
                <dl class="facts">
                  {Object.entries(info.machine).map(([key, value]) => <><dt>{kWords[key] ?? key.replace(/_/g, ' ')}</dt><dd>{show(key, value)}</dd></>)}
                </dl>
              </section>
            </div>
          </div>
        )}
      </Await>
    </div>
  );
}
