// A virtual table: only the rows in view exist. The first column stays in place.
import { useRef } from 'preact/hooks';

import { px } from '../../lib/format';
import { seriesColour } from '../../lib/palette';
import { Icon } from '../../parts/Icon';
import { useVirtual } from '../../parts/virtual';
import { useKeys } from '../../state/keys';
import { colours, pins, toggle } from '../../state/prefs';
import { go, href } from '../../state/router';
import type { Run } from '../../state/types';
import { dark } from '../../state/use';
import { Cell } from './cell';
import { kNameColumn, type ColumnDef } from './columns';

export type Item =
  | { kind: 'run'; run: Run; pinned?: boolean }
  | { kind: 'group'; value: string; count: number; open: boolean; means: Record<string, string> }
  | { kind: 'pending' };

const kRow = 34;
const kHead = 36;
const kSelect = 40;

export interface TableProps {
  count: number;
  item: (index: number) => Item;
  columns: ColumnDef[];
  order: string;
  onOrder: (order: string) => void;
  selected: Set<string>;
  onSelect: (ids: Set<string>) => void;
  current: number;
  onCurrent: (index: number) => void;
  onGroup: (value: string) => void;
}

export function nextColour(id: string): void {
  colours.value = { ...colours.value, [id]: ((colours.value[id] ?? -1) + 1) % 10 };
}

function Head({ columns, order, onOrder, template, wide }: Pick<TableProps, 'columns' | 'order' | 'onOrder'> & { template: string; wide: number }) {
  const [by, way] = [order.replace(/ (ASC|DESC)$/, ''), / DESC$/.test(order) ? 'DESC' : 'ASC'];
  return (
    <div class="grid-head" role="row" style={{ gridTemplateColumns: template, minWidth: px(wide) }}>
      <div class="stick" style={{ left: '0' }} role="columnheader"><span class="hidden">Selected</span></div>
      {[kNameColumn, ...columns].map((column, i) => {
        const on = column.order !== undefined && column.order === by;
        return (
          <div key={column.id} role="columnheader" class={`${column.right ? 'right' : ''} ${i === 0 ? 'stick last' : ''}`}
            style={i === 0 ? { left: px(kSelect) } : undefined} aria-sort={on ? (way === 'ASC' ? 'ascending' : 'descending') : undefined}>
            {column.order ? (
              <button title={column.title} onClick={() => onOrder(`${column.order} ${on && way === 'DESC' ? 'ASC' : on ? 'DESC' : column.kind === 'metric' ? 'ASC' : 'DESC'}`)}>
                <span class="cut">{column.title}</span>
                {on ? <Icon name={way === 'ASC' ? 'up' : 'down'} /> : null}
              </button>
            ) : <span class="cut">{column.title}</span>}
          </div>
        );
      })}
    </div>
  );
}

export function RunTable(props: TableProps) {
  const { columns, selected, current } = props;
  const view = useRef<HTMLDivElement>(null);
  const rows = useVirtual(() => view.current, props.count, kRow, 16);
  const wide = kSelect + kNameColumn.width + columns.reduce((sum, c) => sum + Math.round(c.width), 0);
  const template = `${kSelect}px ${kNameColumn.width}px ${columns.map((c) => `minmax(${Math.round(c.width)}px, 1fr)`).join(' ')}`;
  const move = (by: number) => {
    const to = Math.min(props.count - 1, Math.max(0, current + by));
    props.onCurrent(to);
    const top = to * kRow;
    const element = view.current!;
    if (top < element.scrollTop) element.scrollTop = top;
    if (top + kRow + kHead > element.scrollTop + element.clientHeight) element.scrollTop = top + kRow + kHead - element.clientHeight;
  };
  const at = () => {
    const item = current >= 0 ? props.item(current) : undefined;
    return item?.kind === 'run' ? item.run : undefined;
  };
  const toggleRow = (run: Run, index: number, range: boolean) => {
    const next = new Set(selected);
    const on = !next.has(run.id);
    for (let i = range ? Math.min(current, index) : index; i <= (range ? Math.max(current, index) : index); ++i) {
      const item = i >= 0 ? props.item(i) : undefined;
      if (item?.kind !== 'run') continue;
      if (on) next.add(item.run.id);
      else next.delete(item.run.id);
    }
    props.onSelect(next);
    props.onCurrent(index);
  };
  useKeys([
    { key: 'j', says: 'Next row', act: () => move(1) },
    { key: 'k', says: 'Row before', act: () => move(-1) },
    { key: 'x', says: 'Select the row', act: () => { const run = at(); if (run) toggleRow(run, current, false); } },
    { key: 'p', says: 'Pin the row', act: () => { const run = at(); if (run) toggle(pins, run.id); } },
    { key: 'Enter', says: 'Open the row', act: () => { const run = at(); if (run) go(['job', run.id]); } },
  ]);
  return (
    <div class="grid" ref={view} tabIndex={0} role="grid" aria-rowcount={props.count + 1} aria-label="Jobs and runs">
      <Head columns={columns} order={props.order} onOrder={props.onOrder} template={template} wide={wide} />
      <div class="grid-body" role="rowgroup" style={{ height: px(rows.total), minWidth: px(wide) }}>
        {rows.items.map(({ index, start }) => {
          const item = props.item(index);
          const style = { gridTemplateColumns: template, transform: `translateY(${start}px)` };
          if (item.kind === 'pending') return <div key={index} class="grid-row" style={style} role="row"><div role="gridcell" class="dim">…</div></div>;
          if (item.kind === 'group') {
            return (
              <div key={index} class="grid-row group" style={style} role="row">
                <div class="stick" style={{ left: '0' }} role="gridcell">
                  <button class="pin on" aria-label={`${item.open ? 'Fold' : 'Unfold'} ${item.value}`} aria-expanded={item.open}
                    onClick={() => props.onGroup(item.value)}><Icon name={item.open ? 'down' : 'right'} /></button>
                </div>
                <div class="stick last" style={{ left: px(kSelect) }} role="gridcell"><span>{item.value}</span><span class="dim">{item.count}</span></div>
                {columns.map((column) => (
                  <div key={column.id} role="gridcell" class={column.right ? 'right' : ''}><span class="mono dim">{item.means[column.id]}</span></div>
                ))}
              </div>
            );
          }
          const { run } = item;
          const pinned = pins.value.includes(run.id);
          const colour = colours.value[run.id];
          return (
            <div key={index} style={style} role="row" aria-rowindex={index + 2} aria-selected={selected.has(run.id)}
              class={`grid-row ${index === current ? 'current' : selected.has(run.id) ? 'chosen' : ''}`}
              onClick={() => props.onCurrent(index)}>
              <div class="stick" style={{ left: '0' }} role="gridcell">
                <input type="checkbox" aria-label={`Select ${run.name}`} checked={selected.has(run.id)}
                  onClick={(e) => toggleRow(run, index, e.shiftKey)} />
              </div>
              <div class="stick last" style={{ left: px(kSelect) }} role="gridcell">
                <button class="swatch" title="Change its colour" aria-label={`Change the colour of ${run.name}`}
                  style={{ background: colour === undefined ? 'var(--line-strong)' : seriesColour(colour, dark.value) }}
                  onClick={(e) => { e.stopPropagation(); nextColour(run.id); }} />
                <a class="grow" href={href(['job', run.id])} title={run.name}>{run.name}</a>
                <button class={`pin ${pinned ? 'on' : ''}`} aria-label={`${pinned ? 'Unpin' : 'Pin'} ${run.name}`} aria-pressed={pinned}
                  onClick={(e) => { e.stopPropagation(); toggle(pins, run.id); }}><Icon name="pin" /></button>
              </div>
              {columns.map((column) => (
                <div key={column.id} role="gridcell" class={column.right ? 'right' : ''}><Cell run={run} column={column} /></div>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}
