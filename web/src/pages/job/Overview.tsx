// A job at a glance: why it is as it is, how it went, what it was asked, cost, and kept.
import type { ComponentChildren } from 'preact';

import { bytes, duration, money, number, plural } from '../../lib/format';
import { ranksText } from '../../lib/ranks';
import { Hint } from '../../parts/Command';
import { toneOf } from '../../parts/State';
import { Span, Time, Took } from '../../parts/Time';
import { api } from '../../state/api';
import { href } from '../../state/router';
import { WORKING_FILES, type Attempt, type Job, type JobEvent, type Run } from '../../state/types';
import { useLoaded } from '../../state/use';
import { Checkpoints } from './Checkpoints';
import { Hosts } from './Hosts';
import { Labels } from './Labels';
import { Note } from './Note';

function Why({ job }: { job: Job }) {
  const { cause } = job;
  if (!cause?.text || job.state === 'Completed' || (job.state === 'Running' && !job.cause?.hint)) return null;
  const bad = job.state === 'Failed';
  const order = job.attempts?.[job.attempts.length - 1]?.fall_order;
  return (
    <div class={`note ${bad ? 'bad' : job.state === 'Stopped' ? 'plain' : ''}`}>
      <div class="grow">
        <strong>{cause.title ?? cause.text}</strong>
        {cause.title && cause.title !== cause.text ? <div>{cause.text}</div> : null}
        {order?.map((step) => <div key={step}>{step}</div>)}
        {cause.detail ? <pre style={{ marginTop: '6px' }}>{cause.detail}</pre> : null}
        <div class="row wrap" style={{ marginTop: '8px' }}>
          {cause.hint ? <Hint text={cause.hint} /> : null}
          {bad ? <a href={href(['job', job.id, 'logs'])}>Log</a> : null}
          {cause.code ? <span class="dim mono">{cause.code}</span> : null}
        </div>
      </div>
    </div>
  );
}

function Firings({ job }: { job: Job }) {
  if (!job.firings?.length) return null;
  return (
    <>
      {job.firings.map((fired) => (
        <div key={fired.rule} class="note">
          <div>
            <strong>Rule {fired.rule} fired</strong>: {fired.metric} = {fired.value}
            {fired.step !== undefined ? ` at step ${fired.step}` : ''} · {fired.action}
            {fired.advice ? <div>{fired.advice}</div> : null}
          </div>
        </div>
      ))}
    </>
  );
}

const kWords: Record<string, string> = {
  submitted: 'Accepted', placed: 'Got room', waiting: 'Waits', launched: 'Launched', agent_up: 'Preparing',
  script_started: 'Script started', script_ended: 'Script ended', uploaded: 'Outputs kept', stop_asked: 'Stop asked', stop_hastened: 'Stop hastened',
  interrupt_asked: 'Interruption asked', resumed: 'Resumed', checkpoint_kept: 'Checkpoint kept', rule_fired: 'Rule fired',
  noted: 'Note', launch_failed: 'Launch failed', prepare_failed: 'Preparing failed', host_lost: 'Machine lost',
  waited_too_long: 'Waited too long',
};
export const eventWords = (name: string) => kWords[name] ?? name.replace(/_/g, ' ');

function Timeline({ job }: { job: Job }) {
  const events = useLoaded(`${job.id} ${job.state} ${job.attempts?.length}`, (signal) => api.events(job.id, signal));
  const list = events.data ?? [];
  // A state's first event stands for it; checkpoints and notes are in Events.
  const shown = list.filter((event, i) => i === 0 || event.state !== list[i - 1]!.state || event.name === 'rule_fired');
  return (
    <section class="card">
      <header><h2>Timeline</h2><a href={href(['job', job.id, 'events'])}>All events</a></header>
      <ol class="timeline">
        {shown.map((event: JobEvent) => (
          <li key={event.seq}>
            <span class="dim num"><Time at={event.at} /></span>
            <i class={toneOf(event.state)} />
            <div>
              <strong>{event.state}</strong>{event.attempt && event.attempt > 1 ? <span class="dim"> · attempt {event.attempt}</span> : null}
              <div class="soft">{event.cause?.text || eventWords(event.name)}</div>
            </div>
          </li>
        ))}
      </ol>
    </section>
  );
}

function ending(attempt: Attempt): ComponentChildren {
  const { exit, cause } = attempt;
  if (cause?.text) return cause.text;
  if (!exit) return attempt.ended ? '–' : 'goes on';
  return exit.signal ? `signal ${exit.signal}` : `exit ${exit.code}`;
}

function Attempts({ job }: { job: Job }) {
  const list = job.attempts ?? [];
  if (list.length === 0) return null;
  return (
    <section class="card flush">
      <header><h2>{plural(list.length, 'attempt')}</h2></header>
      <div class="scroll" tabIndex={0}>
        <table class="plain-table">
          <thead><tr><th>#</th><th>Began</th><th>Held</th><th>Setup</th><th>From</th><th>Memory peak</th><th>Ended by</th></tr></thead>
          <tbody>
            {[...list].reverse().map((one) => (
              <tr key={one.id}>
                <td>{one.number}</td>
                <td><Time at={one.started ?? one.placed} /></td>
                <td class="num">{one.held_ms ? duration(one.held_ms) : <Span from={one.placed} to={one.ended} />}</td>
                <td class="num">{one.setup_ms ? duration(one.setup_ms) : '–'}</td>
                <td>{one.resumed_step !== undefined ? `step ${one.resumed_step}` : one.resumed_from || 'the beginning'}</td>
                <td class="num">{one.exit?.memory_peak ? bytes(one.exit.memory_peak) : '–'}</td>
                <td>{ending(one)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Numbers({ job }: { job: Job }) {
  const list = job.metrics ?? [];
  if (list.length === 0) return null;
  return (
    <section class="card flush">
      <header><h2>Metrics</h2><a href={href(['job', job.id, 'charts'])}>Charts</a></header>
      <div class="scroll" tabIndex={0}>
        <table class="plain-table">
          <thead><tr><th>Name</th><th class="right">Last</th><th class="right">Step</th><th class="right">Lowest</th><th class="right">Highest</th></tr></thead>
          <tbody>
            {list.slice(0, 30).map((one) => (
              <tr key={one.name}>
                <td>{one.name}</td>
                <td class="right mono">{number(one.last)}</td>
                <td class="right">{one.last_step ?? '–'}</td>
                <td class="right mono">{number(one.min)}</td>
                <td class="right mono">{number(one.max)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {list.length > 30 ? <p class="dim" style={{ padding: '8px 16px' }}>and {list.length - 30} more in Charts</p> : null}
    </section>
  );
}

function Facts({ job }: { job: Job }) {
  const { spec } = job;
  const r = spec.resources ?? {};
  const amounts = [
    r.type, r.cpu_millis ? plural(r.cpu_millis / 1000, 'CPU') : '', r.memory_bytes ? bytes(r.memory_bytes) : '',
    r.gpus ? plural(r.gpus, 'GPU') : '', r.spot?.use ? 'spot' : '',
  ].filter(Boolean).join(', ');
  const each = amounts && (r.nodes ?? 1) > 1 ? `${amounts} per node` : amounts;
  const asked = [each, ranksText(r)].filter(Boolean).join(', ');
  return (
    <section class="card">
      <header><h2>Facts</h2></header>
      <dl class="facts">
        <dt>Id</dt><dd class="mono">{job.id}</dd>
        <dt>User</dt><dd>{job.user}</dd>
        <dt>Created</dt><dd><Time at={job.created} exact /></dd>
        <dt>Started</dt><dd>{job.started ? <Time at={job.started} exact /> : '–'}</dd>
        <dt>Ended</dt><dd>{job.ended ? <Time at={job.ended} exact /> : '–'}</dd>
        <dt title="From when its script first ran until it ended">Took</dt><dd><Took of={job} /></dd>
        <dt>Command</dt><dd><code>{job.command_line || spec.entry || '–'}</code></dd>
        {asked ? <><dt>Asked for</dt><dd>{asked}</dd></> : null}
        <dt>Cost</dt>
        <dd>{money(job.cost_micros, job.price?.currency)}
          {job.price ? <span class="dim"> at {money(job.price.micros_per_hour, job.price.currency)} an hour ({job.price.source})</span> : null}</dd>
        {job.spot ? <><dt>Lost and saved</dt><dd>{duration(job.spot.lost_ms)} redone, {money(job.spot.saved_micros)} saved</dd></> : null}
        {spec.source?.dir ? <><dt>Source</dt><dd>{spec.source.dir} <span class="dim">{plural(spec.source.files ?? 0, 'file')}, {bytes(spec.source.bytes ?? 0)}</span></dd></> : null}
        {spec.source?.git_commit ? <><dt>Commit</dt><dd class="mono">{spec.source.git_commit.slice(0, 12)}{spec.source.git_diff ? ' + changes' : ''}</dd></> : null}
        {job.parent ? <><dt>Retry of</dt><dd><a href={href(['job', job.parent])}>{job.parent}</a></dd></> : null}
        {job.same_as ? <><dt>Same as</dt><dd><a href={href(['job', job.same_as])}>{job.same_as}</a></dd></> : null}
        {job.simulated ? <><dt>Simulated</dt><dd>its type is larger than this machine</dd></> : null}
      </dl>
      {[...(job.notes ?? []), ...(spec.notes ?? [])].map((note) => <p key={note} class="dim" style={{ marginTop: '8px' }}>{note}</p>)}
    </section>
  );
}

export function Overview({ job, run }: { job: Job; run?: Run }) {
  return (
    <div class="stack">
      <Why job={job} />
      <Firings job={job} />
      <div class="columns">
        <div class="stack">
          <Numbers job={job} />
          {run ? <Note run={run} /> : null}
          <Attempts job={job} />
          <Hosts job={job} />
          <Checkpoints job={job} />
          <Timeline job={job} />
        </div>
        <div class="stack">
          <Labels title="Parameters" rows={(job.spec.params ?? []).map((p) => [p.name, p.value])}
            marks={Object.fromEntries((job.unread?.params ?? []).map((p) => [p.name, p.mark]))} note={job.unread?.hint} />
          <Facts job={job} />
          {run ? <Labels title="Tags" rows={Object.entries(run.tags).filter(([k]) => !k.startsWith('mlflow.'))} run={run.id} /> : null}
          {job.outputs?.length ? (
            <section class="card">
              <header><h2>Outputs</h2><a href={href(['job', job.id, 'artifacts'])}>Files</a></header>
              <dl class="facts">
                {job.outputs.map((out) => <><dt>{out.name === WORKING_FILES ? 'Working folder' : out.name}</dt><dd>{bytes(out.bytes)}{out.files ? `, ${plural(out.files, 'file')}` : ''}</dd></>)}
              </dl>
            </section>
          ) : null}
        </div>
      </div>
    </div>
  );
}
