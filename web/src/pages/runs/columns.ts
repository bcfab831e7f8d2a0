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
  { id: 'started', title: 'Started', width: 104, order: 'attributes.start_time', right: true },
  { id: 'duration', title: 'Took', width: 92, right: true },
];
export const kNameColumn: ColumnDef = { id: 'name', title: 'Name', width: innerWidth < 760 ? 150 : 240, order: 'attributes.run_name' };
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

// In the address as one text; names may hold commas.
export const packColumns = (ids: string[]) => ids.map(encodeURIComponent).join(',');
export const unpackColumns = (text: string) => text.split(',').filter(Boolean).map(decodeURIComponent);
export const kUsual = ['state', 'experiment', 'started', 'duration'];
