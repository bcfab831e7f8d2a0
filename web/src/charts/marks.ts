// Values that have no place on an axis, where they happened: × is NaN, ▲ and ▼ are infinities;
// and thin lines where a new attempt began.
import type uPlot from 'uplot';

import type { Mark } from './model';

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
