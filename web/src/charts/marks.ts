// Values that have no place on an axis, where they happened: × is NaN, ▲ and ▼ are infinities;
// thin lines where a new attempt began; and hollow triangles at the edge where the scale leaves
// outliers out.
import type uPlot from 'uplot';

import type { Mark, Model } from './model';

const kMostCut = 200;

export function drawCut(u: uPlot, model: Model): void {
  const { ctx } = u;
  const { left, top, width, height } = u.bbox;
  const { min, max } = u.scales.y!;
  if (min == null || max == null) return;
  const ratio = devicePixelRatio || 1;
  const r = 3 * ratio;
  let drawn = 0;
  ctx.save();
  ctx.lineWidth = ratio;
  model.columns.forEach((column, k) => {
    if (column.kind !== 'line') return;
    ctx.strokeStyle = column.colour;
    let before = -Infinity; // one mark where many would overlap
    model.values[k]!.forEach((value, i) => {
      if (typeof value !== 'number' || (value >= min && value <= max) || drawn >= kMostCut) return;
      const x = u.valToPos(model.x[i]!, 'x', true);
      if (x < left || x > left + width || x - before < 2 * r) return;
      before = x;
      ++drawn;
      const up = value > max;
      const y = up ? top + r : top + height - r;
      ctx.beginPath();
      ctx.moveTo(x - r, up ? y + r : y - r);
      ctx.lineTo(x + r, up ? y + r : y - r);
      ctx.lineTo(x, up ? y - r : y + r);
      ctx.closePath();
      ctx.stroke();
    });
  });
  ctx.restore();
}

export function drawMarks(u: uPlot, marks: Mark[], ink: string): void {
  const { ctx } = u;
  const { left, top, width, height } = u.bbox;
  const ratio = devicePixelRatio || 1;
  const r = 3.5 * ratio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.lineWidth = 1.6 * ratio;
  for (const mark of marks) {
    const x = u.valToPos(mark.x, 'x', true);
    if (x < left || x > left + width) continue;
    ctx.beginPath();
    if (mark.kind === 'attempt') {
      ctx.strokeStyle = ink;
      ctx.lineWidth = ratio;
      ctx.setLineDash([3 * ratio, 3 * ratio]);
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.lineWidth = 1.6 * ratio;
      ctx.fillStyle = ink;
      ctx.font = `${10 * ratio}px system-ui, sans-serif`;
      ctx.fillText(mark.label, x + 3 * ratio, top + 10 * ratio);
      continue;
    }
    const y = mark.kind === 'up' ? top + 2 * r : top + height - 2 * r;
    ctx.strokeStyle = mark.colour;
    ctx.fillStyle = mark.colour;
    if (mark.kind === 'nan') {
      ctx.moveTo(x - r, y - r);
      ctx.lineTo(x + r, y + r);
      ctx.moveTo(x + r, y - r);
      ctx.lineTo(x - r, y + r);
      ctx.stroke();
    } else {
      const d = mark.kind === 'up' ? -r : r;
      ctx.moveTo(x - r, y - d);
      ctx.lineTo(x + r, y - d);
      ctx.lineTo(x, y + d);
      ctx.fill();
    }
  }
  ctx.restore();
}
