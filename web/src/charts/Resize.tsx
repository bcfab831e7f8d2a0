// The corner of a chart: dragged, or moved by the arrow keys, it changes the chart's size. The width
// goes by columns of the grid, the height is free.
import { useRef } from 'preact/hooks';

import { clampSize, type Size } from '../lib/layout';

const kGap = 12; // of the grid, as in charts.css

export function Resize({ name, size, columns, onSize }: {
  name: string;
  size: Size;
  columns: number;
  onSize: (size: Size, done: boolean) => void;
}) {
  const drag = useRef<{ x: number; y: number; wide: number; size: Size } | undefined>(undefined);
  const at = (event: PointerEvent): Size => {
    const { x, y, wide, size: from } = drag.current!;
    const column = (wide + kGap) / from.span;
    const span = Math.round((wide + kGap + event.clientX - x) / column);
    return clampSize({ span: Math.min(span, columns), height: from.height + event.clientY - y });
  };
  const onKey = (event: KeyboardEvent) => {
    const by: Record<string, Size> = {
      ArrowLeft: { span: -1, height: 0 }, ArrowRight: { span: 1, height: 0 },
      ArrowUp: { span: 0, height: -20 }, ArrowDown: { span: 0, height: 20 },
    };
    const step = by[event.key];
    if (!step) return;
    event.preventDefault();
    onSize(clampSize({ span: Math.min(columns, size.span + step.span), height: size.height + step.height }), true);
  };
  return (
    <button class="resize" aria-label={`Resize ${name}`} title="Drag, or use the arrow keys" onKeyDown={onKey}
      onPointerDown={(e) => {
        const card = e.currentTarget.closest('.chart')!;
        drag.current = { x: e.clientX, y: e.clientY, wide: card.clientWidth, size };
        e.currentTarget.setPointerCapture(e.pointerId);
      }}
      onPointerMove={(e) => drag.current && onSize(at(e), false)}
      onPointerUp={(e) => {
        if (drag.current) onSize(at(e), true);
        drag.current = undefined;
      }}
      onPointerCancel={() => (drag.current = undefined)} />
  );
}
