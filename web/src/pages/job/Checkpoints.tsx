// The whole checkpoints of a job; a job that is over goes on from any of them.
import { bytes, plural } from '../../lib/format';
import { Time } from '../../parts/Time';
import { api } from '../../state/api';
import { isOver } from '../../state/jobs';
import type { Job } from '../../state/types';
import { useLoaded } from '../../state/use';
import { act } from './JobActions';

export function Checkpoints({ job }: { job: Job }) {
  const saved = job.attempts?.map((one) => one.saved?.id ?? '').join() ?? '';
  const list = useLoaded(saved.replace(/,/g, '') ? `${job.id} ${saved}` : null, (signal) => api.checkpoints(job.id, signal));
  if (!list.data?.checkpoints.length) return null;
  return (
    <section class="card flush">
      <header><h2>{plural(list.data.checkpoints.length, 'checkpoint')}</h2></header>
      <div class="scroll" tabIndex={0}>
        <table class="plain-table">
          <tbody>
            {list.data.checkpoints.map((one) => (
              <tr key={one.id}>
                <td>{one.step !== undefined ? `step ${one.step}` : one.id}</td>
                <td class="dim">attempt {one.attempt}</td>
                <td class="right">{bytes(one.bytes)}</td>
                <td class="right"><Time at={one.at} /></td>
                <td class="right">
                  {isOver(job.state) ? (
                    <button class="button small" onClick={() => void act('Resumed', () => api.resume(job.id, one.id), true)}>Resume from here</button>
                  ) : null}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
