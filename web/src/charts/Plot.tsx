// A model drawn with uPlot: cursors in step with other charts, drag to zoom, shift-drag or a
// sideways wheel to pan, double click for all.
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';

import { px } from '../lib/format';
import { safeRange } from '../lib/smooth';
import { logTicks } from '../lib/ticks';
import type { Model, Settings } from './model';
import { drawCut, drawMarks } from './marks';
import { panning, type Moving } from './pan';
import { tooltip } from './tooltip';

export interface PlotProps {
  model: Model;
  settings: Settings;
  width: number;
  height: number;
  range?: [number, number];
  sync: string;
  dark: boolean;
  onRange: (range: [number, number] | undefined) => void;
  onReady?: (plot: uPlot) => void;
}

interface Theme {
  ink: string;
  line: string;
}

function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  return { ink: style.getPropertyValue('--ink-3').trim(), line: style.getPropertyValue('--line').trim() };
}

const kFont = '11px system-ui, sans-serif';

export function axisText(value: number | null): string {
  if (value === null) return '';
  const size = Math.abs(value);
  if (size >= 1e9 || (size > 0 && size < 1e-3)) return Number(value.toPrecision(3)).toExponential().replace('e+', 'e'); // neighbours never look the same
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(4)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(4)}k`;
  return String(+value.toPrecision(6));
}

function seconds(value: number | null): string {
  if (value === null) return '';
  if (Math.abs(value) < 120) return `${+value.toPrecision(3)}s`;
  if (Math.abs(value) < 7200) return `${+(value / 60).toPrecision(3)}m`;
  return `${+(value / 3600).toPrecision(3)}h`;
}

function options(props: PlotProps, latest: { current: PlotProps }, hidden: HTMLElement): uPlot.Options {
  const { model, settings, width, height } = props;
  const { ink, line } = theme();
  const pxRatio = Math.min(devicePixelRatio || 1, 2);
  // Marks of our own on a log axis: the library's never end where a scale begins between powers.
  const log: Partial<uPlot.Axis> = {
    splits: (_u, _axis, low, high) => logTicks(low, high),
    filter: (_u, splits) => splits,
  };
  const axis = (values?: uPlot.Axis['values']): uPlot.Axis => ({
    stroke: ink,
    font: kFont,
    grid: { stroke: line, width: 1 / pxRatio },
    ticks: { show: false },
    ...(values ? { values } : {}),
  });
  const number: uPlot.Axis['values'] = (_u, splits) => splits.map(axisText);
  const lone = model.x.length < 60;
  const moving: Moving = {};
  return {
    width,
    height,
    pxAlign: 0,
    legend: { show: false },
    padding: [8, 10, 0, 0],
    focus: { alpha: 0.25 },
    cursor: {
      sync: { key: props.sync, setSeries: false },
      focus: { prox: 24 },
      drag: { x: true, y: false, setScale: false, dist: 4 },
      points: { size: 6 },
      bind: {
        dblclick: () => () => {
          latest.current.onRange(undefined);
          return null;
        },
      },
    },
    scales: {
      x: {
        time: settings.axis === 'time',
        distr: settings.logX ? 3 : 1,
        range: (_u, low, high) => {
          const { x } = latest.current.model;
          if (x.length === 1) high = low = x[0]!; // the library would make a hundred of it
          return moving.range ?? latest.current.range ??
            (low !== high ? [low, high] : settings.logX ? [low / 2, high * 2] : [low - 0.5, high + 0.5]);
        },
      },
      y: {
        distr: settings.logY ? 3 : 1,
        range: (_u, low, high) => yRange(latest.current, low, high),
      },
    },
    axes: [
      {
        ...axis(settings.axis === 'time' ? undefined
          : settings.axis === 'relative' ? (_u, splits) => splits.map(seconds) : number),
        ...(settings.logX ? log : {}),
        size: settings.axis === 'time' ? 40 : 26,
        gap: 4,
      },
      { ...axis(number), ...(settings.logY ? log : {}), size: 46, gap: 4 },
    ],
    series: [
      {},
      ...model.columns.map((column): uPlot.Series => ({
        label: column.label,
        stroke: column.kind === 'low' || column.kind === 'high' ? 'transparent' : column.colour,
        width: column.kind === 'line' ? 1.7 : column.kind === 'old' ? 1.2 : 1,
        dash: column.kind === 'old' ? [4, 3] : undefined,
        points: { show: column.kind === 'line' && lone, size: 4, fill: column.colour },
      })),
    ],
    bands: model.bands.map((band) => ({ series: [band.high + 1, band.low + 1], fill: band.colour })),
    hooks: {
      setSelect: [
        (u) => {
          const { left, width: wide } = u.select;
          if (wide < 4) return;
          latest.current.onRange([u.posToVal(left, 'x'), u.posToVal(left + wide, 'x')]);
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
      draw: [(u) => {
        drawMarks(u, latest.current.model.marks, theme().ink);
        drawCut(u, latest.current.model);
      }],
    },
    plugins: [tooltip(hidden, () => latest.current), panning(moving, (range) => latest.current.onRange(range))],
  };
}

function yRange(props: PlotProps, low: number, high: number): [number, number] {
  if (low === null || high === null) return props.settings.logY ? [0.1, 1] : [0, 1];
  if (!props.settings.outliers) {
    const seen = props.model.columns.flatMap((column, i) =>
      column.kind === 'line' || column.kind === 'old' ? [props.model.values[i] as number[]] : []);
    const safe = safeRange(seen);
    if (safe) [low, high] = safe;
  }
  if (props.settings.logY) return low === high ? [low / 2, high * 2] : [low * 0.9, high * 1.1];
  const pad = (high - low || Math.abs(high) || 1) * 0.06;
  return [low - pad, high + pad];
}

export function Plot(props: PlotProps) {
  const root = useRef<HTMLDivElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const { model, settings } = props;
  // What cannot be changed in place: a new plot is made when it differs.
  const shape = JSON.stringify([
    model.columns.map((c) => [c.label, c.colour, c.kind]), settings.axis, settings.logX, settings.logY,
    props.dark, props.sync, model.x.length < 60,
  ]);
  const data = () => [model.x, ...model.values] as unknown as uPlot.AlignedData;
  const drawn = useRef<Model | undefined>(undefined);
  useEffect(() => {
    if (props.width < 40) return;
    const made = new uPlot(options(props, latest, tip.current!), data(), root.current!);
    plot.current = made;
    drawn.current = model;
    props.onReady?.(made);
    return () => {
      made.destroy();
      plot.current = undefined;
    };
  }, [shape, props.width >= 40]);
  useEffect(() => {
    if (!plot.current || drawn.current === model) return;
    drawn.current = model;
    plot.current.setData(data());
  }, [model]);
  useEffect(() => {
    plot.current?.setData(data());
  }, [props.range?.[0], props.range?.[1], settings.outliers]);
  useEffect(() => {
    plot.current?.setSize({ width: props.width, height: props.height });
  }, [props.width, props.height]);
  return (
    <div class="plot" ref={root} style={{ height: px(props.height) }}>
      <div class="tip" ref={tip} hidden />
    </div>
  );
}
