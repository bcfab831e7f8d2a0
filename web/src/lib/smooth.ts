// Smoothing that never invents: an exponential mean of the values so far, corrected for its start,
// so that it is between the lowest and highest value seen, has a value only where the series has
// one, and does not depend on how many points were left out by sampling. Pure.

// `weight` 0 leaves the series as it is; towards 1 it gets smoother. `x` is what distance is
// measured in: a gap in x forgets as much as the points that would have been there.
export function smooth(x: Float64Array, y: Float64Array, weight: number): Float64Array {
  if (weight <= 0) return y;
  const out = new Float64Array(y.length);
  const usual = medianGap(x);
  let sum = 0;
  let total = 0;
  let before = NaN;
  for (let i = 0; i < y.length; ++i) {
    const value = y[i]!;
    if (!Number.isFinite(value)) {
      out[i] = value;
      continue;
    }
    const gap = Number.isNaN(before) || usual <= 0 ? 1 : Math.max((x[i]! - before) / usual, 0);
    const decay = weight ** Math.min(gap, 1000);
    sum = sum * decay + value * (1 - weight);
    total = total * decay + (1 - weight);
    out[i] = sum / total;
    before = x[i]!;
  }
  return out;
}

function medianGap(x: Float64Array): number {
  const gaps: number[] = [];
  const stride = Math.max(1, Math.floor(x.length / 500));
  for (let i = stride; i < x.length; i += stride) gaps.push((x[i]! - x[i - stride]!) / stride);
  gaps.sort((a, b) => a - b);
  return gaps[gaps.length >> 1] ?? 0;
}

export function bestSoFar(y: Float64Array, lowest: boolean): Float64Array {
  let best = NaN;
  return y.map((value) => {
    if (Number.isFinite(value) && !(lowest ? value >= best : value <= best)) best = value;
    return best;
  });
}

// The range that shows the bulk of the values: a few outliers do not flatten the rest.
export function safeRange(values: ArrayLike<number>[], cut = 0.01): [number, number] | null {
  const all: number[] = [];
  let points = 0;
  for (const list of values) points += list.length;
  const stride = Math.max(1, Math.floor(points / 20_000));
  for (const list of values) {
    for (let i = 0; i < list.length; i += stride) {
      const value = list[i]!;
      if (value !== null && Number.isFinite(value)) all.push(value);
    }
  }
  if (all.length === 0) return null;
  all.sort((a, b) => a - b);
  const low = all[Math.floor(cut * (all.length - 1))]!;
  const high = all[Math.ceil((1 - cut) * (all.length - 1))]!;
  const lowest = all[0]!;
  const highest = all[all.length - 1]!;
  // Cut only what is far away; a range that grows by less than half keeps everything.
  const span = high - low || Math.abs(high) || 1;
  return [low - lowest > span / 2 ? low : lowest, highest - high > span / 2 ? high : highest];
}
