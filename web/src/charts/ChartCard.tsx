// One metric of some runs: its chart, loaded when it comes into view, with what can be done to it.
import { useMemo, useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';

import { number, px } from '../lib/format';
import type { Size } from '../lib/layout';
import { pick, parsePoints, stepsUnder, xOf, type Series, type Steps } from '../lib/points';
import { Dialog } from '../parts/Dialog';
import { Failure } from '../parts/Box';
import { Icon } from '../parts/Icon';
import { Menu } from '../parts/Menu';
import { api } from '../state/api';
import { chartPins, toggle } from '../state/prefs';
import { dark, useLoaded, useSize } from '../state/use';
import { dragged, MoveDialog, target, type Move } from './Arrange';
import { useVisible } from './visible';
import { chartCsv, chartSvg, saveFile, savePng } from './export';
import { useDetail, useFeed, type Feed } from './feed';
import { buildModel, type ChartLine, type Settings } from './model';
import { Plot } from './Plot';
import { Resize } from './Resize';

export interface ChartRun {
  id: string;
  label: string;
  colour: string;
  attempts?: number; // more than one: earlier ones are asked for, too
}

interface BodyProps {
  metric: string;
  runs: ChartRun[];
  settings: Settings;
  range?: [number, number];
  onRange: (range: [number, number] | undefined) => void;
  height: number;
  sync: string;
}

interface CardProps extends Omit<BodyProps, 'height'> {
  last?: number | string;
  size: Size;
  columns: number; // of the grid, as wide as it is now
  section: string;
  sections: string[]; // it can be moved to
  beside: string[]; // the charts of its section, in order
  changed: boolean; // the user gave it a size or position
  onSize: (size: Size) => void;
  onMove: Move;
  onForget: () => void;
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

// The steps of each run that are in a range of the x axis, to load them in detail.
function stepsOf(range: [number, number] | undefined, settings: Settings, whole: Feed, other: Feed): Map<string, Steps> | undefined {
  if (!range) return undefined;
  const out = new Map<string, Steps>();
  for (const [run, series] of whole.series) {
    const by = settings.axis === 'metric' ? other.series.get(run) : series;
    if (!by) continue;
    const steps = stepsUnder(by, settings.axis === 'metric' ? by.value : xOf(by, settings.axis), range[0], range[1]);
    if (steps) out.set(run, steps);
  }
  return out;
}

export function Body(props: BodyProps & { onPlot?: (plot: uPlot) => void; onLines?: (lines: ChartLine[], model: ReturnType<typeof buildModel>) => void }) {
  const { metric, runs, settings, range } = props;
  const [size, box] = useSize<HTMLDivElement>();
  const [seen, visible] = useVisible();
  const ids = runs.map((run) => run.id);
  const want = { runs: ids, metric, width: box.width };
  const against = { ...want, metric: settings.xMetric ?? '' };
  const whole = useFeed(want, visible);
  const wholeX = useFeed(against, visible && settings.axis === 'metric' && !!settings.xMetric);
  const steps = useMemo(() => stepsOf(range, settings, whole, wholeX),
    [range?.[0], range?.[1], settings, whole.series, wholeX.series]);
  const feed = useDetail(whole, want, steps);
  const other = useDetail(wholeX, against, settings.axis === 'metric' ? steps : undefined);
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

export function ChartCard(props: CardProps) {
  const { metric, section, beside } = props;
  const [dialog, setDialog] = useState<'large' | 'move' | undefined>(undefined);
  const [moving, setMoving] = useState<Size | undefined>(undefined); // while its corner is dragged
  const plot = useRef<uPlot | undefined>(undefined);
  const shown = useRef<{ lines: ChartLine[]; model: ReturnType<typeof buildModel> } | undefined>(undefined);
  const pinned = chartPins.value.includes(metric);
  const size = moving ?? props.size;
  const at = beside.indexOf(metric);
  const keep = (lines: ChartLine[], model: ReturnType<typeof buildModel>) => (shown.current = { lines, model });
  const choices = [
    { text: 'Save as PNG', act: () => plot.current && savePng(metric, plot.current.ctx.canvas, shown.current!.lines) },
    { text: 'Save as SVG', act: () => shown.current && saveFile(`${metric}.svg`,
      chartSvg(metric, shown.current.model, shown.current.lines, props.settings.logY), 'image/svg+xml') },
    { text: 'Save as CSV', act: () => shown.current && saveFile(`${metric}.csv`, chartCsv(metric, shown.current.lines), 'text/csv') },
    ...(pinned ? [] : [
      { text: 'Move earlier', disabled: at <= 0, act: () => props.onMove(metric, section, beside[at - 1]) },
      { text: 'Move later', disabled: at >= beside.length - 1, act: () => props.onMove(metric, section, beside[at + 2]) },
    ]),
    { text: 'Move to a section…', act: () => setDialog('move') },
    ...(props.changed ? [{ text: 'Usual size and place', act: props.onForget }] : []),
  ];
  const resize = (next: Size, done: boolean) => {
    setMoving(done ? undefined : next);
    if (done && (next.span !== props.size.span || next.height !== props.size.height)) props.onSize(next);
  };
  return (
    <section class="card chart" aria-label={metric} style={{ gridColumn: `span ${Math.min(size.span, props.columns)}` }}
      {...target(`chart ${metric}`, (name) => props.onMove(name, section, metric))}>
      <header {...dragged(metric)}>
        <h3 class="cut grow" title={metric}>{metric}</h3>
        {props.last !== undefined ? <span class="mono dim">{number(props.last)}</span> : null}
        <span class="chart-tools">
          <button class={`button plain small ${pinned ? 'on' : ''}`} title={pinned ? 'Unpin' : 'Pin to the top'}
            aria-label={pinned ? `Unpin ${metric}` : `Pin ${metric}`} aria-pressed={pinned} onClick={() => toggle(chartPins, metric)}>
            <Icon name="pin" />
          </button>
          <button class="button plain small" title="Enlarge" aria-label={`Enlarge ${metric}`} onClick={() => setDialog('large')}>
            <Icon name="expand" />
          </button>
          <Menu label={<Icon name="more" />} title={`More for ${metric}`} className="plain" choices={choices} />
        </span>
      </header>
      <Body {...props} height={size.height} onPlot={(p) => (plot.current = p)} onLines={keep} />
      <Resize name={metric} size={size} columns={props.columns} onSize={resize} />
      {dialog === 'large' ? (
        <Dialog title={metric} wide close={() => setDialog(undefined)}>
          <Body {...props} height={Math.min(560, innerHeight * 0.6)} sync={`${props.sync}-large`} />
        </Dialog>
      ) : null}
      {dialog === 'move' ? <MoveDialog name={metric} sections={props.sections.filter((one) => one !== section)} move={props.onMove} close={() => setDialog(undefined)} /> : null}
    </section>
  );
}
