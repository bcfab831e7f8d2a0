// The hosts and ranks of a job's last attempt: how each is, and what it uses. Only if there are several.
import { bytes, number, plural } from '../../lib/format';
import { rankCount } from '../../lib/ranks';
import { State } from '../../parts/State';
import { href } from '../../state/router';
import type { Host, Job } from '../../state/types';

function memory({ usage, exit, state }: Host): string {
  if (usage?.memory_bytes && state === 'Running') return bytes(usage.memory_bytes);
  const peak = exit?.memory_peak ?? usage?.memory_peak;
  return peak ? `${bytes(peak)} at most` : '–';
}

export function Hosts({ job }: { job: Job }) {
  const hosts = job.attempts?.[job.attempts.length - 1]?.hosts ?? [];
  if (hosts.length === 0 || rankCount(job.spec.resources) === 1) return null;
  return (
    <section class="card flush">
      <header><h2>{plural(hosts.length, 'host')}</h2><a href={href(['job', job.id, 'system'])}>Use</a></header>
      <div class="scroll" tabIndex={0}>
        <table class="plain-table">
          <thead><tr><th>Host</th><th>State</th><th class="right">CPU</th><th class="right">Memory</th><th>Ranks</th></tr></thead>
          <tbody>
            {hosts.map((host) => (
              <tr key={host.name}>
                <td><a href={href(['job', job.id, 'logs'], { host: host.name })} title={`Log of ${host.name}`}>{host.name}</a></td>
                <td><State state={host.state} /></td>
                <td class="right">{host.usage && host.state === 'Running' ? `${number(host.usage.cpu_percent)} %` : '–'}</td>
                <td class="right">{memory(host)}</td>
                <td>{host.rank_text}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
