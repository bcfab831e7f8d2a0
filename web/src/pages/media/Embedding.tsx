// Vectors projected to three dimensions by their principal components; drag turns them.
import { useMemo, useRef, useState } from 'preact/hooks';

import { px } from '../../lib/format';
import { ramp } from '../../lib/palette';
import { principal } from '../../lib/project';
import type { MediaItem } from '../../state/types';
import { dark } from '../../state/use';
import { useCanvas } from '../compare/canvas';

const kMost = 3000;

// The vectors of a tensor: its last dimension is theirs.
function rowsOf(item: MediaItem | undefined): number[][] {
  const wide = item?.shape?.[item.shape.length - 1] ?? 0;
  const values = (item?.values ?? []).map(Number);
  if (wide < 2 || values.length < 3 * wide) return [];
  return Array.from({ length: Math.min(kMost, Math.floor(values.length / wide)) }, (_, i) => values.slice(i * wide, (i + 1) * wide));
}

export function Embedding({ items, name }: { items: MediaItem[]; name: string }) {
  const last = items[items.length - 1];
  const points = useMemo(() => principal(rowsOf(last), 3), [last]);
  const [turn, setTurn] = useState({ a: 0.5, b: 0.35, flat: false });
  const drag = useRef<{ x: number; y: number } | undefined>(undefined);
  const { box, canvas } = useCanvas((ctx, width, height) => {
    const size = Math.max(...points.map((p) => Math.hypot(...p)), 1e-12);
    const scale = (Math.min(width, height) * 0.46) / size;
    const [a, b] = turn.flat ? [0, 0] : [turn.a, turn.b];
    const placed = points.map(([x = 0, y = 0, z = 0], i) => {
      const u = x * Math.cos(a) + z * Math.sin(a);
      const w = -x * Math.sin(a) + z * Math.cos(a);
      return { u, v: y * Math.cos(b) - w * Math.sin(b), depth: y * Math.sin(b) + w * Math.cos(b), i };
    });
    placed.sort((p, q) => p.depth - q.depth);
    for (const p of placed) {
      ctx.fillStyle = ramp(p.i / Math.max(1, points.length - 1), dark.value);
      ctx.globalAlpha = 0.8;
      ctx.beginPath();
      ctx.arc(width / 2 + p.u * scale, height / 2 - p.v * scale, turn.flat ? 3 : 2.5 + (1.5 * p.depth) / size, 0, 7);
      ctx.fill();
    }
  }, [points, turn, dark.value]);
  if (!points.length) {
    return <p class="dim">A tensor of shape {last?.shape?.join(' × ') || '–'}: no set of vectors to project.</p>;
  }
  const move = (event: PointerEvent) => {
    if (!drag.current) return;
    const { x, y } = drag.current;
    drag.current = { x: event.clientX, y: event.clientY };
    setTurn({ ...turn, a: turn.a + (event.clientX - x) / 120, b: turn.b + (event.clientY - y) / 120 });
  };
  return (
    <>
      <div class="canvas-box" ref={box} style={{ height: px(260) }}>
        <canvas ref={canvas} role="img" aria-label={`${points.length} vectors of ${name}, projected`}
          onPointerDown={(e) => { drag.current = { x: e.clientX, y: e.clientY }; e.currentTarget.setPointerCapture(e.pointerId); }}
          onPointerMove={move} onPointerUp={() => (drag.current = undefined)} />
      </div>
      <div class="row">
        <button class={`button small ${turn.flat ? 'on' : ''}`} aria-pressed={turn.flat} onClick={() => setTurn({ ...turn, flat: true })}>2-D</button>
        <button class={`button small ${turn.flat ? '' : 'on'}`} aria-pressed={!turn.flat} onClick={() => setTurn({ ...turn, flat: false })}>3-D</button>
        <span class="dim">{points.length} vectors</span>
      </div>
    </>
  );
}
