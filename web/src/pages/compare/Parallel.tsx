// Parallel coordinates: a line for each run over its parameters to its metric. Drag along an axis
// to keep only the runs that pass there; click it to let all through again.
import { useMemo, useRef, useState } from 'preact/hooks';

import { px } from '../../lib/format';
import { ramp } from '../../lib/palette';
import type { Run } from '../../state/types';
import { dark } from '../../state/use';
import { dimensions, position, rawValue, ticks, type Dimension } from './axes';
import { fitted, useCanvas, type Draw } from './canvas';

const kTop = 34;
const kBottom = 16;
const kSide = 60;
const kLeastGap = 92; // between two axes; a narrow screen scrolls
export type Brushes = Record<string, [number, number]>;

export function passes(run: Run, dims: Dimension[], brushes: Brushes): boolean {
  return dims.every((dim) => {
    const brush = brushes[dim.id];
    if (!brush) return true;
    const at = position(dim, rawValue(run, dim.id));
    return at !== undefined && at >= brush[0] && at <= brush[1];
  });
}

function drawing(runs: Run[], dims: Dimension[], brushes: Brushes, near: string | undefined): Draw {
  return (ctx, width, height, ink) => {
    const x = (i: number) => kSide + (i * (width - 2 * kSide)) / Math.max(1, dims.length - 1);
    const y = (t: number) => height - kBottom - t * (height - kTop - kBottom);
    const colourDim = dims[dims.length - 1]!;
    const line = (run: Run) => {
      ctx.beginPath();
      let gap = true;
      dims.forEach((dim, i) => {
        const at = position(dim, rawValue(run, dim.id));
        if (at === undefined) {
          gap = true;
          return;
        }
        if (gap) ctx.moveTo(x(i), y(at));
        else {
          const before = x(i - 1) + (x(i) - x(i - 1)) / 2;
          const from = position(dims[i - 1]!, rawValue(run, dims[i - 1]!.id))!;
          ctx.bezierCurveTo(before, y(from), before, y(at), x(i), y(at));
        }
        gap = false;
      });
      ctx.stroke();
    };
    ctx.lineWidth = 1;
    ctx.strokeStyle = ink.line;
    ctx.globalAlpha = 0.25;
    const inside = runs.filter((run) => {
      const on = passes(run, dims, brushes);
      if (!on) line(run);
      return on;
    });
    ctx.globalAlpha = inside.length > 300 ? 0.35 : 0.8;
    ctx.lineWidth = 1.4;
    for (const run of inside) {
      ctx.strokeStyle = ramp(position(colourDim, rawValue(run, colourDim.id)) ?? 0, dark.value);
      line(run);
    }
    const pointed = runs.find((run) => run.id === near);
    ctx.globalAlpha = 1;
    if (pointed) {
      ctx.lineWidth = 3;
      ctx.strokeStyle = ink.ink;
      line(pointed);
    }
    const room = dims.length > 1 ? x(1) - x(0) - 8 : width;
    dims.forEach((dim, i) => axis(ctx, dim, x(i), y, ink, brushes[dim.id], room));
  };
}

function axis(ctx: CanvasRenderingContext2D, dim: Dimension, x: number, y: (t: number) => number,
  ink: { ink: string; soft: string; line: string; card: string; accent: string }, brush: [number, number] | undefined, room: number): void {
  ctx.strokeStyle = ink.line;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(x, y(0));
  ctx.lineTo(x, y(1));
  ctx.stroke();
  ctx.textAlign = 'center';
  ctx.font = '600 12px system-ui, sans-serif';
  ctx.fillStyle = ink.ink;
  ctx.fillText(fitted(ctx, dim.title, room), x, 16);
  ctx.font = '11px system-ui, sans-serif';
  for (const tick of ticks(dim)) {
    const wide = ctx.measureText(tick.text).width;
    ctx.globalAlpha = 0.8;
    ctx.fillStyle = ink.card;
    ctx.fillRect(x + 4, y(tick.at) - 7, wide + 4, 14);
    ctx.globalAlpha = 1;
    ctx.fillStyle = ink.soft;
    ctx.textAlign = 'left';
    ctx.fillText(tick.text, x + 6, y(tick.at) + 4);
  }
  if (brush) {
    ctx.fillStyle = ink.accent;
    ctx.globalAlpha = 0.35;
    ctx.fillRect(x - 6, y(brush[1]), 12, y(brush[0]) - y(brush[1]));
    ctx.globalAlpha = 1;
  }
}

export function Parallel({ runs, ids, brushes, onBrush }: {
  runs: Run[];
  ids: string[];
  brushes: Brushes;
  onBrush: (brushes: Brushes) => void;
}) {
  const [near, setNear] = useState<string | undefined>(undefined);
  const dims = useMemo(() => dimensions(ids, runs), [ids.join('\n'), runs]);
  const { box, canvas, size } = useCanvas(drawing(runs, dims, brushes, near), [runs, dims, brushes, near, dark.value]);
  const drag = useRef<{ dim: Dimension; from: number } | undefined>(undefined);
  const place = (event: PointerEvent) => {
    const rect = canvas.current!.getBoundingClientRect();
    const gap = (size.width - 2 * kSide) / Math.max(1, dims.length - 1);
    const at = (event.clientX - rect.left - kSide) / gap;
    const i = Math.round(at);
    const t = 1 - (event.clientY - rect.top - kTop) / (size.height - kTop - kBottom);
    return { at, t: Math.min(1, Math.max(0, t)), dim: Math.abs(at - i) * gap < 24 ? dims[i] : undefined };
  };
  const down = (event: PointerEvent) => {
    const { dim, t } = place(event);
    if (!dim) return;
    canvas.current!.setPointerCapture(event.pointerId);
    drag.current = { dim, from: t };
  };
  const move = (event: PointerEvent) => {
    const { dim, t, at } = place(event);
    if (drag.current) {
      const { from } = drag.current;
      onBrush({ ...brushes, [drag.current.dim.id]: [Math.min(from, t), Math.max(from, t)] });
      return;
    }
    canvas.current!.style.cursor = dim ? 'ns-resize' : 'default';
    setNear(nearest(runs, dims, at, t));
  };
  const up = (event: PointerEvent) => {
    const now = drag.current;
    drag.current = undefined;
    if (!now || Math.abs(place(event).t - now.from) > 0.01) return;
    const { [now.dim.id]: _, ...rest } = brushes;
    onBrush(rest);
  };
  const name = runs.find((run) => run.id === near)?.name;
  return (
    <>
      <div class="scroll" tabIndex={0}>
      <div class="canvas-box" ref={box} style={{ height: px(320), minWidth: px(2 * kSide + kLeastGap * (dims.length - 1)) }}>
        <canvas ref={canvas} role="img" aria-label={`Parallel coordinates of ${runs.length} runs over ${dims.map((d) => d.title).join(', ')}`}
          onPointerDown={down} onPointerMove={move} onPointerUp={up} onPointerLeave={() => setNear(undefined)} />
      </div>
      </div>
      <div class="dim" style={{ minHeight: px(20) }}>{name ?? 'Drag along an axis to choose; click it to undo.'}</div>
    </>
  );
}

function nearest(runs: Run[], dims: Dimension[], at: number, t: number): string | undefined {
  const i = Math.min(dims.length - 2, Math.max(0, Math.floor(at)));
  const part = Math.min(1, Math.max(0, at - i));
  let best: string | undefined;
  let away = 0.03;
  for (const run of runs) {
    const a = dims[i] && position(dims[i]!, rawValue(run, dims[i]!.id));
    const b = dims[i + 1] && position(dims[i + 1]!, rawValue(run, dims[i + 1]!.id));
    if (a === undefined || b === undefined) continue;
    // The curve between two axes is a cubic with flat ends.
    const s = part * part * (3 - 2 * part);
    const distance = Math.abs(a + (b - a) * s - t);
    if (distance < away) [away, best] = [distance, run.id];
  }
  return best;
}
