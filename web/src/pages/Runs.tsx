// Jobs and runs in one table: filtered, sorted and projected by the server, grouped, pinned,
// coloured and acted on here. The address holds all of the view.
import { useEffect, useMemo, useState } from 'preact/hooks';

import { addClause, asFilter, fieldOf } from '../lib/filter';
import { csv } from '../lib/csv';
import { plural } from '../lib/format';
import { Empty, Failure, Loading } from '../parts/Box';
import { Icon } from '../parts/Icon';
import { Menu } from '../parts/Menu';
import { Views } from '../parts/Views';
import { api, ApiError } from '../state/api';
import { pins, views } from '../state/prefs';
import { go, href, route, setQuery } from '../state/router';
import { useTitle } from '../state/title';
import type { Run } from '../state/types';
import { useLoaded } from '../state/use';
import { saveFile } from '../charts/export';
import { BulkBar } from './runs/BulkBar';
import { ColumnChooser } from './runs/ColumnChooser';
import { columnOf, fileTitle, kNameColumn, kUsual, packColumns, titled, unpackColumns, type ColumnDef } from './runs/columns';
import { FilterBox } from './runs/FilterBox';
import { FilterForm } from './runs/FilterForm';
import { groupItems } from './runs/groups';
import { useRows } from './runs/rows';
import { RunTable } from './runs/RunTable';
import type { Item } from './runs/Row';
import { valueOf } from './runs/cell';

const kMostGrouped = 10_000;

// Without a choice: the metrics and parameters that most of the newest runs have.
async function usualColumns(experiment: string | undefined, signal: AbortSignal): Promise<string[]> {
  const page = await api.runs({ limit: 20, experiment }, signal);
  const tally = (of: (run: Run) => string[]) => {
    const seen = new Map<string, number>();
    for (const run of page.runs) for (const name of of(run)) seen.set(name, (seen.get(name) ?? 0) + 1);
    return [...seen].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  };
  const metrics = tally((run) => Object.keys(run.metrics).filter((name) => !/^system[/.]/.test(name)));
  const params = tally((run) => Object.keys(run.params));
  return [...kUsual, ...metrics.slice(0, 4).map((name) => `m:${name}`), ...params.slice(0, 4).map((name) => `p:${name}`)];
}

function GroupMenu({ columns, group }: { columns: ColumnDef[]; group: string }) {
  const params = columns.filter((column) => column.kind === 'param');
  return (
    <Menu small={false} label={group ? `Group: ${group}` : 'Group'} className={group ? 'on' : ''} choices={[
      { text: 'No groups', act: () => setQuery({ group: undefined }) },
      ...params.map((column) => ({ text: column.name!, act: () => setQuery({ group: column.name }) })),
      ...(params.length ? [] : [{ text: 'Add a parameter as a column first', disabled: true }]),
    ]} />
  );
}

export function Runs() {
  const { query } = route.value;
  const { filter: typed = '', experiment, group = '' } = query;
  const filter = asFilter(typed); // plain words stay as they were typed; the server is asked for names that hold them
  const deleted = query.deleted === '1';
  useTitle(experiment);
  const order = query.order ?? 'attributes.start_time DESC';
  const usual = useLoaded(query.cols ? null : `usual ${experiment}`, (signal) => usualColumns(experiment, signal));
  const ids = useMemo(() => (query.cols ? unpackColumns(query.cols) : usual.data ?? kUsual), [query.cols, usual.data]);
  const columns = useMemo(() => titled(ids.map(columnOf).filter((one) => one !== undefined)), [ids]);
  const asked = useMemo(() => {
    const named = columns.filter((one) => one.kind).map((one) => one.order!);
    if (group) named.push(fieldOf('param', group));
    return { filter, order: [order], experiment, deleted, column: named.length ? [...new Set(named)] : ['attributes.status'] };
  }, [filter, order, experiment, deleted, columns, group]);
  // Pinned runs are at the top, and only there.
  const below = useMemo(() => (group ? asked : {
    ...asked, filter: [filter, ...pins.value.map((id) => `attributes.run_id != '${id}'`)].filter(Boolean).join(' AND '),
  }), [asked, filter, group, pins.value]);
  const rows = useRows(below);
  const grouped = useLoaded(group ? JSON.stringify([asked, rows.matched]) : null, (signal) =>
    api.runs({ ...asked, limit: kMostGrouped }, signal));
  const pinned = useLoaded(pins.value.length && !group ? pins.value.join() : null, (signal) =>
    Promise.all(pins.value.map((id) => api.run(id, signal).catch(() => undefined))));
  const [selected, setSelected] = useState(new Set<string>());
  const [current, setCurrent] = useState(-1);
  const [folded, setFolded] = useState(new Set<string>());
  const [dialog, setDialog] = useState<'columns' | 'filter' | undefined>(undefined);
  useEffect(() => setCurrent(-1), [filter, order, experiment, group]);

  const top = group ? [] : (pinned.data ?? []).filter((run): run is Run => !!run && pins.value.includes(run.id));
  const list = useMemo(
    () => (group && grouped.data ? groupItems(grouped.data.runs, group, columns, folded) : undefined),
    [group, grouped.data, columns, folded]);
  const item = (index: number): Item => {
    if (list) return list[index] ?? { kind: 'pending' };
    const pin = top[index];
    if (pin) return { kind: 'run', run: pin, pinned: true };
    const run = rows.row(index - top.length);
    return run ? { kind: 'run', run } : { kind: 'pending' };
  };
  const known = () => [...top, ...rows.known(), ...(grouped.data?.runs ?? [])];
  const chosen = () => {
    const seen = new Map(known().map((run) => [run.id, run]));
    return [...selected].map((id) => seen.get(id)).filter((run): run is Run => !!run);
  };
  const save = async () => {
    const page = await api.runs({ ...asked, limit: kMostGrouped });
    const all = [kNameColumn, ...columns];
    saveFile('runs.csv', csv([['id', ...all.map(fileTitle)], ...page.runs.map((run) => [run.id, ...all.map((c) => valueOf(run, c))])]), 'text/csv');
  };
  const bad = rows.error instanceof ApiError && rows.error.status === 400 ? rows.error.what : undefined;
  const setIds = (next: string[]) => setQuery({ cols: packColumns(next) });
  return (
    <div class="page fixed">
      <div class="page-head">
        <h1>{deleted ? 'Deleted runs' : experiment ?? 'Jobs & runs'}</h1>
        <span class="dim num">{rows.loaded ? plural(rows.matched + top.length, 'run') : ''}</span>
        {experiment ? <a href={href(['runs'])}>all experiments</a> : null}
        <span class="grow" />
        <a class="button" href={href(['new'])}>New job</a>
      </div>
      <div class="toolbar">
        <FilterBox value={typed} bad={bad} focus={query.focus === '1'} onChange={(next) => setQuery({ filter: next || undefined, focus: undefined }, true)} />
        <button class="button" onClick={() => setDialog('filter')}><Icon name="filter" /> Add filter</button>
        <button class="button" onClick={() => setDialog('columns')}><Icon name="columns" /> Columns</button>
        <GroupMenu columns={columns} group={group} />
        <Views list={views} take={() => ({ ...query })} open={(kept) => go(['runs'], kept)} />
        <Menu label={<Icon name="more" />} title="More" small={false} choices={[
          { text: 'Save as CSV', act: () => void save() },
          { text: deleted ? 'Show what is not deleted' : 'Show deleted runs', act: () => setQuery({ deleted: deleted ? undefined : '1' }) },
        ]} />
      </div>
      {rows.error ? <div style={{ marginBottom: '10px' }}><Failure error={rows.error} retry={rows.reload} /></div> : null}
      {!rows.loaded ? <Loading /> : null}
      {rows.loaded && rows.matched === 0 && !top.length && !rows.error ? (
        <Empty title={filter ? 'No run passes this filter' : 'No runs yet'}>
          {filter ? <button class="button" onClick={() => setQuery({ filter: undefined })}>Clear the filter</button> : <p>Start one: <code>ath run -- python train.py</code></p>}
        </Empty>
      ) : null}
      {rows.matched + top.length > 0 ? (
        <RunTable count={list ? list.length : top.length + rows.matched} item={item} columns={columns} order={order}
          onPinned={(id) => {
            // The cursor goes with a run that is pinned; where an unpinned one lands is not known yet.
            const at = pins.peek().indexOf(id);
            if (at >= 0) setCurrent(at);
          }}
          onOrder={(next) => setQuery({ order: next })} selected={selected} onSelect={setSelected} current={current} onCurrent={setCurrent}
          onGroup={(value) => {
            const bare = value.slice(group.length + 3);
            const next = new Set(folded);
            if (!next.delete(bare)) next.add(bare);
            setFolded(next);
          }} />
      ) : null}
      {selected.size ? <BulkBar runs={chosen()} clear={() => setSelected(new Set())} reload={rows.reload} drop={rows.drop} /> : null}
      {dialog === 'columns' ? <ColumnChooser ids={ids} onChange={setIds} close={() => setDialog(undefined)} experiment={experiment} /> : null}
      {dialog === 'filter' ? (
        <FilterForm experiment={experiment} close={() => setDialog(undefined)}
          add={(clause) => setQuery({ filter: addClause(filter, clause) }, true)} />
      ) : null}
    </div>
  );
}
