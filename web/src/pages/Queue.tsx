// What waits, for what, and until about when; and how the machine is used.
import { bytes, duration, number } from '../lib/format';
import { Await, Empty } from '../parts/Box';
import { Command } from '../parts/Command';
import { State } from '../parts/State';
import { Span, Took } from '../parts/Time';
import { api } from '../state/api';
import { isOver, jobs } from '../state/jobs';
import { href } from '../state/router';
import { isJobs } from '../state/live';
import { useLoaded, useNews, useThrottled } from '../state/use';
import { Gauge } from './Home';

export function Queue() {
  const queue = useLoaded('queue', api.queue);
  const again = useThrottled(queue.reload, 1500);
  useNews((news) => isJobs(news) && again());
  const running = jobs.value.filter((job) => !isOver(job.state) && job.state !== 'Queued');
  return (
    <div class="page">
      <div class="page-head"><h1>Queue</h1></div>
      <Await of={queue}>
        {({ waiting, matched, machine }) => (
          <div class="columns">
            <section class="card flush">
              <header><h2>Waiting</h2><span class="dim">{matched}</span></header>
              {waiting.length === 0 ? <Empty title="Nothing waits" /> : (
                <div class="scroll">
                  <table class="plain-table">
                    <thead><tr><th>#</th><th>Job</th><th>Waits for</th><th class="right">Since</th><th class="right">Starts in about</th></tr></thead>
                    <tbody>
                      {waiting.map((one) => (
                        <tr key={one.job.id}>
                          <td class="dim">{one.position}</td>
                          <td><a href={href(['job', one.job.id])}>{one.job.name}</a></td>
                          <td>{one.reason || 'its turn'}</td>
                          <td class="right"><Span from={one.since_ms} /></td>
                          <td class="right">{one.estimate_ms === null ? 'not known' : duration(one.estimate_ms)}</td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                  {matched > waiting.length ? (
                    <p class="dim" style={{ padding: '8px 16px 14px' }}>
                      The first {waiting.length} of {matched}. All of them: <Command text="ath queue -a" inline />
                    </p>
                  ) : null}
                </div>
              )}
            </section>
            <div class="stack">
              <section class="card stack" style={{ gap: '10px' }}>
                <header style={{ margin: '0' }}><h2>Machine</h2>
                  <span class="dim num">load {number(Array.isArray(machine.load) ? machine.load[0] : machine.load)}</span></header>
                <Gauge name="CPUs reserved" used={machine.cpus_used} whole={machine.cpus} show={(n) => number(n)} />
                <Gauge name="Memory reserved" used={machine.memory_used} whole={machine.memory} show={bytes} />
                <Gauge name="GPUs reserved" used={machine.gpus_used} whole={machine.gpus} show={(n) => number(n)} />
              </section>
              <section class="card flush">
                <header><h2>On the machine now</h2></header>
                {running.length === 0 ? <p class="dim" style={{ padding: '0 16px 14px' }}>Nothing runs now.</p> : running.map((job) => (
                  <div key={job.id} class="fail-row"><div class="row">
                    <a class="grow cut" href={href(['job', job.id])}>{job.name}</a>
                    <State state={job.shown_state} bare /><span class="dim"><Took of={job} /></span>
                  </div></div>
                ))}
              </section>
            </div>
          </div>
        )}
      </Await>
    </div>
  );
}
