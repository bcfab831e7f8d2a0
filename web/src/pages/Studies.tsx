// Searches for good parameters: all of them, or one.
import { number, plural } from '../lib/format';
import { Await, Empty } from '../parts/Box';
import { State } from '../parts/State';
import { Time } from '../parts/Time';
import { api } from '../state/api';
import { href, route } from '../state/router';
import { isJobs } from '../state/live';
import { useLoaded, useNews, useThrottled } from '../state/use';
import { StudyPage } from './StudyPage';

function List() {
  const studies = useLoaded('studies', api.studies);
  const again = useThrottled(studies.reload, 3000);
  useNews((news) => isJobs(news) && again());
  return (
    <div class="page">
      <div class="page-head"><h1>Studies</h1></div>
      <Await of={studies}>
        {(list) => list.length === 0 ? <Empty title="No study yet"><p>Search for good parameters with <code>ath tune study.yaml</code></p></Empty> : (
          <section class="card flush scroll">
            <table class="plain-table">
              <thead><tr><th>Study</th><th>State</th><th>Goal</th><th>By</th><th class="right">Trials</th><th class="right">Best</th><th class="right">Started</th></tr></thead>
              <tbody>
                {list.map((one) => (
                  <tr key={one.id}>
                    <td><a href={href(['studies', one.name])}>{one.name}</a></td>
                    <td><State state={one.state} bare /></td>
                    <td>{one.goal} {one.metric}</td>
                    <td class="dim">{one.strategy}</td>
                    <td class="right">{one.counts.done ?? 0} of {one.max_trials || '–'}
                      {one.counts.failed ? <div class="dim">{plural(one.counts.failed, 'failure')}</div> : null}</td>
                    <td class="right mono">{number(one.best?.value)}</td>
                    <td class="right"><Time at={one.created} /></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </section>
        )}
      </Await>
    </div>
  );
}

export function Studies() {
  const name = route.value.path[1];
  return name ? <StudyPage key={name} name={name} /> : <List />;
}
