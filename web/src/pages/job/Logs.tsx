// The log of a job: live at its end, searchable, and linkable by line; a million lines cost what
// is on screen.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { plain } from '../../lib/ansi';
import { count, plural, px } from '../../lib/format';
import { hostName, rankCount } from '../../lib/ranks';
import { Empty, Failure, Loading } from '../../parts/Box';
import { Icon } from '../../parts/Icon';
import { useVirtual } from '../../parts/virtual';
import { address, part } from '../../state/api';
import { isOver } from '../../state/jobs';
import { useKeys } from '../../state/keys';
import { href, route, setQuery } from '../../state/router';
import type { Job } from '../../state/types';
import { LogLine } from './LogLine';
import { useLog } from './log_source';

const kRow = 20;

function pattern(q: string, regex: boolean): RegExp | undefined {
  if (!q) return undefined;
  try {
    // As the server searches: case matters once there is a capital.
    return new RegExp(regex ? q : q.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), /[A-Z]/.test(q) ? 'g' : 'gi');
  } catch {
    return undefined; // not (yet) a regular expression
  }
}

const kMostListed = 256; // beyond, the hosts alone

// All of it, or one host's, or one rank's.
function RankPicker({ job, rank, host }: { job: Job; rank?: string; host?: string }) {
  const { processes = 1 } = job.spec.resources ?? {};
  const ranks = rankCount(job.spec.resources);
  const hosts = Array.from({ length: ranks / processes }, (_, i) => hostName(i));
  const all = Array.from({ length: ranks <= kMostListed ? ranks : 0 }, (_, i) => String(i));
  const choose = (value: string) =>
    setQuery({ rank: all.includes(value) ? value : undefined, host: hosts.includes(value) ? value : undefined, line: undefined });
  return (
    <select aria-label="Rank" value={rank ?? host ?? ''} onChange={(e) => choose(e.currentTarget.value)}>
      <option value="">All ranks</option>
      {hosts.length > 1 ? <optgroup label="Host">{hosts.map((one) => <option key={one} value={one}>{one}</option>)}</optgroup> : null}
      {all.length ? <optgroup label="Rank">{all.map((one) => <option key={one} value={one}>Rank {one}</option>)}</optgroup> : null}
    </select>
  );
}

export function Logs({ job }: { job: Job }) {
  const { path, query } = route.value;
  const phase = query.phase ?? 'run';
  const { rank, host } = query;
  const ranks = rankCount(job.spec.resources);
  const live = !isOver(job.state);
  const log = useLog(job.id, { phase, rank, host }, live);
  const view = useRef<HTMLDivElement>(null);
  const rows = useVirtual(() => view.current, log.total, kRow, 20);
  const [follow, setFollow] = useState(!query.line);
  const [matches, setMatches] = useState<{ line: number; text: string }[]>([]);
  const [found, setFound] = useState<number | undefined>(undefined);
  const [failed, setFailed] = useState<Error | undefined>(undefined);
  const chosen = query.line ? Number(query.line) - 1 : undefined;
  const q = query.q ?? '';
  const regex = query.regex === '1';
  const find = useMemo(() => pattern(q, regex), [q, regex]);

  useEffect(() => {
    if (follow && log.total) rows.scrollTo(log.total - 1, 'end');
  }, [follow, log.total]);
  useEffect(() => {
    if (chosen !== undefined && log.total > chosen) rows.scrollTo(chosen, 'center');
  }, [chosen, log.loaded]);
  useEffect(() => {
    setFailed(undefined);
    if (!q) {
      setMatches([]);
      setFound(undefined);
      return;
    }
    let current = true;
    const timer = setTimeout(() => log.search(q, regex).then(
      (reply) => {
        if (!current) return;
        setMatches(reply.matches);
        setFound(reply.total);
      },
      (error: Error) => current && setFailed(error)), 200);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [q, regex, phase, rank, host, job.id, isOver(job.state)]);

  const goTo = (line: number) => {
    setFollow(false);
    setQuery({ line: String(line + 1) });
    rows.scrollTo(line, 'center');
  };
  const step = (by: number) => {
    if (!matches.length) return;
    const at = matches.findIndex((match) => match.line === chosen);
    goTo(matches[(at + by + matches.length) % matches.length]!.line);
  };
  useKeys([
    { key: 'n', says: 'Next match', act: () => step(1) },
    { key: 'N', says: 'Match before', act: () => step(-1) },
    { key: 'e', says: 'First error', act: () => log.firstError !== undefined && goTo(log.firstError) },
    { key: 'G', says: 'End of the log', act: () => setFollow(true) },
  ]);
  const onScroll = () => {
    const element = view.current!;
    setFollow(element.scrollHeight - element.scrollTop - element.clientHeight < kRow * 2);
  };
  return (
    <>
      <div class="toolbar">
        <input type="search" class="grow" data-search placeholder="Search the log" aria-label="Search the log" value={q}
          onInput={(e) => setQuery({ q: e.currentTarget.value || undefined })}
          onKeyDown={(e) => e.key === 'Enter' && step(e.shiftKey ? -1 : 1)} />
        <label class="row"><input type="checkbox" checked={regex}
          onChange={(e) => setQuery({ regex: e.currentTarget.checked ? '1' : undefined })} /> regex</label>
        <select aria-label="Phase" value={phase} onChange={(e) => setQuery({ phase: e.currentTarget.value, line: undefined })}>
          <option value="run">Script</option>
          <option value="setup">Setup</option>
          <option value="all">All</option>
        </select>
        {ranks > 1 ? <RankPicker job={job} rank={rank} host={host} /> : null}
        <button class="button" disabled={log.firstError === undefined} onClick={() => goTo(log.firstError!)}>First error</button>
        <button class={`button ${follow ? 'on' : ''}`} aria-pressed={follow} onClick={() => setFollow(!follow)}>
          <Icon name="down" /> {live ? 'Follow' : 'End'}
        </button>
        <a class="button" href={address(`jobs/${part(job.id)}/logs`, { phase: 'all', rank, host })} download={`${job.name}.log`}>
          <Icon name="download" /> Download
        </a>
      </div>
      {log.error ?? failed ? <Failure error={(log.error ?? failed)!} /> : null}
      <div class="log">
        {log.total === 0 ? (log.loaded || log.error ? <Empty title={live ? 'Nothing was printed yet' : 'Nothing was printed'} /> : <Loading />) : null}
        <div class="log-view" ref={view} tabIndex={0} role="log" aria-label="Log" aria-live="off" onScroll={onScroll}
          style={{ display: log.total ? 'block' : 'none' }}>
          <div class="log-body" style={{ height: px(rows.total) }}>
            {rows.items.map((item) => (
              <LogLine key={item.index} index={item.index} top={item.start} text={log.line(item.index)} rank={log.rank(item.index)}
                link={href(path, { ...query, line: String(item.index + 1) })} on={item.index === chosen}
                error={item.index === log.firstError} find={find} />
            ))}
          </div>
        </div>
        {q && found !== undefined ? (
          <div class="log-matches" aria-label="Matches">
            <div class="dim" style={{ padding: '2px 8px' }}>
              {plural(found, 'match', 'matches')}{found > matches.length ? `, the first ${count(matches.length)} shown` : ''}
            </div>
            {matches.slice(0, 200).map((match) => (
              <button key={match.line} class={match.line === chosen ? 'on' : ''} onClick={() => goTo(match.line)}>
                <span>{match.line + 1}</span><span class="cut">{plain(match.text)}</span>
              </button>
            ))}
          </div>
        ) : null}
      </div>
      <div class="foot"><span>{plural(log.total, 'line')}</span></div>
    </>
  );
}
