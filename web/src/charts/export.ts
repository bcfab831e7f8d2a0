// A chart as a file: PNG of what is on screen, SVG drawn again from the same columns, CSV of its
// points.
import { csv } from '../lib/csv';
import { xOf } from '../lib/points';
import { axisText } from './Plot';
import type { ChartLine, Model } from './model';

export function saveFile(name: string, content: BlobPart, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name.replace(/[^\w.-]+/g, '_');
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function savePng(title: string, canvas: HTMLCanvasElement, lines: ChartLine[]): void {
  const style = getComputedStyle(document.documentElement);
  const ratio = devicePixelRatio || 1;
  const head = 26 * ratio;
  const foot = (lines.length > 1 ? 18 * Math.min(lines.length, 10) + 8 : 0) * ratio;
  const out = document.createElement('canvas');
  out.width = canvas.width;
  out.height = canvas.height + head + foot;
  const ctx = out.getContext('2d')!;
  ctx.fillStyle = style.getPropertyValue('--card');
  ctx.fillRect(0, 0, out.width, out.height);
  ctx.fillStyle = style.getPropertyValue('--ink');
  ctx.font = `600 ${13 * ratio}px system-ui, sans-serif`;
  ctx.fillText(title, 10 * ratio, 18 * ratio);
  ctx.drawImage(canvas, 0, head);
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  lines.slice(0, foot ? 10 : 0).forEach((line, i) => {
    const y = head + canvas.height + (18 * i + 6) * ratio;
    ctx.fillStyle = line.colour;
    ctx.fillRect(12 * ratio, y, 10 * ratio, 10 * ratio);
    ctx.fillStyle = style.getPropertyValue('--ink-2');
    ctx.fillText(line.label, 28 * ratio, y + 9 * ratio);
  });
  out.toBlob((blob) => blob && saveFile(`${title}.png`, blob, 'image/png'));
}

const escape = (text: string) =>
  text.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]!);

export function chartSvg(title: string, model: Model, lines: ChartLine[], logY: boolean): string {
  const [w, h, left, top, bottom] = [800, 420, 64, 34, 40];
  const scale = (v: number) => (logY ? Math.log10(v) : v);
  const flat = model.values.flatMap((column) => column.filter((v): v is number => typeof v === 'number')).map(scale);
  const low = flat.reduce((a, b) => Math.min(a, b), Infinity);
  const high = flat.reduce((a, b) => Math.max(a, b), -Infinity);
  const first = model.x[0] ?? 0;
  const last = model.x[model.x.length - 1] ?? 1;
  const px = (x: number) => (left + ((w - left - 16) * (x - first)) / (last - first || 1)).toFixed(1);
  const py = (y: number) => (h - bottom - ((h - top - bottom) * (scale(y) - low)) / (high - low || 1)).toFixed(1);
  const paths = model.columns.flatMap((column, i) => {
    if (column.kind === 'low' || column.kind === 'high') return [];
    let path = '';
    let gap = true;
    model.values[i]!.forEach((y, k) => {
      if (y === undefined) return;
      if (y === null) {
        gap = true;
        return;
      }
      path += `${gap ? 'M' : 'L'}${px(model.x[k]!)} ${py(y)}`;
      gap = false;
    });
    return [`<path d="${path}" fill="none" stroke="${column.colour}" stroke-width="1.6"/>`];
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((t) => {
    const value = low + t * (high - low);
    const y = h - bottom - t * (h - top - bottom);
    const text = axisText(logY ? 10 ** value : value);
    const x = first + t * (last - first);
    return `<path d="M${left} ${y}H${w - 16}" stroke="#ddd"/><text x="${left - 6}" y="${y + 4}" text-anchor="end">${text}</text>` +
      `<text x="${px(x)}" y="${h - bottom + 18}" text-anchor="middle">${axisText(x)}</text>`;
  });
  const names = lines.map((line, i) =>
    `<text x="${w - 20}" y="${top + 14 + 15 * i}" text-anchor="end" fill="${line.colour}">${escape(line.label)}</text>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${w} ${h}" font-family="sans-serif" font-size="11">` +
    `<rect width="${w}" height="${h}" fill="#fff"/><text x="12" y="20" font-size="14" font-weight="600">${escape(title)}</text>` +
    `${ticks.join('')}${paths.join('')}${names.join('')}</svg>`;
}

export function chartCsv(metric: string, lines: ChartLine[]): string {
  const rows: (string | number)[][] = [['run', 'metric', 'step', 'time', 'value', 'attempt']];
  for (const line of lines) {
    const { series } = line;
    const time = xOf(series, 'time');
    series.value.forEach((value, i) => {
      const step = series.step[i]!;
      rows.push([line.label, metric, Number.isNaN(step) ? '' : step, new Date(time[i]! * 1000).toISOString(), value,
        series.attempt[i]!]);
    });
  }
  return csv(rows);
}
