// Precision over recall at a step, with earlier steps faint behind it.
import { useState } from 'preact/hooks';

import { px } from '../../lib/format';
import type { MediaItem } from '../../state/types';
import { dark } from '../../state/use';
import { useCanvas } from '../compare/canvas';

export function PrCurves({ items, name }: { items: MediaItem[]; name: string }) {
  const [chosen, setChosen] = useState<number | undefined>(undefined);
  const at = Math.min(chosen ?? items.length - 1, items.length - 1);
  const { box, canvas } = useCanvas((ctx, width, height, ink) => {
    const x = (v: number) => 36 + v * (width - 48);
    const y = (v: number) => height - 24 - v * (height - 36);
    ctx.font = '11px system-ui, sans-serif';
    ctx.fillStyle = ink.soft;
    ctx.strokeStyle = ink.line;
    ctx.lineWidth = 0.5;
    for (const t of [0, 0.5, 1]) {
      ctx.strokeRect(x(0), y(1), x(t) - x(0), y(0) - y(1));
      ctx.textAlign = 'right';
      ctx.fillText(String(t), 30, y(t) + 4);
      ctx.textAlign = 'center';
      ctx.fillText(String(t), x(t), height - 8);
    }
    const line = (item: MediaItem) => {
      ctx.beginPath();
      item.recall?.forEach((r, i) => ctx.lineTo(x(r), y(item.precision?.[i] ?? 0)));
      ctx.stroke();
    };
    ctx.strokeStyle = ink.accent;
    ctx.globalAlpha = 0.18;
    ctx.lineWidth = 1;
    items.slice(0, at).slice(-12).forEach(line);
    ctx.globalAlpha = 1;
    ctx.lineWidth = 2;
    if (items[at]) line(items[at]!);
  }, [items, at, dark.value]);
  return (
    <>
      <div class="canvas-box" ref={box} style={{ height: px(220) }}>
        <canvas ref={canvas} role="img" aria-label={`Precision over recall of ${name} at step ${items[at]?.step}`} />
      </div>
      <div class="row">
        <input class="grow" type="range" min="0" max={Math.max(0, items.length - 1)} value={at} aria-label={`Step of ${name}`}
          onInput={(e) => setChosen(Number(e.currentTarget.value))} />
        <span class="num dim">step {items[at]?.step}</span>
      </div>
    </>
  );
}
