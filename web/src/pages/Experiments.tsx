// Experiments: what belongs together, with how many runs and when the last one was.
import { useEffect, useState } from 'preact/hooks';

import { count } from '../lib/format';
import { Await, Empty } from '../parts/Box';
import { Time } from '../parts/Time';
import { api } from '../state/api';
import { goInstead, href } from '../state/router';
import { isJobs } from '../state/live';
import { useLoaded, useNews, useThrottled } from '../state/use';

export function Experiments() {
  const [find, setFind] = useState('');
  const experiments = useLoaded('experiments', api.experiments);
  const again = useThrottled(experiments.reload, 3000);
  useNews((news) => isJobs(news) && again());
  return (
    <div class="page">
      <div class="page-head">
        <h1>Experiments</h1>
        <span class="actions"><input type="search" data-search placeholder="Find one" aria-label="Find an experiment" value={find}
          onInput={(e) => setFind(e.currentTarget.value)} /></span>
      </div>
      <Await of={experiments}>
        {(list) => {
          const shown = list.filter((one) => one.name.toLowerCase().includes(find.toLowerCase()));
          if (shown.length === 0) return <Empty title="No experiment"><p>Name one with <code>ath run --experiment NAME …</code></p></Empty>;
          return (
            <section class="card flush scroll">
              <table class="plain-table">
                <thead><tr><th>Name</th><th class="right">Runs</th><th class="right">Last</th><th /></tr></thead>
                <tbody>
                  {shown.map((one) => (
                    <tr key={one.id}>
                      <td><a href={href(['runs'], { experiment: one.name })}>{one.name}</a></td>
                      <td class="right">{count(one.runs)}</td>
                      <td class="right"><Time at={one.last_ms || undefined} /></td>
                      <td class="right"><a href={href(['compare'], { experiment: one.name })}>Compare</a></td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </section>
          );
        }}
      </Await>
    </div>
  );
}

// The runs of an experiment that is named by its number, as MLflow's clients print it.
export function ExperimentAt({ id }: { id: string }) {
  const experiments = useLoaded('experiments', api.experiments);
  const found = experiments.data?.find((one) => one.id === id);
  useEffect(() => {
    if (found) goInstead(['runs'], { experiment: found.name });
  }, [found]);
  return (
    <div class="page">
      <Await of={experiments}>
        {() => found ? null : (
          <Empty title={`No experiment ${id}`}><p>It may have been deleted. <a href={href(['experiments'])}>All experiments</a></p></Empty>
        )}
      </Await>
    </div>
  );
}
