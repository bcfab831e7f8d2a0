// A run that came through MLflow's door: no job, so no attempts, log or cost.
import { number } from '../../lib/format';
import { Time } from '../../parts/Time';
import { href } from '../../state/router';
import type { Run } from '../../state/types';
import { Labels } from './Labels';
import { Note } from './Note';

export function RunOverview({ run }: { run: Run }) {
  const metrics = Object.entries(run.metrics);
  return (
    <div class="columns">
      <div class="stack">
        <Note run={run} />
        <section class="card flush">
          <header><h2>Metrics</h2><a href={href(['job', run.id, 'charts'])}>Charts</a></header>
          <div class="scroll" tabIndex={0}>
            <table class="plain-table">
              <thead><tr><th>Name</th><th class="right">Last</th><th class="right">Step</th><th class="right">Lowest</th><th class="right">Highest</th></tr></thead>
              <tbody>
                {metrics.slice(0, 100).map(([name, m]) => (
                  <tr key={name}>
                    <td>{name}</td><td class="right mono">{number(m.last)}</td><td class="right">{m.step}</td>
                    <td class="right mono">{number(m.min)}</td><td class="right mono">{number(m.max)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      </div>
      <div class="stack">
        <Labels title="Parameters" rows={Object.entries(run.params)} />
        <section class="card">
          <header><h2>Facts</h2></header>
          <dl class="facts">
            <dt>Id</dt><dd class="mono">{run.id}</dd>
            <dt>MLflow id</dt><dd class="mono">{run.run_id}</dd>
            <dt>User</dt><dd>{run.user || '–'}</dd>
            <dt>Started</dt><dd><Time at={run.started} exact /></dd>
            <dt>Ended</dt><dd><Time at={run.ended} exact /></dd>
          </dl>
        </section>
        <Labels title="Tags" rows={Object.entries(run.tags).filter(([key]) => !key.startsWith('mlflow.'))} run={run.id} />
      </div>
    </div>
  );
}
