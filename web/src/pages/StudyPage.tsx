// One study: how far it is, the best so far, which parameter matters and how, the curves of the best,
// and every trial.
import { useEffect, useMemo, useState } from 'preact/hooks';

import { money, number, plural } from '../lib/format';
import { Await } from '../parts/Box';
import { Ask } from '../parts/Ask';
import { Hint } from '../parts/Command';
import { Icon } from '../parts/Icon';
import { State } from '../parts/State';
import { Took } from '../parts/Time';
import { api } from '../state/api';
import { href } from '../state/router';
import { useTitle } from '../state/title';
import type { Run, Study, Trial } from '../state/types';
import { isJobs } from '../state/live';
import { useLoaded, useNews, useThrottled } from '../state/use';
import { varying } from './compare/axes';
import { BestSoFar } from './compare/BestSoFar';
import { Bars } from './compare/Importance';
import { Overlay } from './compare/Overlay';
import { Parallel, type Brushes } from './compare/Parallel';
import { Scatter } from './compare/Scatter';
import { act } from './job/JobActions';

const kShown = 8; // parameters
const kCurves = 10; // of the best trials

const kStates: Record<string, string> = {
  asked: 'Queued', queued: 'Queued', running: 'Running', stopping: 'Stopping', pausing: 'Stopping', paused: 'Interrupted', done: 'Completed', failed: 'Failed', stopped: 'Stopped',
};

// A trial seen as the run it is, for what draws runs.
function asRun(study: Study, trial: Trial): Run {
  const value = trial.value;
  return {
    id: trial.job ?? trial.name, run_id: '', name: trial.name, experiment: study.name, user: study.user,
    status: trial.state, created: trial.asked, started: trial.started, ended: trial.ended, job: true, tags: {},
    metrics: value === undefined ? {} : { [study.metric]: { last: value, step: trial.step ?? 0, min: value, max: value, count: 1 } },
    params: Object.fromEntries(Object.entries(trial.params).map(([name, one]) => [name, String(one)])),
  };
}

// Its trials, the best first.
function bestFirst(study: Study): Trial[] {
  const sign = study.goal === 'minimize' ? 1 : -1;
  return [...(study.trials ?? [])].sort((a, b) => sign * (a.value ?? sign * Infinity) - sign * (b.value ?? sign * Infinity));
}

function Trials({ study }: { study: Study }) {
  const list = study.trials ?? [];
  const names = [...new Set(list.flatMap((trial) => Object.keys(trial.params)))];
  const sorted = bestFirst(study);
  return (
    <section class="card flush">
      <header><h2>{plural(list.length, 'trial')}</h2><a href={href(['compare', 'charts'], { runs: sorted.flatMap((t) => t.job ?? []).slice(0, kCurves).join(',') })}>Charts of the best</a></header>
      <div class="scroll" tabIndex={0}>
        <table class="plain-table">
          <thead><tr><th>#</th><th>State</th><th class="right">{study.metric}</th>{names.map((name) => <th key={name} class="right">{name}</th>)}<th class="right">Took</th></tr></thead>
          <tbody>
            {sorted.slice(0, 500).map((trial) => (
              <tr key={trial.trial}>
                <td>{trial.job ? <a href={href(['job', trial.job])}>{trial.trial}</a> : trial.trial}</td>
                <td><State state={kStates[trial.shown_state] ?? trial.shown_state} bare />{trial.cause?.text ? <div class="dim">{trial.cause.text}</div> : null}</td>
                <td class="right mono">{number(trial.value)}</td>
                {names.map((name) => {
                  const value = trial.params[name];
                  return <td key={name} class="right mono">{typeof value === 'number' ? number(value) : value === undefined ? '–' : String(value)}</td>;
                })}
                <td class="right"><Took of={trial} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Body({ study }: { study: Study }) {
  const [brushes, setBrushes] = useState<Brushes>({});
  const runs = useMemo(() => (study.trials ?? []).filter((t) => t.value !== undefined).map((t) => asRun(study, t)), [study]);
  const params = useMemo(() => varying(runs).slice(0, kShown), [runs]);
  const ids = useMemo(() => [...params.map((name) => `p:${name}`), `m:${study.metric}`], [params, study.metric]);
  const curves = useMemo(() => bestFirst(study).filter((t) => t.job && t.value !== undefined).slice(0, kCurves).map((t) => asRun(study, t)), [study]);
  useEffect(() => setBrushes({}), [ids.join('\n')]);
  const { best } = study;
  return (
    <div class="stack">
      {study.hints?.map((hint) => (
        <div key={hint.text} class="note"><div>{hint.text}{hint.next ? <div style={{ marginTop: '6px' }}><Hint text={hint.next} /></div> : null}</div></div>
      ))}
      <div class="columns">
        <section class="card"><header><h2>Best so far</h2><span class="mono">{number(best?.value)}</span></header>
          <BestSoFar runs={runs} metric={study.metric} lowest={study.goal === 'minimize'} /></section>
        <div class="stack">
          {best ? (
            <section class="card">
              <header><h2>Best trial</h2>{best.job ? <a href={href(['job', best.job])}>{best.name}</a> : null}</header>
              <dl class="facts">
                {Object.entries(best.params).map(([name, value]) => <><dt>{name}</dt><dd class="mono">{String(value)}</dd></>)}
              </dl>
            </section>
          ) : null}
          {study.importance?.length ? (
            <section class="card"><header><h2>Importance</h2></header>
              <Bars list={study.importance.map((one) => ({ name: one.parameter, importance: one.share }))} /></section>
          ) : null}
        </div>
      </div>
      {ids.length > 1 ? (
        <section class="card"><header><h2>Parallel coordinates</h2></header>
          <Parallel runs={runs} ids={ids} brushes={brushes} onBrush={setBrushes} /></section>
      ) : null}
      {params.length ? (
        <section class="card"><header><h2>Slices</h2></header>
          <div style={{ display: 'grid', gridTemplateColumns: 'repeat(auto-fit, minmax(min(280px, 100%), 1fr))', gap: '16px' }}>
            {params.map((name) => <div key={name}><Scatter runs={runs} x={`p:${name}`} y={`m:${study.metric}`} colour={`m:${study.metric}`} /></div>)}
          </div>
        </section>
      ) : null}
      {curves.length ? (
        <section><h2>Learning curves of the best</h2><Overlay runs={curves} metrics={[study.metric]} /></section>
      ) : null}
      <Trials study={study} />
    </div>
  );
}

export function StudyPage({ name }: { name: string }) {
  const study = useLoaded(name, (signal) => api.study(name, signal));
  useTitle(study.data?.name ?? name);
  const [asks, setAsks] = useState(false);
  const again = useThrottled(study.reload, 2000);
  useNews((news) => isJobs(news) && again());
  return (
    <div class="page">
      <Await of={study}>
        {(one) => (
          <>
            <div class="page-head">
              <h1>{one.name}</h1>
              <State state={one.state} />
              <span class="dim">{one.goal} {one.metric} · {one.strategy} · {one.counts.done ?? 0} of {one.max_trials || '–'} · {money(one.cost_micros)}</span>
              {one.state === 'Running' ? (
                <div class="actions">
                  <button class="button danger" onClick={() => setAsks(true)}><Icon name="stop" /> Stop</button>
                </div>
              ) : null}
            </div>
            <Body study={one} />
            {asks ? (
              <Ask title={`Stop ${one.name}?`} yes="Stop it" no="Let it run" close={() => setAsks(false)}
                text="Trials that run are stopped, and no more are begun. What was found so far stays."
                act={() => void act('Asked to stop', () => api.stopStudy(one.id))} />
            ) : null}
          </>
        )}
      </Await>
    </div>
  );
}
