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

export function Importance({ metric, filter, goal }: { metric: string; filter: string; goal: string }) {
  const found = useLoaded(metric ? `${metric} ${filter} ${goal}` : null, (signal) => api.importance({ metric, filter, goal }, signal));
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
