// A virtual table: only the rows in view exist. The first column stays in place.
import { useCallback, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { px } from '../../lib/format';
import { Icon } from '../../parts/Icon';
import { useVirtual } from '../../parts/virtual';
import { useKeys } from '../../state/keys';
import { colours, pins, toggle } from '../../state/prefs';
import { go, keepPlace, keptPlace } from '../../state/router';
import type { Run } from '../../state/types';
import { dark, useSize } from '../../state/use';
import { stateOf, titleOf } from './cell';
import { kNameColumn, type ColumnDef } from './columns';
import { Row, type Item, type RowActs } from './Row';

const kRow = 34;
const kHead = 36;
const kSelect = 30; // of the name's column: the box to tick
const kAround = 8; // rows kept ready on either side of the view

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
  onPinned: (id: string) => void; // or unpinned
}

export function nextColour(id: string): void {
  colours.value = { ...colours.value, [id]: ((colours.value[id] ?? -1) + 1) % 10 };
}

function Head({ columns, order, onOrder }: Pick<TableProps, 'columns' | 'order' | 'onOrder'>) {
  const [by, way] = [order.replace(/ (ASC|DESC)$/, ''), / DESC$/.test(order) ? 'DESC' : 'ASC'];
  return (
    <div class="grid-head" role="row">
      {[kNameColumn, ...columns].map((column, i) => {
        const on = column.order !== undefined && column.order === by;
        return (
          <div key={column.id} role="columnheader" class={i === 0 ? 'stick' : column.right ? 'right' : ''}
            aria-sort={on ? (way === 'ASC' ? 'ascending' : 'descending') : undefined}>
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
  const [sized, size] = useSize<HTMLDivElement>();
  const [under, setUnder] = useState(-1);
  const [slid, setSlid] = useState(false);
  const rows = useVirtual(() => view.current, props.count, kRow, kAround);
  const mounted = useCallback((element: HTMLDivElement | null) => {
    view.current = element;
    sized(element);
  }, []);
  const first = kSelect + kNameColumn.width;
  const wide = first + columns.reduce((sum, c) => sum + Math.round(c.width), 0);
  const template = `${first}px ${columns.map((c) => `minmax(${Math.round(c.width)}px, 1fr)`).join(' ')}`;
  const move = (by: number) => {
    const to = Math.min(props.count - 1, Math.max(0, current + by));
    props.onCurrent(to);
    const top = to * kRow;
    const element = view.current!;
    if (top < element.scrollTop) element.scrollTop = top;
    if (top + kRow + kHead > element.scrollTop + element.clientHeight) element.scrollTop = top + kRow + kHead - element.clientHeight;
  };
  const at = (index: number) => {
    const item = index >= 0 && index < props.count ? props.item(index) : undefined;
    return item?.kind === 'run' ? item.run : undefined;
  };
  // Where a range begins: the row that was ticked last. Not the current one: a click makes its own
  // row current before it ticks it.
  const anchor = useRef(-1);
  const toggleRow = (run: Run, index: number, range: boolean) => {
    const next = new Set(selected);
    const on = !next.has(run.id);
    const from = range && anchor.current >= 0 ? anchor.current : index;
    anchor.current = index;
    for (let i = Math.min(from, index); i <= Math.max(from, index); ++i) {
      const one = at(i);
      if (!one) continue;
      if (on) next.add(one.id);
      else next.delete(one.id);
    }
    props.onSelect(next);
    props.onCurrent(index);
  };
  // Back in the history finds the table where it was left.
  useLayoutEffect(() => {
    if (view.current) view.current.scrollTop = keptPlace();
  }, []);
  const pin = (id: string) => {
    toggle(pins, id);
    props.onPinned(id);
  };
  const latest = useRef({ props, toggleRow, pin });
  latest.current = { props, toggleRow, pin };
  const acts = useMemo((): RowActs => ({
    select: (run, index, range) => latest.current.toggleRow(run, index, range),
    focus: (index) => latest.current.props.onCurrent(index),
    colour: nextColour,
    pin: (id) => latest.current.pin(id),
    fold: (value) => latest.current.props.onGroup(value),
  }), []);
  // One listener for all cells: their titles are made when the pointer comes, and the row under it
  // gets its buttons.
  const onOver = (event: MouseEvent) => {
    const row = (event.target as Element).closest<HTMLElement>('[data-row]');
    const index = row ? Number(row.dataset.row) : -1;
    setUnder(index);
    const cell = (event.target as Element).closest<HTMLElement>('[role=gridcell]');
    const run = at(index);
    if (!run || !cell) return;
    const column = columns[[...row!.children].indexOf(cell) - 1] ?? kNameColumn;
    if (event.target instanceof HTMLElement && !event.target.closest('button')) event.target.title = titleOf(run, column);
  };
  useKeys([
    { key: 'j', says: 'Next row', act: () => move(1) },
    { key: 'k', says: 'Row before', act: () => move(-1) },
    { key: 'x', says: 'Select the row', act: () => { const run = at(current); if (run) toggleRow(run, current, false); } },
    { key: 'p', says: 'Pin the row', act: () => { const run = at(current); if (run) pin(run.id); } },
    { key: 'Enter', says: 'Open the row', act: () => { const run = at(current); if (run) go(['job', run.id]); } },
  ]);
  // Rows are named by their place in a ring as long as the view, so that one that leaves it at one
  // end is the one that comes in at the other.
  const ring = Math.ceil((size.height || 800) / kRow) + 2 * kAround + 2;
  const pinned = new Set(pins.value);
  return (
    <div class={slid ? 'grid slid' : 'grid'} ref={mounted}
      onScroll={(e) => { setSlid(e.currentTarget.scrollLeft > 0); keepPlace(e.currentTarget.scrollTop); }} tabIndex={0} role="grid" aria-rowcount={props.count + 1} aria-label="Jobs and runs"
      style={{ '--cols': template, '--wide': px(wide) }}>
      <Head columns={columns} order={props.order} onOrder={props.onOrder} />
      <div class="grid-body" role="rowgroup" style={{ height: px(rows.total) }} onMouseOver={onOver} onMouseLeave={() => setUnder(-1)}>
        {rows.items.map(({ index, start }) => {
          const item = props.item(index);
          const run = item.kind === 'run' ? item.run : undefined;
          const chosen = !!run && selected.has(run.id);
          return (
            <Row key={index % ring} index={index} top={start} item={item} columns={columns} acts={acts} dark={dark.value}
              state={run ? stateOf(run) : ''} tone={index === current ? 'current' : chosen ? 'chosen' : ''} selected={chosen}
              pinned={!!run && pinned.has(run.id)} tools={index === under || index === current} colour={run && colours.value[run.id]} />
          );
        })}
      </div>
    </div>
  );
}
