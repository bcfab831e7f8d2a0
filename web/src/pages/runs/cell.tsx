// The content of a table cell: one element with a text, so that a row is cheap to change.
import { ago, duration, localTime, number, utcTime } from '../../lib/format';
import { toneOf, wordOf } from '../../parts/State';
import { findJob } from '../../state/jobs';
import type { Run } from '../../state/types';
import { now } from '../../state/use';
import type { ColumnDef } from './columns';

const kHour = 3_600_000;

export function stateOf(run: Run): string {
  return (run.job ? findJob(run.id)?.shown_state : undefined) ?? run.status;
}

export function valueOf(run: Run, column: ColumnDef): string | number | undefined {
  if (column.kind === 'metric') return run.metrics[column.name!]?.last;
  if (column.kind === 'param') return run.params[column.name!];
  if (column.kind === 'tag') return run.tags[column.name!];
  switch (column.id) {
    case 'name': return run.name;
    case 'state': return stateOf(run);
    case 'experiment': return run.experiment;
    case 'user': return run.user;
    case 'started': return run.created;
    case 'duration': return run.ended && run.started ? (Date.parse(run.ended) - Date.parse(run.started)) / 1000 : undefined;
    default: return undefined;
  }
}

// Texts that grow with the clock; a day later they need none.
function Ago({ at }: { at: number }) {
  return <>{ago((now.peek() - at < kHour ? now.value : now.peek()) - at)}</>;
}

function Lasts({ from }: { from: number }) {
  return <>{duration((now.peek() - from < 48 * kHour ? now.value : now.peek()) - from)}</>;
}

export function cellClass(column: ColumnDef): string {
  return `${column.right ? 'right ' : ''}${column.kind && column.kind !== 'tag' ? 'mono' : 'num'}`;
}

export function Cell({ run, state, column }: { run: Run; state: string; column: ColumnDef }) {
  switch (column.id) {
    case 'state': return <div role="gridcell" class={`word ${toneOf(state)}`}>{wordOf(state)}</div>;
    case 'started': return <div role="gridcell" class={cellClass(column)}><Ago at={Date.parse(run.created)} /></div>;
    case 'duration': return (
      <div role="gridcell" class={cellClass(column)}>
        {!run.started ? '–' : run.ended ? duration(Date.parse(run.ended) - Date.parse(run.started)) : <Lasts from={Date.parse(run.started)} />}
      </div>
    );
  }
  const value = valueOf(run, column);
  return <div role="gridcell" class={cellClass(column)}>{value === undefined ? '–' : column.kind === 'metric' ? number(value) : value}</div>;
}

// The tooltip of a cell; made on demand, not for each row that scrolls by.
export function titleOf(run: Run, column: ColumnDef): string {
  const value = valueOf(run, column);
  if (column.id === 'started') return `${localTime(Date.parse(run.created))} local\n${utcTime(Date.parse(run.created))}`;
  return value === undefined ? '' : String(value);
}
