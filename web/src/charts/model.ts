// From series and settings to what is drawn: columns, their styles, and marks. Pure.
import { align, type Line } from '../lib/align';
import { withAlpha } from '../lib/palette';
import { overMetric, pick, xOf, type Series, type XAxis } from '../lib/points';
import { smooth } from '../lib/smooth';

export interface Settings {
  axis: XAxis | 'metric';
  xMetric?: string;
  smooth: number; // 0..0.999
  logX: boolean;
  logY: boolean;
  outliers: boolean; // keep them in the scale
}

export interface ChartLine {
  id: string;
  label: string;
  colour: string;
  series: Series;
  old?: Series; // what earlier attempts logged and a later one did again
  x?: Series; // of the metric on the x axis
}

export interface Column {
  label: string;
  colour: string;
  kind: 'line' | 'raw' | 'old' | 'low' | 'high';
  line: number;
}

export interface Mark {
  x: number;
  kind: 'nan' | 'up' | 'down' | 'attempt';
  colour: string;
  label: string;
}

export interface Model {
  x: Float64Array;
  columns: Column[];
  values: (number | null | undefined)[][];
  bands: { high: number; low: number; colour: string }[]; // indices of columns
  marks: Mark[];
  sampled: boolean;
}

const kMostMarks = 400;

function lineOf(line: ChartLine, settings: Settings): Line {
  if (settings.axis === 'metric') {
    return line.x ? overMetric(line.series, line.x) : { x: new Float64Array(), y: new Float64Array() };
  }
  return { x: xOf(line.series, settings.axis), y: line.series.value };
}

// A log axis has no place for what is not above zero.
function clean(line: Line, settings: Settings): Line {
  if (!settings.logX && !settings.logY) return line;
  const keep = (i: number) =>
    (!settings.logX || line.x[i]! > 0) && (!settings.logY || !(line.y[i]! <= 0));
  return { x: line.x.filter((_, i) => keep(i)), y: line.y.filter((_, i) => keep(i)) };
}

// What is in the range, and one more point on each side; everything if no range is chosen.
function within(line: Line, range: [number, number] | undefined): Line {
  if (!range) return line;
  let from = 0;
  while (from < line.x.length && line.x[from]! < range[0]) ++from;
  let to = line.x.length;
  while (to > from && line.x[to - 1]! > range[1]) --to;
  from = Math.max(0, from - 1);
  return { x: line.x.subarray(from, to + 1), y: line.y.subarray(from, to + 1) };
}

function marksOf(line: ChartLine, at: Line, attempts: boolean): Mark[] {
  const marks: Mark[] = [];
  at.y.forEach((y, i) => {
    if (Number.isFinite(y) || marks.length >= kMostMarks) return;
    const kind = Number.isNaN(y) ? 'nan' : y > 0 ? 'up' : 'down';
    marks.push({ x: at.x[i]!, kind, colour: line.colour, label: line.label });
  });
  const number = line.series.attempt;
  for (let i = 1; attempts && i < number.length; ++i) {
    if (number[i]! > number[i - 1]!) {
      marks.push({ x: at.x[i]!, kind: 'attempt', colour: line.colour, label: `attempt ${number[i]}` });
    }
  }
  return marks;
}

// Abandoned points of each attempt apart, or they would be joined across the restart.
function oldLines(line: ChartLine, settings: Settings): Line[] {
  const { old } = line;
  if (!old || settings.axis === 'metric') return [];
  const axis = settings.axis;
  return [...new Set(old.attempt)].map((n) => {
    const part = pick(old, (i) => old.attempt[i] === n);
    return clean({ x: xOf(part, axis), y: part.value }, settings);
  });
}

export function buildModel(lines: ChartLine[], settings: Settings, cells: number, grey: string,
  range?: [number, number]): Model {
  const raw = lines.map((line) => lineOf(line, settings));
  const marks = lines.flatMap((line, i) => marksOf(line, raw[i]!, lines.length === 1 && settings.axis !== 'metric'));
  const whole = raw.map((line) => clean(line, settings));
  // Smoothed before it is cut: a range begins with the memory of what came before it.
  const shown = whole.map((line) => within({ x: line.x, y: smooth(line.x, line.y, settings.smooth) }, range));
  const measured = whole.map((line) => within(line, range));
  const old = lines.map((line) => oldLines(line, settings));
  const all = [...shown, ...old.flat()];
  const both = settings.smooth > 0 ? [...all, ...measured] : all;
  const aligned = align(both, measured, cells, range);

  const columns: Column[] = [];
  const values: Model['values'] = [];
  const bands: Model['bands'] = [];
  const put = (column: Column, data: (number | null | undefined)[]) => {
    values.push(data);
    return columns.push(column) - 1;
  };
  let at = shown.length;
  lines.forEach((line, i) => {
    for (const _ of old[i]!) put({ label: line.label, colour: grey, kind: 'old', line: i }, aligned.last[at++]!);
  });
  lines.forEach((line, i) => {
    const { label, colour } = line;
    if (aligned.sampled) {
      const high = put({ label, colour, kind: 'high', line: i }, aligned.high[i]!);
      const low = put({ label, colour, kind: 'low', line: i }, aligned.low[i]!);
      bands.push({ high, low, colour: withAlpha(colour, 0.18) });
    } else if (settings.smooth > 0) {
      put({ label, colour: withAlpha(colour, 0.28), kind: 'raw', line: i }, aligned.last[at + i]!);
    }
  });
  lines.forEach((line, i) => {
    put({ label: line.label, colour: line.colour, kind: 'line', line: i }, aligned.last[i]!);
  });
  return { x: aligned.x, columns, values, bands, marks, sampled: aligned.sampled };
}
