// Runs side by side: those that were chosen, or all of an experiment. Charts over each other,
// what differs, parameters against results, and which parameter matters.
import { useEffect, useMemo, useState } from 'preact/hooks';

import { plural } from '../lib/format';
import { goalOf } from '../lib/goal';
import { asFilter } from '../lib/filter';
import { Await, Empty } from '../parts/Box';
import { Tabs } from '../parts/Tabs';
import { href, route, setQuery } from '../state/router';
import type { Run } from '../state/types';
import { useTitle } from '../state/title';
import { dimensions, metricsOf, varying } from './compare/axes';
import { BestSoFar } from './compare/BestSoFar';
import { DiffTable } from './compare/DiffTable';
import { Importance, type Among } from './compare/Importance';
import { kLines, Overlay } from './compare/Overlay';
import { Parallel, passes, type Brushes } from './compare/Parallel';
import { Scatter } from './compare/Scatter';
import { useRunList } from './compare/run_list';

const kMost = 500; // runs compared when none are named
const kColumns = 12;

const kGroups = [['p:', 'Parameters'], ['m:', 'Metrics']] as const;

function Select({ label, value, options, onChange }: { label: string; value: string; options: string[]; onChange: (v: string) => void }) {
  return (
    <label class="row"><span class="dim">{label}</span>
      <select aria-label={label} value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        {kGroups.map(([prefix, title]) => {
          const list = options.filter((one) => one.startsWith(prefix));
          return list.length ? <optgroup key={prefix} label={title}>{list.map((one) => <option key={one} value={one}>{one.slice(2)}</option>)}</optgroup> : null;
        })}
        {options.filter((one) => !/^[mp]:/.test(one)).map((one) => <option key={one} value={one}>{one}</option>)}
      </select>
    </label>
  );
}

function Explore({ runs, metrics, among }: { runs: Run[]; metrics: string[]; among: Among }) {
  const { query } = route.value;
  const [brushes, setBrushes] = useState<Brushes>({});
  const metric = query.metric && metrics.includes(query.metric) ? query.metric
    : metrics.find((name) => /val.*loss/.test(name)) ?? metrics.find((name) => /loss/.test(name)) ?? metrics[0] ?? '';
  const params = useMemo(() => varying(runs), [runs]);
  const ids = useMemo(() => [...params.slice(0, 8).map((name) => `p:${name}`), ...(metric ? [`m:${metric}`] : [])], [params, metric]);
  useEffect(() => setBrushes({}), [ids.join('\n')]);
  const inside = useMemo(() => {
    const dims = dimensions(ids, runs);
    return runs.filter((run) => passes(run, dims, brushes));
  }, [runs, ids, brushes]);
  const all = [...params.map((name) => `p:${name}`), ...metrics.map((name) => `m:${name}`)];
  const x = all.includes(query.sx ?? '') ? query.sx! : ids[0] ?? '';
  const y = all.includes(query.sy ?? '') ? query.sy! : `m:${metric}`;
  const goal = query.goal ?? goalOf(metric) ?? 'minimize';
  if (!params.length || !metric) return <Empty title="Nothing to explore"><p>The runs have the same parameters, or no metric.</p></Empty>;
  const chosen = Object.keys(brushes).length > 0;
  return (
    <div class="stack">
      <div class="toolbar">
        <Select label="Metric" value={metric} options={metrics.slice(0, 500)} onChange={(v) => setQuery({ metric: v })} />
        <Select label="Goal" value={goal} options={['minimize', 'maximize']} onChange={(v) => setQuery({ goal: v })} />
        {chosen ? (
          <>
            <span class="dim">{inside.length} of {runs.length} runs</span>
            <a class="button small" href={href(['compare', 'charts'], { runs: inside.slice(0, kLines).map((run) => run.id).join(',') })}>Compare these</a>
            <button class="button small" onClick={() => setBrushes({})}>All</button>
          </>
        ) : null}
      </div>
      <section class="card"><header><h2>Parallel coordinates</h2></header>
        <Parallel runs={runs} ids={ids} brushes={brushes} onBrush={setBrushes} /></section>
      <div class="columns">
        <section class="card">
          <header><h2>Scatter</h2>
            <Select label="x" value={x} options={all} onChange={(v) => setQuery({ sx: v })} />
            <Select label="y" value={y} options={all} onChange={(v) => setQuery({ sy: v })} /></header>
          <Scatter runs={inside} x={x} y={y} colour={`m:${metric}`} />
        </section>
        <div class="stack">
          <section class="card"><header><h2>Importance for {metric}</h2></header>
            <Importance metric={metric} among={among} goal={goal} /></section>
          <section class="card"><header><h2>Best so far</h2></header>
            <BestSoFar runs={inside} metric={metric} lowest={goal === 'minimize'} /></section>
        </div>
      </div>
    </div>
  );
}


export function Compare() {
  const { path, query } = route.value;
  const names = (query.runs ?? '').split(',').filter(Boolean);
  const { experiment, filter = '' } = query;
  const key = JSON.stringify([names, experiment, filter]);
  const runs = useRunList(key, { names, experiment, filter: asFilter(filter), most: kMost });
  const metrics = useMemo(() => metricsOf(runs.data ?? []), [runs.data]);
  const [all, setAll] = useState(false);
  const tab = path[1] ?? (names.length > 0 && names.length <= kColumns ? 'differences' : 'explore');
  const keep = { runs: query.runs, experiment, filter };
  useTitle(names.length ? `Compare ${plural(names.length, 'run')}` : experiment ? `Compare ${experiment}` : 'Compare');
  return (
    <div class="page">
      <div class="page-head">
        <h1>{names.length ? `Compare ${plural(names.length, 'run')}` : experiment ? `Compare ${experiment}` : 'Compare'}</h1>
        {runs.data && !names.length ? <span class="dim">{plural(runs.data.length, 'newest run')}; choose some in <a href={href(['runs'])}>the table</a></span> : null}
      </div>
      <Tabs current={tab} tabs={[
        { id: 'differences', text: 'Differences', href: href(['compare', 'differences'], keep) },
        { id: 'charts', text: 'Charts', href: href(['compare', 'charts'], keep) },
        { id: 'explore', text: 'Explore', href: href(['compare', 'explore'], keep) },
      ]} />
      <Await of={runs}>
        {(list) => list.length === 0 ? <Empty title="No runs to compare" /> : (
          <>
            {tab === 'differences' ? (
              <section class="card flush">
                <header>
                  <h2>{all ? 'Everything' : 'What differs'}{list.length > kColumns ? ` (the first ${kColumns} runs)` : ''}</h2>
                  <label class="row"><input type="checkbox" checked={all} onChange={(e) => setAll(e.currentTarget.checked)} /> also what is the same</label>
                </header>
                <DiffTable runs={list.slice(0, kColumns)} all={all} />
              </section>
            ) : null}
            {tab === 'charts' ? <Overlay runs={list} metrics={metrics} /> : null}
            {tab === 'explore' ? <Explore runs={list} metrics={metrics} among={{ ...keep, filter: asFilter(filter) }} /> : null}
          </>
        )}
      </Await>
    </div>
  );
}
