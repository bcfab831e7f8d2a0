// Two numbers of each run against each other; a third as colour.
import { useMemo, useState } from 'preact/hooks';

import { px } from '../../lib/format';
import { ramp } from '../../lib/palette';
import { go } from '../../state/router';
import type { Run } from '../../state/types';
import { dark } from '../../state/use';
import { dimensions, position, rawValue, ticks } from './axes';
import { fitted, useCanvas } from './canvas';

const kPad = { left: 62, right: 18, top: 14, bottom: 40 };

export function Scatter({ runs, x, y, colour }: { runs: Run[]; x: string; y: string; colour: string }) {
  const [near, setNear] = useState<Run | undefined>(undefined);
  const dims = useMemo(() => dimensions([x, y, colour], runs), [runs, x, y, colour]);
  const place = (run: Run, width: number, height: number) => {
    const a = position(dims[0]!, rawValue(run, x));
    const b = position(dims[1]!, rawValue(run, y));
    if (a === undefined || b === undefined) return undefined;
    return {
      px: kPad.left + a * (width - kPad.left - kPad.right),
      py: height - kPad.bottom - b * (height - kPad.top - kPad.bottom),
    };
  };
  const { box, canvas, size } = useCanvas((ctx, width, height, ink) => {
    ctx.font = '11px system-ui, sans-serif';
    ctx.strokeStyle = ink.line;
    ctx.fillStyle = ink.soft;
    ctx.lineWidth = 0.5;
    let written = -Infinity; // where the last mark's text ends: none overlaps another
    for (const tick of ticks(dims[0]!)) {
      const at = kPad.left + tick.at * (width - kPad.left - kPad.right);
      const half = ctx.measureText(tick.text).width / 2;
      if (at - half < written + 6) continue;
      written = at + half;
      ctx.beginPath();
      ctx.moveTo(at, kPad.top);
      ctx.lineTo(at, height - kPad.bottom);
      ctx.stroke();
      ctx.textAlign = 'center';
      ctx.fillText(tick.text, at, height - kPad.bottom + 15);
    }
    for (const tick of ticks(dims[1]!)) {
      const at = height - kPad.bottom - tick.at * (height - kPad.top - kPad.bottom);
      ctx.beginPath();
      ctx.moveTo(kPad.left, at);
      ctx.lineTo(width - kPad.right, at);
      ctx.stroke();
      ctx.textAlign = 'right';
      ctx.fillText(tick.text, kPad.left - 6, at + 4);
    }
    ctx.font = '600 12px system-ui, sans-serif';
    ctx.fillStyle = ink.ink;
    ctx.textAlign = 'center';
    ctx.fillText(fitted(ctx, dims[0]!.title, width - kPad.left - kPad.right), (kPad.left + width - kPad.right) / 2, height - 6);
    ctx.save();
    ctx.translate(12, (kPad.top + height - kPad.bottom) / 2);
    ctx.rotate(-Math.PI / 2);
    ctx.fillText(fitted(ctx, dims[1]!.title, height - kPad.top - kPad.bottom), 0, 0);
    ctx.restore();
    for (const run of runs) {
      const at = place(run, width, height);
      if (!at) continue;
      ctx.beginPath();
      ctx.arc(at.px, at.py, run === near ? 7 : 4.5, 0, 7);
      ctx.fillStyle = ramp(position(dims[2]!, rawValue(run, colour)) ?? 0, dark.value);
      ctx.globalAlpha = 0.85;
      ctx.fill();
      ctx.globalAlpha = 1;
      ctx.strokeStyle = run === near ? ink.ink : ink.card;
      ctx.lineWidth = run === near ? 2 : 1;
      ctx.stroke();
    }
  }, [runs, dims, near, dark.value]);
  const find = (event: PointerEvent) => {
    const rect = canvas.current!.getBoundingClientRect();
    let best: Run | undefined;
    let away = 14;
    for (const run of runs) {
      const at = place(run, size.width, size.height);
      if (!at) continue;
      const d = Math.hypot(at.px - event.clientX + rect.left, at.py - event.clientY + rect.top);
      if (d < away) [away, best] = [d, run];
    }
    setNear(best);
  };
  return (
    <>
      <div class="canvas-box" ref={box} style={{ height: px(300) }}>
        <canvas ref={canvas} role="img" aria-label={`${dims[1]!.title} over ${dims[0]!.title} of ${runs.length} runs`} onPointerMove={find}
          onPointerLeave={() => setNear(undefined)} onClick={() => near && go(['job', near.id])} />
      </div>
      <div class="dim" style={{ minHeight: px(20) }}>
        {near ? `${near.name}: ${dims.map((dim) => `${dim.title} ${rawValue(near, dim.id) ?? '–'}`).join(' · ')}` : ''}
      </div>
    </>
  );
}
