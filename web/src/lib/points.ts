// Points of a series as the server samples them: parsing, joining a fresh tail to what is there,
// and cutting into the segments of attempts. Pure.

export interface Series {
  step: Float64Array; // NaN: the point has none
  time: Float64Array; // ms
  value: Float64Array; // NaN and infinities are values
  attempt: Uint16Array;
  abandoned: Uint8Array;
  guessed: Uint8Array; // from the log; all of a series are, or none
}

export interface Steps {
  from?: number;
  to?: number;
}

interface WirePoint {
  step?: number;
  value: number | string;
  time: string;
  attempt?: number;
  abandoned?: boolean;
  guessed?: boolean;
}

const kKeys = ['step', 'time', 'value', 'attempt', 'abandoned', 'guessed'] as const;

export function emptySeries(length = 0): Series {
  return {
    step: new Float64Array(length),
    time: new Float64Array(length),
    value: new Float64Array(length),
    attempt: new Uint16Array(length),
    abandoned: new Uint8Array(length),
    guessed: new Uint8Array(length),
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
    series.guessed[i] = row.guessed ? 1 : 0;
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

function joined(parts: Series[]): Series {
  const out = emptySeries(parts.reduce((sum, part) => sum + part.step.length, 0));
  let at = 0;
  for (const part of parts) {
    for (const key of kKeys) out[key].set(part[key], at);
    at += part.step.length;
  }
  return out;
}

function cut(series: Series, from: number, to?: number): Series {
  const { step, time, value, attempt, abandoned, guessed } = series;
  return {
    step: step.subarray(from, to), time: time.subarray(from, to), value: value.subarray(from, to),
    attempt: attempt.subarray(from, to), abandoned: abandoned.subarray(from, to),
    guessed: guessed.subarray(from, to),
  };
}

// The step from which on it is enough to ask again. None: all of it may be other points next time.
// A client that logs takes the name from what was guessed, and a second point at step 0 shows that
// there are no steps.
export function tailFrom(series: Series): number | undefined {
  const last = lastStep(series);
  return series.guessed[0] === 1 || last === 0 ? undefined : last;
}

// `tail` was asked for from its first step on: it replaces what `old` had there.
export function joinTail(old: Series, tail: Series): Series {
  const from = tail.step[0];
  if (from === undefined) return old;
  let keep = old.step.length;
  while (keep > 0 && old.step[keep - 1]! >= from) --keep;
  return joined([cut(old, 0, keep), tail]);
}

// `part` replaces what is between its first and last step.
export function putIn(whole: Series, part: Series): Series {
  const from = part.step[0];
  const to = lastStep(part);
  if (from === undefined || to === undefined) return whole;
  let first = 0;
  while (first < whole.step.length && !(whole.step[first]! >= from)) ++first;
  let after = first;
  while (after < whole.step.length && whole.step[after]! <= to) ++after;
  return joined([cut(whole, 0, first), part, cut(whole, after)]);
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
  for (const key of kKeys) {
    at.forEach((from, to) => (out[key][to] = series[key][from]!));
  }
  return out;
}

// The steps whose points are between two positions of an axis, and one more on each side, so that
// lines reach the edge. Uses `x` of the points; none if no step is known.
export function stepsUnder(series: Series, x: Float64Array, low: number, high: number): Steps | undefined {
  const inside: number[] = [];
  let before = -1;
  let after = -1;
  for (let i = 0; i < x.length; ++i) {
    if (Number.isNaN(series.step[i]!)) continue;
    if (x[i]! < low) {
      if (before < 0 || x[i]! >= x[before]!) before = i;
    } else if (x[i]! > high) {
      if (after < 0 || x[i]! < x[after]!) after = i;
    } else {
      inside.push(series.step[i]!);
    }
  }
  for (const i of [before, after]) if (i >= 0) inside.push(series.step[i]!);
  if (!inside.length) return undefined;
  return { from: inside.reduce((a, b) => Math.min(a, b)), to: inside.reduce((a, b) => Math.max(a, b)) };
}
