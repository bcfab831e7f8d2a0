// The tooltip at the cursor: one row per line, nearest first, written without redrawing the page
// around it.
import type uPlot from 'uplot';

import { localTime, number, utcTime } from '../lib/format';
import type { PlotProps } from './Plot';

const kMostRows = 8;

interface Row {
  label: string;
  colour: string;
  value: number;
  away: number;
}

// The nearest value of a column at or around an index, if there is one close by.
function near(values: (number | null | undefined)[], at: number): number | undefined {
  for (let d = 0; d < 40; ++d) {
    const a = values[at - d];
    if (typeof a === 'number') return a;
    const b = values[at + d];
    if (typeof b === 'number') return b;
  }
  return undefined;
}

function xText(props: PlotProps, x: number): string {
  if (props.settings.axis === 'time') return `${localTime(x * 1000)}  (${utcTime(x * 1000).slice(11)})`;
  if (props.settings.axis === 'relative') return `${number(x)} s`;
  if (props.settings.axis === 'metric') return `${props.settings.xMetric} ${number(x)}`;
  return `step ${props.model.sampled ? `≈ ${Math.round(x)}` : number(x)}`;
}

export function tooltip(element: HTMLElement, latest: () => PlotProps): uPlot.Plugin {
  const line = (className: string, ...children: (string | HTMLElement)[]) => {
    const div = document.createElement('div');
    div.className = className;
    div.append(...children);
    return div;
  };
  return {
    hooks: {
      setCursor: [
        (u) => {
          const { idx, left, top } = u.cursor;
          // Charts in step show their cursors; only the one under the pointer shows its values.
          if (idx == null || left == null || left < 0 || !u.over.matches(':hover')) {
            element.hidden = true;
            return;
          }
          const props = latest();
          const rows: Row[] = [];
          props.model.columns.forEach((column, i) => {
            if (column.kind !== 'line') return;
            const value = near(props.model.values[i]!, idx);
            if (value === undefined) return;
            const away = Math.abs(u.valToPos(value, 'y') - (top ?? 0));
            rows.push({ label: column.label, colour: column.colour, value, away });
          });
          rows.sort((a, b) => a.away - b.away);
          const list = rows.slice(0, kMostRows).map((row, i) => {
            const swatch = line('swatch');
            swatch.style.background = row.colour;
            const name = line('cut', row.label);
            return line(i === 0 && rows.length > 1 ? 'tip-row first' : 'tip-row', swatch, name, line('mono', number(row.value)));
          });
          if (rows.length > kMostRows) list.push(line('dim', `and ${rows.length - kMostRows} more`));
          element.replaceChildren(line('dim', xText(props, u.data[0][idx]!)), ...list);
          element.hidden = false;
          const half = u.over.clientWidth / 2;
          const x = left + u.over.offsetLeft;
          element.style.left = left < half ? `${x + 14}px` : '';
          element.style.right = left < half ? '' : `${u.root.clientWidth - x + 14}px`;
          element.style.top = '6px';
        },
      ],
    },
  };
}
