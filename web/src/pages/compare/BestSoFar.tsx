// The best value of a metric after each run, in the order they started: whether a search still
// gains.
import { useMemo } from 'preact/hooks';

import { number, px } from '../../lib/format';
import { bestSoFar } from '../../lib/smooth';
import { evenTicks } from '../../lib/ticks';
import type { Run } from '../../state/types';
import { dark } from '../../state/use';
import { useCanvas } from './canvas';

export function BestSoFar({ runs, metric, lowest }: { runs: Run[]; metric: string; lowest: boolean }) {
  const values = useMemo(() => {
    const sorted = [...runs].sort((a, b) => Date.parse(a.created) - Date.parse(b.created));
    return Float64Array.from(sorted, (run) => Number(run.metrics[metric]?.last ?? NaN));
  }, [runs, metric]);
  const best = useMemo(() => bestSoFar(values, lowest), [values, lowest]);
  const { box, canvas } = useCanvas((ctx, width, height, ink) => {
    const finite = [...values].filter(Number.isFinite);
    if (!finite.length) return;
    const low = Math.min(...finite);
    const high = Math.max(...finite);
    const x = (i: number) => 56 + (i * (width - 72)) / Math.max(1, values.length - 1);
    const y = (v: number) => height - 24 - ((v - low) / (high - low || 1)) * (height - 40);
    ctx.font = '11px system-ui, sans-serif';
    ctx.fillStyle = ink.soft;
    ctx.textAlign = 'right';
    for (const v of low === high ? [low] : evenTicks(low, high)) ctx.fillText(number(v), 48, y(v) + 4);
    ctx.textAlign = 'center';
    ctx.fillText('run 1', x(0), height - 6);
    ctx.fillText(String(values.length), x(values.length - 1), height - 6);
    ctx.globalAlpha = 0.5;
    values.forEach((v, i) => {
      if (!Number.isFinite(v)) return;
      ctx.beginPath();
      ctx.arc(x(i), y(v), 3, 0, 7);
      ctx.fill();
    });
    ctx.globalAlpha = 1;
    ctx.strokeStyle = ink.accent;
    ctx.lineWidth = 2;
    ctx.beginPath();
    let before = NaN;
    best.forEach((v, i) => {
      if (Number.isNaN(v)) return;
      if (Number.isNaN(before)) ctx.moveTo(x(i), y(v));
      else {
        ctx.lineTo(x(i), y(before));
        ctx.lineTo(x(i), y(v));
      }
      before = v;
    });
    ctx.stroke();
  }, [values, best, dark.value]);
  const last = best[best.length - 1];
  return (
    <div class="canvas-box" ref={box} style={{ height: px(220) }}>
      <canvas ref={canvas} role="img" aria-label={`Best ${metric} so far: ${number(last)}`} />
    </div>
  );
}
