// Vectors projected to three dimensions by their principal components; drag turns them.
import { useMemo, useRef, useState } from 'preact/hooks';

import { px } from '../../lib/format';
import { kSeriesColours, ramp, seriesColour } from '../../lib/palette';
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

// The position of each vector on a canvas, the nearest last.
function place(points: number[][], turn: { a: number; b: number; flat: boolean }, width: number, height: number) {
  const size = points.reduce((most, p) => Math.max(most, Math.hypot(...p)), 1e-12);
  const scale = (Math.min(width, height) * 0.46) / size;
  const [a, b] = turn.flat ? [0, 0] : [turn.a, turn.b];
  return points.map(([x = 0, y = 0, z = 0], i) => {
    const u = x * Math.cos(a) + z * Math.sin(a);
    const w = -x * Math.sin(a) + z * Math.cos(a);
    const depth = (y * Math.sin(b) + w * Math.cos(b)) / size;
    return { x: width / 2 + u * scale, y: height / 2 - (y * Math.cos(b) - w * Math.sin(b)) * scale, depth, i };
  }).sort((p, q) => p.depth - q.depth);
}

// Few different labels are classes, each with its colour; else the order is shown.
function useColours(labels: string[], count: number): (i: number) => string {
  const kinds = useMemo(() => [...new Set(labels)], [labels]);
  return kinds.length > 1 && kinds.length <= kSeriesColours
    ? (i) => seriesColour(kinds.indexOf(labels[i] ?? ''), dark.value)
    : (i) => ramp(i / Math.max(1, count - 1), dark.value);
}

export function Embedding({ items, name }: { items: MediaItem[]; name: string }) {
  const last = items[items.length - 1];
  const points = useMemo(() => principal(rowsOf(last), 3), [last]);
  const labels = last?.labels ?? [];
  const [turn, setTurn] = useState({ a: 0.5, b: 0.35, flat: false });
  const [find, setFind] = useState('');
  const [under, setUnder] = useState(-1);
  const drag = useRef<{ x: number; y: number } | undefined>(undefined);
  const drawn = useRef<ReturnType<typeof place>>([]);
  const colour = useColours(labels, points.length);
  const marked = find ? labels.findIndex((label) => label.toLowerCase().includes(find.toLowerCase())) : -1;
  const { box, canvas } = useCanvas((ctx, width, height, ink) => {
    drawn.current = place(points, turn, width, height);
    for (const p of drawn.current) {
      ctx.fillStyle = colour(p.i);
      ctx.globalAlpha = marked >= 0 && p.i !== marked ? 0.25 : 0.8;
      ctx.beginPath();
      ctx.arc(p.x, p.y, p.i === marked ? 6 : turn.flat ? 3 : 2.5 + 1.5 * p.depth, 0, 7);
      ctx.fill();
    }
    ctx.globalAlpha = 1;
    const at = drawn.current.find((p) => p.i === (under >= 0 ? under : marked));
    if (!at || !labels[at.i]) return;
    ctx.font = '12px system-ui, sans-serif';
    ctx.fillStyle = ink.soft;
    ctx.textAlign = at.x > width / 2 ? 'right' : 'left';
    ctx.fillText(labels[at.i]!, at.x + (at.x > width / 2 ? -9 : 9), at.y + 4);
  }, [points, turn, dark.value, under, marked]);
  if (!points.length) {
    return <p class="dim">A tensor of shape {last?.shape?.join(' × ') || '–'}: no set of vectors to project.</p>;
  }
  const move = (event: PointerEvent & { currentTarget: HTMLCanvasElement }) => {
    if (!drag.current) {
      const edge = event.currentTarget.getBoundingClientRect();
      const [x, y] = [event.clientX - edge.left, event.clientY - edge.top];
      const near = drawn.current.reduce<{ i: number; far: number }>((best, p) => {
        const far = Math.hypot(p.x - x, p.y - y);
        return far < best.far ? { i: p.i, far } : best;
      }, { i: -1, far: 8 });
      setUnder(near.i);
      return;
    }
    const { x, y } = drag.current;
    drag.current = { x: event.clientX, y: event.clientY };
    setTurn({ ...turn, a: turn.a + (event.clientX - x) / 120, b: turn.b + (event.clientY - y) / 120 });
  };
  const shown = under >= 0 ? under : marked;
  const left = (last?.rows ?? points.length) - points.length;
  return (
    <>
      <div class="canvas-box" ref={box} style={{ height: px(260) }}>
        <canvas ref={canvas} role="img" aria-label={`${points.length} vectors of ${name}, projected`}
          onPointerDown={(e) => { drag.current = { x: e.clientX, y: e.clientY }; e.currentTarget.setPointerCapture(e.pointerId); }}
          onPointerMove={move} onPointerUp={() => (drag.current = undefined)} onPointerLeave={() => setUnder(-1)} />
      </div>
      <div class="row wrap">
        <button class={`button small ${turn.flat ? 'on' : ''}`} aria-pressed={turn.flat} onClick={() => setTurn({ ...turn, flat: true })}>2-D</button>
        <button class={`button small ${turn.flat ? '' : 'on'}`} aria-pressed={!turn.flat} onClick={() => setTurn({ ...turn, flat: false })}>3-D</button>
        {labels.length ? (
          <input type="search" class="grow" placeholder="Find a point" aria-label="Find a point" value={find} onInput={(e) => setFind(e.currentTarget.value)} />
        ) : null}
        <span class="dim" role="status">{shown >= 0 && labels[shown] ? labels[shown] : `${points.length} vectors${left > 0 ? ` of ${last!.rows}` : ''} · step ${last?.step}`}</span>
      </div>
    </>
  );
}
