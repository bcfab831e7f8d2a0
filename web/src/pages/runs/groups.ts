// Runs grouped by one parameter's value, with the mean of each metric. Pure.
import { number } from '../../lib/format';
import type { Run } from '../../state/types';
import type { ColumnDef } from './columns';
import type { Item } from './Row';

export function groupItems(runs: Run[], param: string, columns: ColumnDef[], folded: Set<string>): Item[] {
  const groups = new Map<string, Run[]>();
  for (const run of runs) {
    const value = run.params[param] ?? '(none)';
    const list = groups.get(value);
    if (list) list.push(run);
    else groups.set(value, [run]);
  }
  const order = [...groups.keys()].sort((a, b) => Number(a) - Number(b) || a.localeCompare(b));
  return order.flatMap((value): Item[] => {
    const list = groups.get(value)!;
    const means: Record<string, string> = {};
    for (const column of columns) {
      if (column.kind !== 'metric') continue;
      const values = list.map((run) => Number(run.metrics[column.name!]?.last)).filter(Number.isFinite);
      if (values.length) means[column.id] = `⌀ ${number(values.reduce((a, b) => a + b, 0) / values.length)}`;
    }
    const open = !folded.has(value);
    const head: Item = { kind: 'group', value: `${param} = ${value}`, count: list.length, open, means };
    return open ? [head, ...list.map((run): Item => ({ kind: 'run', run }))] : [head];
  });
}
