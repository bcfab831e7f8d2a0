// Where an axis is marked: at round numbers, never at a share of what was measured. The chart
// library's own marks on a log axis assume a scale that begins at a power of ten: on any other
// they never come to an end. Pure.

const kMost = 12;

// Marks between two positive numbers, ascending, at most `kMost`; none where there is no range.
export function logTicks(min: number, max: number): number[] {
  if (!(min > 0) || !(max > min) || !Number.isFinite(max)) return [];
  const decades = Math.log10(max) - Math.log10(min); // their quotient may be too large for a number
  if (decades < 1) return evenTicks(min, max);
  const digits = decades < 3 ? [1, 2, 5] : [1];
  const stride = Math.max(1, Math.ceil(decades / (kMost - 2)));
  const out: number[] = [];
  for (let exponent = Math.floor(Math.log10(min)); exponent <= Math.log10(max); exponent += stride) {
    for (const digit of digits) {
      const tick = Number(`${digit}e${exponent}`);
      if (tick >= min && tick <= max) out.push(tick);
    }
  }
  return out;
}

// Steps of 1, 2 or 5 times a power of ten: about five of them.
export function evenTicks(min: number, max: number): number[] {
  if (!(max > min) || !Number.isFinite(max - min)) return [];
  const rough = (max - min) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * (rough / power < 1.5 ? 1 : rough / power < 3.5 ? 2 : rough / power < 7.5 ? 5 : 10);
  const out: number[] = [];
  for (let i = Math.ceil(min / step); i * step <= max && out.length < kMost; ++i) {
    out.push(Number((i * step).toPrecision(12)));
  }
  return out;
}
