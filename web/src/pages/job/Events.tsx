// Everything that happened to a job, with each change's cause.
import { Await } from '../../parts/Box';
import { State } from '../../parts/State';
import { Time } from '../../parts/Time';
import { api } from '../../state/api';
import type { Job } from '../../state/types';
import { useLoaded } from '../../state/use';
import { eventWords } from './Overview';

export function Events({ job }: { job: Job }) {
  const events = useLoaded(`${job.id} ${job.updated} ${job.state}`, (signal) => api.events(job.id, signal));
  return (
    <section class="card flush">
      <Await of={events}>
        {(list) => (
          <div class="scroll" tabIndex={0}>
            <table class="plain-table">
              <thead><tr><th>#</th><th>Time</th><th>What</th><th>State after it</th><th>Attempt</th><th>Why</th></tr></thead>
              <tbody>
                {[...list].reverse().map((event) => (
                  <tr key={event.seq}>
                    <td class="dim num">{event.seq}</td>
                    <td><Time at={event.at} exact /></td>
                    <td>{eventWords(event.name)}</td>
                    <td><State state={event.state} bare /></td>
                    <td>{event.attempt || '–'}</td>
                    <td>{event.cause?.text}{event.cause?.hint ? <div class="mono dim">{event.cause.hint}</div> : null}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Await>
    </section>
  );
}
