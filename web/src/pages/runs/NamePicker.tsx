// Names of metrics, parameters or tags, searched on the server: thousands cost what is in view.
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';

import type { NameKind } from '../../lib/filter';
import { count, px } from '../../lib/format';
import { Failure } from '../../parts/Box';
import { useVirtual } from '../../parts/virtual';
import { api } from '../../state/api';
import type { NameRow } from '../../state/types';
import { useLoaded } from '../../state/use';

const kMost = 2000;

export function NamePicker({ children, kinds = ['metric', 'param', 'tag'], experiment }: {
  kinds?: NameKind[];
  experiment?: string;
  children: (kind: NameKind, row: NameRow) => ComponentChildren;
}) {
  const [kind, setKind] = useState<NameKind>(kinds[0]!);
  const [find, setFind] = useState('');
  const names = useLoaded(`${kind} ${find} ${experiment}`, (signal) =>
    api.names({ kind, contains: find, limit: kMost, experiment }, signal));
  const view = useRef<HTMLDivElement>(null);
  const list = names.data?.names ?? [];
  const rows = useVirtual(() => view.current, list.length, 30);
  return (
    <>
      <div class="row">
        {kinds.length > 1 ? (
          <select aria-label="Kind" value={kind} onChange={(e) => setKind(e.currentTarget.value as NameKind)}>
            <option value="metric">Metrics</option>
            <option value="param">Parameters</option>
            <option value="tag">Tags</option>
          </select>
        ) : null}
        <input type="search" class="grow" placeholder="Search names" aria-label="Search names" value={find}
          onInput={(e) => setFind(e.currentTarget.value)} />
      </div>
      {names.error ? <Failure error={names.error} /> : null}
      <div class="chooser" ref={view}>
        <div style={{ height: px(rows.total), position: 'relative' }}>
          {rows.items.map((item) => (
            <label key={item.index} style={{ transform: `translateY(${item.start}px)` }}>
              {children(kind, list[item.index]!)}
              <small>{count(list[item.index]!.runs)} runs</small>
            </label>
          ))}
        </div>
      </div>
      <span class="dim">{names.data ? `${count(names.data.total)} names${names.data.total > list.length ? `, the first ${count(list.length)} listed` : ''}` : ''}</span>
    </>
  );
}
