// A histogram's mass on another grid, as density, each bin spread evenly over its width. Pure.

export function rebin(edges: number[], counts: number[], low: number, high: number, cells: number): number[] {
  const out = new Array<number>(cells).fill(0);
  const width = (high - low) / cells || 1;
  counts.forEach((count, i) => {
    const from = edges[i]!;
    const to = edges[i + 1] ?? from;
    const wide = Math.max(to - from, 1e-300);
    const first = Math.max(0, Math.floor((from - low) / width));
    const last = Math.min(cells - 1, Math.floor((to - low) / width));
    if (first === last || to <= from) {
      out[Math.min(cells - 1, first)]! += count;
      return;
    }
    for (let c = first; c <= last; ++c) {
      const share = Math.min(to, low + (c + 1) * width) - Math.max(from, low + c * width);
      if (share > 0) out[c]! += (count * share) / wide;
    }
  });
  return out;
}
