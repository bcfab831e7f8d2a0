// One row of the table. Scrolling gives it another run to show, so it is made of few elements, all
// kept: what changes is text. It is drawn again only when what it was given differs.
import { Component } from 'preact';

import { px } from '../../lib/format';
import { seriesColour } from '../../lib/palette';
import { Icon } from '../../parts/Icon';
import { href } from '../../state/router';
import type { Run } from '../../state/types';
import { Cell, cellClass } from './cell';
import type { ColumnDef } from './columns';

export type Item =
  | { kind: 'run'; run: Run; pinned?: boolean }
  | { kind: 'group'; value: string; count: number; open: boolean; means: Record<string, string> }
  | { kind: 'pending' };

// What rows ask of the table: one object for the life of the table, so that rows stay as they are.
export interface RowActs {
  select: (run: Run, index: number, range: boolean) => void;
  focus: (index: number) => void;
  colour: (id: string) => void;
  pin: (id: string) => void;
  fold: (value: string) => void;
}

export interface RowProps {
  index: number;
  top: number;
  item: Item;
  state: string; // of the run, as it is known now
  columns: ColumnDef[];
  tone: '' | 'current' | 'chosen';
  selected: boolean;
  pinned: boolean;
  tools: boolean; // the pointer or the keyboard is on it
  colour?: number;
  dark: boolean;
  acts: RowActs;
}

const sameItem = (a: Item, b: Item) =>
  a === b || (a.kind === 'run' && b.kind === 'run' && a.run === b.run) || (a.kind === 'pending' && b.kind === 'pending');

export class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    const now = this.props;
    return now.index !== next.index || now.top !== next.top || !sameItem(now.item, next.item) || now.state !== next.state ||
      now.columns !== next.columns || now.tone !== next.tone || now.selected !== next.selected ||
      now.pinned !== next.pinned || now.tools !== next.tools || now.colour !== next.colour || now.dark !== next.dark;
  }

  override render({ index, top, item, columns, tone, acts, ...more }: RowProps) {
    const style = { top: px(top) };
    if (item.kind === 'pending') {
      return <div class="grid-row" style={style} role="row"><div class="stick dim" role="gridcell">…</div></div>;
    }
    if (item.kind === 'group') {
      return (
        <div class="grid-row group" style={style} role="row">
          <div class="stick" role="gridcell">
            <button class="pin on" aria-label={`${item.open ? 'Fold' : 'Unfold'} ${item.value}`} aria-expanded={item.open}
              onClick={() => acts.fold(item.value)}><Icon name={item.open ? 'down' : 'right'} /></button>
            <span class="cut">{item.value}</span><span class="dim">{item.count}</span>
          </div>
          {columns.map((column) => <div key={column.id} role="gridcell" class={cellClass(column)}>{item.means[column.id]}</div>)}
        </div>
      );
    }
    const { run } = item;
    return (
      <div class={tone ? `grid-row ${tone}` : 'grid-row'} style={style} role="row" data-row={index} aria-rowindex={index + 2}
        aria-selected={more.selected} onClick={() => acts.focus(index)} onFocusIn={() => acts.focus(index)}>
        <div class="stick" role="gridcell">
          <input type="checkbox" aria-label={`Select ${run.name}`} checked={more.selected}
            onClick={(e) => acts.select(run, index, e.shiftKey)} />
          <button class="swatch" title="Change its colour" aria-label={`Change the colour of ${run.name}`}
            style={{ background: more.colour === undefined ? undefined : seriesColour(more.colour, more.dark) }}
            onClick={(e) => { e.stopPropagation(); acts.colour(run.id); }} />
          <a class="cut grow" href={href(['job', run.id])}>{run.name}</a>
          {more.pinned || more.tools ? (
            <button class={`pin ${more.pinned ? 'on' : ''}`} aria-label={`${more.pinned ? 'Unpin' : 'Pin'} ${run.name}`} aria-pressed={more.pinned}
              onClick={(e) => { e.stopPropagation(); acts.pin(run.id); }}><Icon name="pin" /></button>
          ) : null}
        </div>
        {columns.map((column) => <Cell key={column.id} run={run} state={more.state} column={column} />)}
      </div>
    );
  }
}
