// A distribution over steps: as ridges one behind the other, or as a map of colours.
import { useMemo, useState } from 'preact/hooks';

import { number, px } from '../../lib/format';
import { ramp } from '../../lib/palette';
import type { MediaItem } from '../../state/types';
import { dark } from '../../state/use';
import { useCanvas } from '../compare/canvas';
import { rebin } from '../../lib/bins';

const kCells = 60;
const kRidges = 24;

export function Histograms({ items, name }: { items: MediaItem[]; name: string }) {
  const [map, setMap] = useState(false);
  const { rows, low, high } = useMemo(() => {
    const good = items.filter((item) => item.edges && item.counts && item.counts.length > 0);
    const stride = Math.max(1, Math.ceil(good.length / (map ? 200 : kRidges)));
    const used = good.filter((_, i) => i % stride === 0 || i === good.length - 1);
    const from = Math.min(...used.map((item) => item.edges![0]!));
    const to = Math.max(...used.map((item) => item.edges![item.edges!.length - 1]!));
    return {
      rows: used.map((item) => ({ step: item.step, cells: rebin(item.edges!, item.counts!, from, to, kCells) })),
      low: from,
      high: to,
    };
  }, [items, map]);
  const { box, canvas } = useCanvas((ctx, width, height, ink) => {
    if (!rows.length) return;
    const most = Math.max(...rows.flatMap((row) => row.cells), 1e-12);
    const left = 8;
    const right = 44;
    const bottom = 20;
    const wide = width - left - right;
    ctx.font = '11px system-ui, sans-serif';
    if (map) {
      const each = (height - bottom - 4) / rows.length;
      rows.forEach((row, i) => row.cells.forEach((value, c) => {
        if (!value) return;
        ctx.fillStyle = ramp(Math.sqrt(value / most), dark.value);
        ctx.fillRect(left + (wide * c) / kCells, 4 + i * each, wide / kCells + 0.5, each + 0.5);
      }));
    } else {
      const lift = Math.min(70, height / 3);
      const gap = (height - bottom - lift) / Math.max(1, rows.length - 1);
      rows.forEach((row, i) => {
        const base = lift + i * gap;
        ctx.beginPath();
        ctx.moveTo(left, base);
        row.cells.forEach((value, c) => ctx.lineTo(left + (wide * (c + 0.5)) / kCells, base - (lift * value) / most));
        ctx.lineTo(left + wide, base);
        ctx.fillStyle = ramp(0.1 + (0.7 * i) / rows.length, dark.value);
        ctx.globalAlpha = 0.75;
        ctx.fill();
        ctx.globalAlpha = 1;
        ctx.strokeStyle = ink.card;
        ctx.lineWidth = 1;
        ctx.stroke();
      });
    }
    ctx.fillStyle = ink.soft;
    ctx.textAlign = 'center';
    for (const t of [0.08, 0.5, 0.92]) ctx.fillText(number(low + t * (high - low)), left + t * wide, height - 5);
    ctx.textAlign = 'left';
    ctx.fillText(String(rows[0]!.step), left + wide + 6, map ? 14 : Math.min(70, height / 3));
    ctx.fillText(String(rows[rows.length - 1]!.step), left + wide + 6, height - bottom);
  }, [rows, map, dark.value]);
  return (
    <>
      <div class="canvas-box" ref={box} style={{ height: px(220) }}>
        <canvas ref={canvas} role="img" aria-label={`Distribution of ${name} over ${items.length} steps, from ${number(low)} to ${number(high)}`} />
      </div>
      <div class="row">
        <button class={`button small ${map ? '' : 'on'}`} aria-pressed={!map} onClick={() => setMap(false)}>Ridges</button>
        <button class={`button small ${map ? 'on' : ''}`} aria-pressed={map} onClick={() => setMap(true)}>Map</button>
      </div>
    </>
  );
}
