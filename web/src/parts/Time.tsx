// Times as a person reads them, with the exact local time and UTC on hover; durations that grow.
import { ago, duration, localTime, utcTime } from '../lib/format';
import { now } from '../state/use';

type When = string | number | undefined;

const ms = (when: When) => (typeof when === 'string' ? Date.parse(when) : when ?? NaN);

export function Time({ at, exact }: { at: When; exact?: boolean }) {
  const time = ms(at);
  if (Number.isNaN(time)) return <span class="dim">–</span>;
  return (
    <time dateTime={new Date(time).toISOString()} title={`${localTime(time)} local\n${utcTime(time)}`} class="num">
      {exact ? localTime(time) : ago(now.value - time)}
    </time>
  );
}

// What `ath` calls "took": from when a script first ran until the job ended, or now. A job that
// still waits says so; one that never ran took nothing.
export function Took({ of, waiting }: { of: { created?: string; started?: string; ended?: string }; waiting?: boolean }) {
  if (of.started) return <Span from={of.started} to={of.ended} />;
  if (waiting && !of.ended && of.created) return <>waiting for <Span from={of.created} /></>;
  return <span class="dim">–</span>;
}

// From `from` to `to`, or to now while there is no `to`.
export function Span({ from, to }: { from: When; to?: When }) {
  const start = ms(from);
  if (Number.isNaN(start)) return <span class="dim">–</span>;
  const end = ms(to);
  return <span class="num">{duration((Number.isNaN(end) ? now.value : end) - start)}</span>;
}
