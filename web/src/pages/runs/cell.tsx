// What stands in a cell of the table.
import { number } from '../../lib/format';
import { State } from '../../parts/State';
import { Span, Time } from '../../parts/Time';
import { findJob } from '../../state/jobs';
import type { Run } from '../../state/types';
import type { ColumnDef } from './columns';

export function stateOf(run: Run): string {
  return (run.job ? findJob(run.id)?.state : undefined) ?? run.status;
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
    case 'started': return run.started;
    case 'duration': return run.ended ? (Date.parse(run.ended) - Date.parse(run.started)) / 1000 : undefined;
    default: return undefined;
  }
}

export function Cell({ run, column }: { run: Run; column: ColumnDef }) {
  if (column.id === 'state') return <State state={stateOf(run)} bare />;
  if (column.id === 'started') return <span><Time at={run.started} /></span>;
  if (column.id === 'duration') return <span><Span from={run.started} to={run.ended} /></span>;
  const value = valueOf(run, column);
  if (value === undefined) return <span class="dim">–</span>;
  if (column.kind === 'metric') return <span class="mono" title={String(value)}>{number(value)}</span>;
  return <span class={column.kind ? 'mono' : ''} title={String(value)}>{value}</span>;
}
