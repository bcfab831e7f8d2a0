// Charts of many metrics in sections by the first part of their names; pinned ones first.
import { useMemo, useState } from 'preact/hooks';

import { plural } from '../lib/format';
import { Empty } from '../parts/Box';
import { Icon } from '../parts/Icon';
import { chartPins, chartSize, foldedSections, toggle } from '../state/prefs';
import { route } from '../state/router';
import { ChartBar, rangeOf, setRange, settingsOf } from './ChartBar';
import { ChartCard, type ChartRun } from './ChartCard';

const kMore = 48; // charts of a section shown at first, and by each "more"
const kHeights = { s: 170, m: 230, l: 360 };

export function sectionOf(name: string): string {
  const at = name.search(/[/.]/);
  return at > 0 ? name.slice(0, at) : 'metrics';
}

export function sections(names: string[], pinned: string[], find: string): [string, string[]][] {
  const words = find.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = names.filter((name) => words.every((word) => name.toLowerCase().includes(word)));
  const out = new Map<string, string[]>();
  const pins = wanted.filter((name) => pinned.includes(name));
  if (pins.length) out.set('pinned', pins);
  for (const name of wanted) {
    if (pinned.includes(name)) continue;
    const section = sectionOf(name);
    out.set(section, [...(out.get(section) ?? []), name]);
  }
  return [...out];
}

function Section({ name, metrics, children }: { name: string; metrics: string[]; children: (shown: string[]) => preact.ComponentChildren }) {
  const [most, setMost] = useState(kMore);
  const folded = foldedSections.value.includes(name);
  return (
    <section class="chart-section">
      <button class="section-head" aria-expanded={!folded} onClick={() => toggle(foldedSections, name)}>
        <Icon name={folded ? 'right' : 'down'} /> <h2>{name}</h2> <span class="dim">{metrics.length}</span>
      </button>
      {folded ? null : children(metrics.slice(0, most))}
      {!folded && metrics.length > most ? (
        <button class="button" onClick={() => setMost(most + kMore)}>Show {plural(Math.min(kMore, metrics.length - most), 'more chart')}</button>
      ) : null}
    </section>
  );
}

export function ChartGrid({ runs, metrics, sync, last }: {
  runs: ChartRun[];
  metrics: string[];
  sync: string;
  last?: Map<string, number | string>;
}) {
  const { query } = route.value;
  const settings = useMemo(() => settingsOf(query), [query.x, query.smooth, query.logx, query.logy, query.out]);
  const range = useMemo(() => rangeOf(query), [query.zoom]);
  const groups = useMemo(() => sections(metrics, chartPins.value, query.find ?? ''), [metrics, chartPins.value, query.find]);
  if (metrics.length === 0) {
    return (
      <Empty title="No numbers yet">
        <p>Log them with <code>athanor.log(loss=…)</code>, MLflow, TensorBoard, or a pattern on the log.</p>
      </Empty>
    );
  }
  return (
    <>
      <ChartBar metrics={metrics} />
      {groups.length === 0 ? <Empty title="No chart has such a name" /> : null}
      {groups.map(([name, list]) => (
        <Section key={name} name={name} metrics={list}>
          {(shown) => (
            <div class={`charts ${chartSize.value}`}>
              {shown.map((metric) => (
                <ChartCard key={metric} metric={metric} runs={runs} settings={settings} range={range} onRange={setRange}
                  height={kHeights[chartSize.value]} sync={sync} last={last?.get(metric)} />
              ))}
            </div>
          )}
        </Section>
      ))}
    </>
  );
}
