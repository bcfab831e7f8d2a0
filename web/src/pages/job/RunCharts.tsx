// The charts of one run: what the script logged, or what the machine measured.
import { useEffect, useMemo, useState } from 'preact/hooks';

import { ChartGrid } from '../../charts/ChartGrid';
import { bytes, number } from '../../lib/format';
import { seriesColour } from '../../lib/palette';
import { Await, Empty } from '../../parts/Box';
import { Spark } from '../../parts/Spark';
import { api } from '../../state/api';
import type { Usage } from '../../state/live';
import { colours } from '../../state/prefs';
import { route, setQuery } from '../../state/router';
import type { Host, Job, MetricSummary } from '../../state/types';
import { dark, useLoaded, useNews, useThrottled } from '../../state/use';

export const isSystem = (name: string) => /^(system|sys)[/.]/.test(name);

// While the page is open, each look of the agent adds a point.
function Measured({ usage }: { usage: Usage[] }) {
  if (usage.length < 2) return null;
  const cpu = usage.map((one) => one.cpu_percent);
  const memory = usage.map((one) => one.memory_bytes);
  return (
    <div class="cards" style={{ marginTop: '12px' }}>
      <div><div class="metric-line"><span class="soft">CPU</span><span class="num">{number(cpu[cpu.length - 1])} %</span></div><Spark values={cpu} label="CPU since this page was opened" /></div>
      <div><div class="metric-line"><span class="soft">Memory</span><span class="num">{bytes(memory[memory.length - 1]!)}</span></div><Spark values={memory} label="Memory since this page was opened" /></div>
    </div>
  );
}

const kUsageKept = 300;

// What one host used while the page was open; the record of the job has what it uses now.
function useHostUsage(host: Host | undefined, key: string): Usage[] {
  const [seen, setSeen] = useState<{ key: string; list: Usage[] }>({ key, list: [] });
  const { usage } = host ?? {};
  useEffect(() => {
    if (usage) setSeen((old) => ({ key, list: [...(old.key === key ? old.list : []), usage].slice(-kUsageKept) }));
  }, [key, usage]);
  return seen.key === key ? seen.list : [];
}

function Used({ job, usage: all }: { job: Job; usage: Usage[] }) {
  const attempt = job.attempts?.[job.attempts.length - 1];
  const hosts = attempt?.hosts ?? [];
  const several = hosts.length > 1;
  const host = several ? hosts.find((one) => one.name === route.value.query.host) ?? hosts[0] : undefined;
  const ofHost = useHostUsage(host, `${job.id} ${attempt?.number} ${host?.name}`);
  const { exit } = host ?? attempt ?? {};
  const usage = host ? (host.state === 'Running' ? host.usage : undefined) : job.usage;
  const seen = host ? ofHost : all;
  return (
    <section class="card" style={{ marginBottom: '16px' }}>
      <header><h2>Use</h2>
        {several ? (
          <select aria-label="Host" value={host!.name} onChange={(e) => setQuery({ host: e.currentTarget.value })}>
            {hosts.map((one) => <option key={one.name} value={one.name}>{one.name}</option>)}
          </select>
        ) : null}
      </header>
      <dl class="facts">
        {usage ? <><dt>CPU now</dt><dd>{number(usage.cpu_percent)} %</dd><dt>Memory now</dt><dd>{bytes(usage.memory_bytes)}</dd></> : null}
        <dt>Memory peak</dt>
        <dd>{usage ?? exit ? bytes(usage?.memory_peak ?? exit?.memory_peak ?? 0) : '–'}
          {exit?.memory_limit ? <span class="dim"> of {bytes(exit.memory_limit)}</span> : null}</dd>
        {exit?.cpu_ms ? <><dt>CPU time</dt><dd>{number(exit.cpu_ms / 1000)} s</dd></> : null}
      </dl>
      <Measured usage={seen} />
    </section>
  );
}

export function RunCharts({ id, job, name, system, usage = [] }: {
  id: string;
  job?: Job;
  name: string;
  system: boolean;
  usage?: Usage[];
}) {
  const metrics = useLoaded(id, (signal) => api.jobMetrics(id, 0, signal));
  const again = useThrottled(metrics.reload, 5000);
  useNews((news) => news.kind === 'run' && news.run.run === id && again());
  const colour = seriesColour(colours.value[id] ?? 0, dark.value);
  const attempts = job?.attempts?.length ?? 1;
  const runs = useMemo(() => [{ id, label: name, colour, attempts }], [id, name, colour, attempts]);
  return (
    <>
      {system && job ? <Used job={job} usage={usage} /> : null}
      <Await of={metrics}>
        {(all: MetricSummary[]) => <Charts all={all.filter((one) => isSystem(one.name) === system)} runs={runs} id={id} system={system} />}
      </Await>
    </>
  );
}

function Charts({ all, runs, id, system }: {
  all: MetricSummary[];
  runs: { id: string; label: string; colour: string; attempts: number }[];
  id: string;
  system: boolean;
}) {
  const names = useMemo(() => all.map((one) => one.name), [all.map((one) => one.name).join('\n')]);
  const last = useMemo(() => new Map(all.map((one) => [one.name, one.last])), [all]);
  if (system && names.length === 0) {
    return <Empty title="No system metrics"><p>Metrics whose names begin with <code>system/</code> are shown here.</p></Empty>;
  }
  return <ChartGrid runs={runs} metrics={names} sync={id} last={last} />;
}
