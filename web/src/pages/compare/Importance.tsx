// Which parameters matter for a metric, as far as these runs can tell.
import { Failure, Loading } from '../../parts/Box';
import { plural } from '../../lib/format';
import { api } from '../../state/api';
import { useLoaded } from '../../state/use';

export function Bars({ list }: { list: { name: string; importance: number }[] }) {
  const most = Math.max(...list.map((one) => one.importance), 1e-9);
  return (
    <div class="importance">
      {list.map((one) => (
        <>
          <span class="cut">{one.name}</span>
          <span class="bar"><i style={{ width: `${(100 * one.importance) / most}%` }} /></span>
          <span class="num dim">{(100 * one.importance).toFixed(1)} %</span>
        </>
      ))}
    </div>
  );
}

// Which runs are meant: those named, or those of an experiment that pass a filter.
export interface Among {
  runs?: string;
  experiment?: string;
  filter?: string;
}

export function Importance({ metric, among, goal }: { metric: string; among: Among; goal: string }) {
  const query = { metric, goal, ...among };
  const found = useLoaded(metric ? JSON.stringify(query) : null, (signal) => api.importance(query, signal));
  if (found.error) return <Failure error={found.error} />;
  if (!found.data) return metric ? <Loading /> : null;
  const list = [...found.data.params].sort((a, b) => b.importance - a.importance).slice(0, 12);
  if (!list.length) return <p class="dim">Too few finished runs with different parameters to tell.</p>;
  return (
    <>
      <Bars list={list} />
      <p class="dim">from {plural(found.data.runs, 'run')}</p>
    </>
  );
}
