// One axis of parallel coordinates or a scatter: numbers on a linear or log scale, or words side
// by side. Pure.
import { number } from '../../lib/format';
import { evenTicks, logTicks } from '../../lib/ticks';
import type { Run } from '../../state/types';

export interface Dimension {
  id: string; // m:loss or p:lr
  title: string;
  words?: string[]; // of a dimension that is not all numbers
  log: boolean;
  low: number;
  high: number;
}

// Axes next to each other; distinguishes a metric and a parameter of the same name.
export function dimensions(ids: string[], runs: Run[]): Dimension[] {
  return ids.map((id) => {
    const other = `${id[0] === 'm' ? 'p' : 'm'}${id.slice(1)}`;
    const dim = dimension(id, runs);
    return ids.includes(other) ? { ...dim, title: `${dim.title} (${id[0] === 'm' ? 'metric' : 'parameter'})` } : dim;
  });
}

export function rawValue(run: Run, id: string): string | undefined {
  const name = id.slice(2);
  const value = id[0] === 'm' ? run.metrics[name]?.last : run.params[name];
  return value === undefined ? undefined : String(value);
}

export function dimension(id: string, runs: Run[]): Dimension {
  const values = runs.map((run) => rawValue(run, id)).filter((one): one is string => one !== undefined);
  const numbers = values.map(Number);
  const title = id.slice(2);
  if (values.length && numbers.every((n, i) => !Number.isNaN(n) || values[i] === 'NaN')) {
    const finite = numbers.filter(Number.isFinite);
    const low = Math.min(...finite);
    const high = Math.max(...finite);
    // Rates and sizes that span orders of magnitude are read on a log scale.
    const log = low > 0 && high / low >= 50;
    return { id, title, log, low, high };
  }
  const words = [...new Set(values)].sort();
  return { id, title, words, log: false, low: 0, high: Math.max(1, words.length - 1) };
}

// 0 at the bottom, 1 at the top; undefined without a value.
export function position(dim: Dimension, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = dim.words ? dim.words.indexOf(text) : Number(text);
  if (!Number.isFinite(value)) return undefined;
  const scale = (n: number) => (dim.log ? Math.log(n) : n);
  const span = scale(dim.high) - scale(dim.low);
  return span > 0 ? (scale(value) - scale(dim.low)) / span : 0.5;
}

export function ticks(dim: Dimension): { at: number; text: string }[] {
  if (dim.words) {
    const { words } = dim;
    return words.slice(0, 12).map((text, i) => ({ at: words.length > 1 ? i / (words.length - 1) : 0.5, text }));
  }
  if (!Number.isFinite(dim.low)) return [];
  if (dim.low === dim.high) return [{ at: 0.5, text: number(dim.low) }];
  const marks = (dim.log ? logTicks : evenTicks)(dim.low, dim.high);
  return marks.map((value) => ({ at: position(dim, String(value))!, text: number(value) }));
}

// Parameters that differ between the runs, those with most values first.
export function varying(runs: Run[]): string[] {
  const seen = new Map<string, Set<string>>();
  for (const run of runs) {
    for (const [name, value] of Object.entries(run.params)) {
      const set = seen.get(name) ?? new Set();
      seen.set(name, set.add(value));
    }
  }
  return [...seen].filter(([, set]) => set.size > 1).sort((a, b) => b[1].size - a[1].size).map(([name]) => name);
}

export function metricsOf(runs: Run[]): string[] {
  const seen = new Map<string, number>();
  for (const run of runs) for (const name of Object.keys(run.metrics)) seen.set(name, (seen.get(name) ?? 0) + 1);
  return [...seen].filter(([name]) => !/^system[/.]/.test(name)).sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).map(([name]) => name);
}
