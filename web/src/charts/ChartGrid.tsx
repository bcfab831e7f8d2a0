// Charts of many metrics in sections: pinned ones first, then as they were arranged, then by the
// first part of their names.
import { useMemo, useState } from 'preact/hooks';

import { plural } from '../lib/format';
import { forget, formatLayout, kPinned, move, parseLayout, place, resize, type Layout, type Size } from '../lib/layout';
import { Empty } from '../parts/Box';
import { Icon } from '../parts/Icon';
import { chartPins, chartSize, foldedSections, toggle } from '../state/prefs';
import { route, setQuery } from '../state/router';
import { useSize } from '../state/use';
import { target } from './Arrange';
import { ChartBar, rangeOf, setRange, settingsOf } from './ChartBar';
import { ChartCard, type ChartRun } from './ChartCard';

const kMore = 48; // charts of a section shown at first, and by each "more"
const kHeights = { s: 170, m: 230, l: 360 };
const kLeast = { s: 260, m: 340, l: 620 }; // widths of a column
const kGap = 12;
const kWide = 900;

function Section({ name, metrics, children, take }: {
  name: string;
  metrics: string[];
  children: (shown: string[]) => preact.ComponentChildren;
  take: (metric: string) => void;
}) {
  const [most, setMost] = useState(kMore);
  const folded = foldedSections.value.includes(name);
  return (
    <section class="chart-section" aria-label={name}>
      <button class="section-head" aria-expanded={!folded} onClick={() => toggle(foldedSections, name)} {...target(`section ${name}`, take)}>
        <Icon name={folded ? 'right' : 'down'} /> <h2>{name}</h2> <span class="dim">{metrics.length}</span>
      </button>
      {folded ? null : children(metrics.slice(0, most))}
      {!folded && metrics.length > most ? (
        <button class="button" onClick={() => setMost(most + kMore)}>Show {plural(Math.min(kMore, metrics.length - most), 'more chart')}</button>
      ) : null}
    </section>
  );
}

// How many are side by side: all that fit, but without empty columns while there are fewer, and the
// last row is about as full as the others. A chart that the user made wider takes several columns.
function across(charts: number, columns: number): number {
  const rows = Math.max(1, Math.ceil(charts / columns));
  return Math.max(1, Math.ceil(charts / rows));
}

function unpin(name: string): void {
  if (chartPins.peek().includes(name)) toggle(chartPins, name);
}

export function ChartGrid({ runs, metrics, sync, last }: {
  runs: ChartRun[];
  metrics: string[];
  sync: string;
  last?: Map<string, number | string>;
}) {
  const { query } = route.value;
  const [sized, box] = useSize<HTMLDivElement>();
  const settings = useMemo(() => settingsOf(query), [query.x, query.smooth, query.logx, query.logy, query.out]);
  const range = useMemo(() => rangeOf(query), [query.zoom]);
  const layout = useMemo(() => parseLayout(query.sec, query.size), [query.sec, query.size]);
  const groups = useMemo(() => place(metrics, chartPins.value, layout), [metrics, chartPins.value, layout]);
  const shown = useMemo(() => {
    const words = (query.find ?? '').toLowerCase().split(/\s+/).filter(Boolean);
    const found = (name: string) => words.every((word) => name.toLowerCase().includes(word));
    return groups.map(([title, list]) => [title, list.filter(found)] as const).filter(([, list]) => list.length > 0);
  }, [groups, query.find]);
  if (metrics.length === 0) {
    return (
      <Empty title="No numbers yet">
        <p>Log them with <code>athanor.log(loss=…)</code>, MLflow, TensorBoard, or a pattern on the log.</p>
      </Empty>
    );
  }
  const size = chartSize.value;
  const columns = Math.max(1, Math.floor((box.width + kGap) / (kLeast[size] + kGap)));
  const keep = (next: Layout) => setQuery(formatLayout(next));
  const to = (name: string, section: string, before?: string) => {
    if (name === before || !metrics.includes(name)) return;
    if (section === kPinned) {
      if (!chartPins.peek().includes(name)) toggle(chartPins, name);
      return;
    }
    unpin(name);
    keep(move(layout, groups, name, section, before));
  };
  const titles = groups.map(([title]) => title).filter((title) => title !== kPinned);
  return (
    <div ref={sized}>
      <ChartBar metrics={metrics} />
      {shown.length === 0 ? <Empty title="No chart has such a name" /> : null}
      {shown.map(([section, list]) => (
        <Section key={section} name={section} metrics={list} take={(name) => to(name, section)}>
          {(some) => {
            const side = across(some.length, columns);
            // One chart over a wide screen is higher, or it would be a strip.
            const height = kHeights[size] * (side === 1 && box.width > kWide ? 1.5 : 1);
            return (
            <div class={`charts ${size}`} style={{ '--across': side }}>
              {some.map((metric) => {
                const own = layout.sizes.get(metric);
                return (
                  <ChartCard key={metric} metric={metric} runs={runs} settings={settings} range={range} onRange={setRange}
                    sync={sync} last={last?.get(metric)} section={section} sections={titles} columns={side}
                    size={own ?? { span: 1, height }} changed={!!own || layout.sections.some(([, all]) => all.includes(metric))}
                    onSize={(next: Size) => keep(resize(layout, metric, next))} onMove={to} beside={list}
                    onForget={() => keep(forget(layout, metric))} />
                );
              })}
            </div>
            );
          }}
        </Section>
      ))}
    </div>
  );
}
