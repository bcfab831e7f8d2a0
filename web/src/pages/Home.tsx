// What runs now, what failed lately and why, what waits and for what, and how full the machine is.
import { useState } from 'preact/hooks';

import { bytes, number, plural, shellWord } from '../lib/format';
import { Failure, Loading } from '../parts/Box';
import { Command } from '../parts/Command';
import { Spark } from '../parts/Spark';
import { State } from '../parts/State';
import { Span, Time, Took } from '../parts/Time';
import { api } from '../state/api';
import { isOver, jobs, jobsState, loadJobs } from '../state/jobs';
import { href } from '../state/router';
import type { JobSummary } from '../state/types';
import { isJobs } from '../state/live';
import { useLoaded, useNews, useThrottled } from '../state/use';

const kTrends = 12; // running jobs that get a chart

function JobCard({ job }: { job: JobSummary }) {
  const metrics = useLoaded(job.id, (signal) => api.jobMetrics(job.id, 60, signal));
  const again = useThrottled(metrics.reload, 2000);
  useNews((news) => news.kind === 'run' && news.run.run === job.id && again());
  const list = metrics.data?.filter((metric) => !metric.name.startsWith('system/')) ?? [];
  const main = list.find((metric) => /loss/i.test(metric.name)) ?? list[0];
  return (
    <a class="card job-card" href={href(['job', job.id])}>
      <div class="row">
        <strong class="grow cut">{job.name}</strong>
        <State state={job.shown_state} />
      </div>
      {main?.trend ? <Spark values={main.trend} label={`${main.name} so far`} /> : <div class="spark" />}
      {main ? (
        <div class="metric-line">
          <span class="soft cut">{main.name}{main.last_step !== undefined ? ` · step ${main.last_step}` : ''}</span>
          <span class="mono">{number(main.last)}</span>
        </div>
      ) : <span class="dim cut">{job.cause?.text ?? 'no numbers yet'}</span>}
      <div class="metric-line dim">
        <span class="cut">{job.experiment || job.user}</span>
        <Took of={job} waiting />
      </div>
    </a>
  );
}

function Failed({ list }: { list: JobSummary[] }) {
  return (
    <section class="card flush">
      <header><h2>Failed lately</h2></header>
      {list.map((job) => (
        <div key={job.id} class="fail-row">
          <div class="row">
            <a href={href(['job', job.id])} class="cut"><strong>{job.name}</strong></a>
            <span class="grow" />
            <span class="dim"><Time at={job.ended} /></span>
          </div>
          <div class="soft">{job.cause?.text ?? 'no cause is known'}</div>
          <div><Command text={`ath why ${shellWord(job.name)}`} inline /></div>
        </div>
      ))}
    </section>
  );
}

function Waiting({ list }: { list: JobSummary[] }) {
  return (
    <section class="card flush">
      <header><h2>Waiting</h2><a href={href(['queue'])}>Queue</a></header>
      {list.map((job) => (
        <div key={job.id} class="fail-row">
          <div class="row">
            <a href={href(['job', job.id])} class="cut grow">{job.name}</a>
            <span class="dim"><Span from={job.created} /></span>
          </div>
          <div class="soft">{job.cause?.text ?? 'its turn comes next'}</div>
        </div>
      ))}
    </section>
  );
}

export function Gauge({ name, used, whole, show }: { name: string; used: number; whole: number; show: (n: number) => string }) {
  if (!whole) return null;
  return (
    <div>
      <div class="metric-line"><span class="soft">{name}</span><span class="num">{show(used)} of {show(whole)}</span></div>
      <div class="bar"><i style={{ width: `${Math.min(100, (100 * used) / whole)}%` }} /></div>
    </div>
  );
}

function MachineCard() {
  const queue = useLoaded('queue', api.queue);
  const again = useThrottled(queue.reload, 3000);
  useNews((news) => isJobs(news) && again());
  if (!queue.data) return null;
  const m = queue.data.machine;
  const load = Array.isArray(m.load) ? m.load[0] : m.load;
  return (
    <section class="card stack" style={{ gap: '10px' }}>
      <header style={{ margin: '0' }}><h2>Machine</h2><span class="dim num">load {number(load)}</span></header>
      <Gauge name="CPUs reserved" used={m.cpus_used} whole={m.cpus} show={(n) => number(n)} />
      <Gauge name="Memory reserved" used={m.memory_used} whole={m.memory} show={bytes} />
      <Gauge name="GPUs reserved" used={m.gpus_used} whole={m.gpus} show={(n) => number(n)} />
    </section>
  );
}

function FirstSteps() {
  return (
    <section class="card">
      <div class="empty">
        <h2>Nothing has run here yet</h2>
        <p>Three commands to type; this page follows along.</p>
        <div class="stack" style={{ gap: '8px', width: 'min(460px, 100%)' }}>
          <Command text="ath run -- python train.py" />
          <Command text="ath logs @last --follow" />
          <Command text="ath show @last" />
        </div>
      </div>
    </section>
  );
}

function Recent({ list }: { list: JobSummary[] }) {
  return (
    <section class="card flush">
      <header><h2>Recent</h2><a href={href(['runs'])}>All jobs & runs</a></header>
      <div class="scroll" tabIndex={0}>
        <table class="plain-table">
          <tbody>
            {list.map((job) => (
              <tr key={job.id}>
                <td><a href={href(['job', job.id])}>{job.name}</a></td>
                <td><State state={job.shown_state} bare /></td>
                <td class="dim wide-only">{job.experiment || '–'}</td>
                <td class="right"><Took of={job} /></td>
                <td class="right dim"><Time at={job.ended ?? job.created} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

export function Home() {
  const [day] = useState(() => Date.now() - 7 * 86_400_000);
  const state = jobsState.value;
  const list = jobs.value;
  if (!state.loaded) {
    return <div class="page">{state.error ? <Failure error={state.error} retry={() => void loadJobs()} /> : <Loading />}</div>;
  }
  const running = list.filter((job) => !isOver(job.state) && job.state !== 'Queued');
  const waiting = list.filter((job) => job.state === 'Queued');
  const failed = list.filter((job) => job.state === 'Failed' && Date.parse(job.ended ?? '') > day).slice(0, 5);
  const recent = list.filter((job) => isOver(job.state)).slice(0, 10);
  return (
    <div class="page">
      <div class="page-head">
        <h1>{running.length ? `${plural(running.length, 'job')} running` : 'Nothing runs now'}</h1>
        {waiting.length ? <span class="dim">{plural(waiting.length, 'job')} waiting</span> : null}
      </div>
      {list.length === 0 ? <FirstSteps /> : (
        <div class="stack">
          {running.length ? (
            <div class="cards">{running.slice(0, kTrends).map((job) => <JobCard key={job.id} job={job} />)}</div>
          ) : null}
          <div class="columns">
            <div class="stack">
              {failed.length ? <Failed list={failed} /> : null}
              <Recent list={recent.length ? recent : list.slice(0, 10)} />
            </div>
            <div class="stack">
              <MachineCard />
              {waiting.length ? <Waiting list={waiting.slice(0, 8)} /> : null}
            </div>
          </div>
        </div>
      )}
    </div>
  );
}

