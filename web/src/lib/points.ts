// Points of a series as the server samples them: parsing, joining a fresh tail to what is there,
// and cutting into the segments of attempts. Pure.

export interface Series {
  step: Float64Array; // NaN: the point has none
  time: Float64Array; // ms
  value: Float64Array; // NaN and infinities are values
  attempt: Uint16Array;
  abandoned: Uint8Array;
}

interface WirePoint {
  step?: number;
  value: number | string;
  time: string;
  attempt?: number;
  abandoned?: boolean;
}

export function emptySeries(length = 0): Series {
  return {
    step: new Float64Array(length),
    time: new Float64Array(length),
    value: new Float64Array(length),
    attempt: new Uint16Array(length),
    abandoned: new Uint8Array(length),
  };
}

// One JSON object a line. One parse of all lines is several times quicker than one for each.
export function parsePoints(ndjson: string): Series {
  const text = ndjson.trimEnd();
  const rows = (text ? JSON.parse(`[${text.replace(/\n/g, ',')}]`) : []) as WirePoint[];
  const series = emptySeries(rows.length);
  rows.forEach((row, i) => {
    series.step[i] = row.step ?? NaN;
    series.time[i] = Date.parse(row.time);
    series.value[i] = Number(row.value);
    series.attempt[i] = row.attempt ?? 1;
    series.abandoned[i] = row.abandoned ? 1 : 0;
  });
  return series;
}

export function lastStep(series: Series): number | undefined {
  for (let i = series.step.length - 1; i >= 0; --i) {
    const step = series.step[i]!;
    if (!Number.isNaN(step)) return step;
  }
  return undefined;
}

// `tail` was asked for from its first step on: it replaces what `old` had there.
export function joinTail(old: Series, tail: Series): Series {
  const from = tail.step[0];
  if (from === undefined) return old;
  let keep = old.step.length;
  while (keep > 0 && old.step[keep - 1]! >= from) --keep;
  const joined = emptySeries(keep + tail.step.length);
  for (const key of ['step', 'time', 'value', 'attempt', 'abandoned'] as const) {
    joined[key].set(old[key].subarray(0, keep));
    joined[key].set(tail[key], keep);
  }
  return joined;
}

export type XAxis = 'step' | 'time' | 'relative';

// The x of each point; the position where there is no step.
export function xOf(series: Series, axis: XAxis): Float64Array {
  const n = series.step.length;
  const x = new Float64Array(n);
  const first = series.time[0] ?? 0;
  for (let i = 0; i < n; ++i) {
    const step = series.step[i]!;
    if (axis === 'step') x[i] = Number.isNaN(step) ? i : step;
    else x[i] = ((axis === 'time' ? 0 : -first) + series.time[i]!) / 1000;
  }
  return x;
}

// y of one series over the values of another at the same step.
export function overMetric(y: Series, x: Series): { x: Float64Array; y: Float64Array } {
  const at = new Map<number, number>();
  x.step.forEach((step, i) => at.set(step, x.value[i]!));
  const pairs: [number, number][] = [];
  y.step.forEach((step, i) => {
    const other = at.get(step);
    if (other !== undefined && Number.isFinite(other)) pairs.push([other, y.value[i]!]);
  });
  pairs.sort((a, b) => a[0] - b[0]);
  return { x: Float64Array.from(pairs, (p) => p[0]), y: Float64Array.from(pairs, (p) => p[1]) };
}

export function pick(series: Series, wanted: (i: number) => boolean): Series {
  const at: number[] = [];
  for (let i = 0; i < series.step.length; ++i) if (wanted(i)) at.push(i);
  const out = emptySeries(at.length);
  for (const key of ['step', 'time', 'value', 'attempt', 'abandoned'] as const) {
    at.forEach((from, to) => (out[key][to] = series[key][from]!));
  }
  return out;
}
