// One metric of some runs: its chart, loaded when it comes into view, with what can be done to it.
import { useMemo, useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';

import { number, px } from '../lib/format';
import { pick, parsePoints, type Series } from '../lib/points';
import { Dialog } from '../parts/Dialog';
import { Failure } from '../parts/Box';
import { Icon } from '../parts/Icon';
import { Menu } from '../parts/Menu';
import { api } from '../state/api';
import { chartPins, toggle } from '../state/prefs';
import { dark, useLoaded, useSize } from '../state/use';
import { useVisible } from './visible';
import { chartCsv, chartSvg, saveFile, savePng } from './export';
import { useFeed } from './feed';
import { buildModel, type ChartLine, type Settings } from './model';
import { Plot } from './Plot';

export interface ChartRun {
  id: string;
  label: string;
  colour: string;
  attempts?: number; // more than one: earlier ones are asked for, too
}

interface CardProps {
  metric: string;
  runs: ChartRun[];
  settings: Settings;
  range?: [number, number];
  onRange: (range: [number, number] | undefined) => void;
  height: number;
  sync: string;
}

// What earlier attempts logged beyond the checkpoint that the next one began from.
function useOld(runs: ChartRun[], metric: string, visible: boolean): Series | undefined {
  const run = runs.length === 1 && (runs[0]!.attempts ?? 1) > 1 ? runs[0]! : undefined;
  const key = run && visible ? `${run.id} ${metric} ${run.attempts}` : null;
  return useLoaded(key, async (signal) => {
    const all = parsePoints(await api.allPoints(run!.id, metric, true, signal));
    return pick(all, (i) => all.abandoned[i] === 1);
  }).data;
}

// The steps that lie under a range of the x axis, with a margin, for asking in detail.
function stepsOf(range: [number, number] | undefined, settings: Settings): { from?: number; to?: number } {
  if (!range || settings.axis !== 'step') return {};
  const pad = (range[1] - range[0]) * 0.02;
  return { from: Math.floor(range[0] - pad), to: Math.ceil(range[1] + pad) };
}

export function Body(props: CardProps & { onPlot?: (plot: uPlot) => void; onLines?: (lines: ChartLine[], model: ReturnType<typeof buildModel>) => void }) {
  const { metric, runs, settings, range } = props;
  const [size, box] = useSize<HTMLDivElement>();
  const [seen, visible] = useVisible();
  const ids = runs.map((run) => run.id);
  const feed = useFeed({ runs: ids, metric, width: box.width, ...stepsOf(range, settings), live: true }, visible);
  const other = useFeed(
    { runs: ids, metric: settings.xMetric ?? '', width: box.width, live: true },
    visible && settings.axis === 'metric' && !!settings.xMetric);
  const old = useOld(runs, metric, visible);
  const lines = useMemo(() => runs.flatMap((run): ChartLine[] => {
    const series = feed.series.get(run.id);
    return series && series.step.length
      ? [{ id: run.id, label: run.label, colour: run.colour, series, old, x: other.series.get(run.id) }] : [];
  }), [runs, feed.series, other.series, old]);
  const cells = Math.max(100, Math.floor(box.width / 1.5));
  const model = useMemo(
    () => buildModel(lines, settings, cells, dark.value ? '#6b7480' : '#a3a9b1', range),
    [lines, settings, cells, range?.[0], range?.[1], dark.value]);
  props.onLines?.(lines, model);
  return (
    <div ref={seen}>
      <div ref={size} class="plot-space" style={{ height: px(props.height) }}>
        {feed.error && !lines.length ? <Failure error={feed.error} /> : null}
        {!feed.loading && !feed.error && !lines.length ? <div class="loading">No points</div> : null}
        {lines.length && box.width && visible ? (
          <Plot model={model} settings={settings} width={box.width} height={props.height} range={range}
            sync={props.sync} dark={dark.value} onRange={props.onRange} onReady={props.onPlot} />
        ) : null}
      </div>
    </div>
  );
}

export function ChartCard(props: CardProps & { last?: number | string }) {
  const { metric } = props;
  const [large, setLarge] = useState(false);
  const plot = useRef<uPlot | undefined>(undefined);
  const shown = useRef<{ lines: ChartLine[]; model: ReturnType<typeof buildModel> } | undefined>(undefined);
  const pinned = chartPins.value.includes(metric);
  const keep = (lines: ChartLine[], model: ReturnType<typeof buildModel>) => (shown.current = { lines, model });
  const choices = [
    { text: 'Save as PNG', act: () => plot.current && savePng(metric, plot.current.ctx.canvas, shown.current!.lines) },
    { text: 'Save as SVG', act: () => shown.current && saveFile(`${metric}.svg`,
      chartSvg(metric, shown.current.model, shown.current.lines, props.settings.logY), 'image/svg+xml') },
    { text: 'Save as CSV', act: () => shown.current && saveFile(`${metric}.csv`, chartCsv(metric, shown.current.lines), 'text/csv') },
  ];
  return (
    <section class="card chart" aria-label={metric}>
      <header>
        <h3 class="cut grow" title={metric}>{metric}</h3>
        {props.last !== undefined ? <span class="mono dim">{number(props.last)}</span> : null}
        <span class="chart-tools">
          <button class={`button plain small ${pinned ? 'on' : ''}`} title={pinned ? 'Unpin' : 'Pin to the top'}
            aria-label={pinned ? `Unpin ${metric}` : `Pin ${metric}`} aria-pressed={pinned} onClick={() => toggle(chartPins, metric)}>
            <Icon name="pin" />
          </button>
          <button class="button plain small" title="Enlarge" aria-label={`Enlarge ${metric}`} onClick={() => setLarge(true)}>
            <Icon name="expand" />
          </button>
          <Menu label={<Icon name="more" />} title={`More for ${metric}`} className="plain" choices={choices} />
        </span>
      </header>
      <Body {...props} onPlot={(p) => (plot.current = p)} onLines={keep} />
      {large ? (
        <Dialog title={metric} wide close={() => setLarge(false)}>
          <Body {...props} height={Math.min(560, innerHeight * 0.6)} sync={`${props.sync}-large`} />
        </Dialog>
      ) : null}
    </section>
  );
}
