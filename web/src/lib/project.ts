// Many dimensions seen in two or three: the directions of most variance, by power iteration.
// Pure and deterministic.

export function principal(rows: number[][], directions: number): number[][] {
  const n = rows.length;
  const d = rows[0]?.length ?? 0;
  if (!n || !d) return [];
  const mean = new Array<number>(d).fill(0);
  for (const row of rows) row.forEach((v, i) => (mean[i]! += v / n));
  const centred = rows.map((row) => row.map((v, i) => v - mean[i]!));
  const found: number[][] = [];
  for (let k = 0; k < Math.min(directions, d); ++k) {
    let v = unit(Array.from({ length: d }, (_, i) => Math.sin(1 + i * (k + 1.3))), found);
    for (let turn = 0; turn < 40; ++turn) {
      const next = new Array<number>(d).fill(0);
      for (const row of centred) {
        let dot = 0;
        for (let i = 0; i < d; ++i) dot += row[i]! * v[i]!;
        for (let i = 0; i < d; ++i) next[i]! += dot * row[i]!;
      }
      v = unit(next, found);
    }
    found.push(v);
  }
  return centred.map((row) => found.map((v) => v.reduce((sum, x, i) => sum + x * row[i]!, 0)));
}

// Of length one, and at right angles to those found before.
function unit(v: number[], before: number[][]): number[] {
  const out = [...v];
  for (const other of before) {
    const dot = out.reduce((sum, x, i) => sum + x * other[i]!, 0);
    other.forEach((x, i) => (out[i]! -= dot * x));
  }
  const size = Math.hypot(...out);
  return size > 0 ? out.map((x) => x / size) : out;
}
