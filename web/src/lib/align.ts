// uPlot draws columns over one x: this brings series of different x together. Few points are joined
// exactly; many are put into a grid of pixels, each with its lowest, highest and last value, so
// that a chart costs the same for any number of points. Pure.

export interface Line {
  x: Float64Array; // rising
  y: Float64Array;
}

export interface Aligned {
  x: Float64Array;
  last: (number | null | undefined)[][]; // per line; undefined: this line has no point here
  low: (number | null | undefined)[][];
  high: (number | null | undefined)[][];
  sampled: boolean;
}

const kExact = 2500; // different x that are cheap enough to be joined as they are

export function align(lines: Line[], bands: Line[], cells: number, range?: [number, number]): Aligned {
  const total = new Set<number>();
  for (const line of lines) {
    for (const x of line.x) {
      if (total.size > kExact) break;
      total.add(x);
    }
  }
  return total.size <= kExact ? exact(lines, total) : grid(lines, bands, cells, range);
}

function exact(lines: Line[], all: Set<number>): Aligned {
  const x = Float64Array.from(all).sort();
  const at = new Map<number, number>();
  x.forEach((value, i) => at.set(value, i));
  const last = lines.map((line) => {
    const column = new Array<number | null | undefined>(x.length).fill(undefined);
    line.x.forEach((value, i) => {
      const y = line.y[i]!;
      column[at.get(value)!] = Number.isFinite(y) ? y : null;
    });
    return column;
  });
  return { x, last, low: [], high: [], sampled: false };
}

// `bands` are the lines as measured, where `lines` are smoothed: the band shows the truth.
function grid(lines: Line[], bands: Line[], cells: number, range?: [number, number]): Aligned {
  let low = Infinity;
  let high = -Infinity;
  for (const line of lines) {
    if (line.x.length === 0) continue;
    low = Math.min(low, line.x[0]!);
    high = Math.max(high, line.x[line.x.length - 1]!);
  }
  if (range) [low, high] = range;
  const width = (high - low) / cells || 1;
  const x = Float64Array.from({ length: cells }, (_, i) => low + (i + 0.5) * width);
  const column = () => new Array<number | null | undefined>(cells).fill(undefined);
  const cell = (value: number) => Math.min(cells - 1, Math.max(0, Math.floor((value - low) / width)));
  const last = lines.map((line) => {
    const out = column();
    line.x.forEach((value, i) => {
      if (value < low || value > high) return;
      const y = line.y[i]!;
      if (Number.isFinite(y)) out[cell(value)] = y;
    });
    return out;
  });
  const lowest = bands.map(column);
  const highest = bands.map(column);
  bands.forEach((line, k) => {
    line.x.forEach((value, i) => {
      const y = line.y[i]!;
      if (value < low || value > high || !Number.isFinite(y)) return;
      const c = cell(value);
      lowest[k]![c] = Math.min(lowest[k]![c] ?? Infinity, y);
      highest[k]![c] = Math.max(highest[k]![c] ?? -Infinity, y);
    });
  });
  return { x, last, low: lowest, high: highest, sampled: true };
}
