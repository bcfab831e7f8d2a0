// The columns of the table: fixed ones, and those a person chose among thousands of names.
import { fieldOf, type NameKind } from '../../lib/filter';

export interface ColumnDef {
  id: string; // "state", or "m:loss", "p:lr", "t:team"
  title: string;
  width: number;
  right?: boolean;
  order?: string; // what the server sorts by
  kind?: NameKind;
  name?: string;
}

const kFixed: ColumnDef[] = [
  { id: 'state', title: 'State', width: 116, order: 'attributes.status' },
  { id: 'experiment', title: 'Experiment', width: 130 },
  { id: 'user', title: 'User', width: 90, order: 'attributes.user_id' },
  { id: 'started', title: 'Created', width: 104, order: 'attributes.start_time', right: true },
  { id: 'duration', title: 'Took', width: 92, right: true },
];
export const kNameColumn: ColumnDef = { id: 'name', title: 'Name', width: innerWidth < 760 ? 150 : 240, order: 'attributes.run_name' };
export const kKindWords: Record<NameKind, string> = { metric: 'metric', param: 'parameter', tag: 'tag' };
const kKinds: Record<string, NameKind> = { m: 'metric', p: 'param', t: 'tag' };

export function columnOf(id: string): ColumnDef | undefined {
  const fixed = kFixed.find((one) => one.id === id);
  if (fixed) return fixed;
  const kind = kKinds[id[0] ?? ''];
  if (!kind || id[1] !== ':') return undefined;
  const name = id.slice(2);
  const width = Math.min(220, Math.max(96, name.length * 7.500 + 40));
  return { id, title: name, width, right: kind !== 'tag', order: fieldOf(kind, name), kind, name };
}

export function columnId(kind: NameKind, name: string): string {
  return `${kind[0]}:${name}`;
}

// Distinguishes a metric and a parameter of the same name that are next to each other.
export function titled(columns: ColumnDef[]): ColumnDef[] {
  const seen = new Map<string, number>();
  for (const column of columns) seen.set(column.title, (seen.get(column.title) ?? 0) + 1);
  return columns.map((column) => (column.kind && (seen.get(column.title)! > 1 || kFixed.some((one) => one.title === column.title))
    ? { ...column, title: `${column.title} (${kKindWords[column.kind]})`, width: column.width + 60 } : column));
}

// In a file each has the name that filters know it by, as MLflow writes it: metrics.loss, params.lr.
export const fileTitle = (column: ColumnDef) => (column.kind ? `${column.kind}s.${column.name}` : column.title);

// In the address as one text; names may hold commas.
export const packColumns = (ids: string[]) => ids.map(encodeURIComponent).join(',');
export const unpackColumns = (text: string) => text.split(',').filter(Boolean).map(decodeURIComponent);
export const kUsual = ['state', 'experiment', 'started', 'duration'];
