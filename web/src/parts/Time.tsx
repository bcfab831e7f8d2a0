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

// From `from` to `to`, or to now while there is no `to`.
export function Span({ from, to }: { from: When; to?: When }) {
  const start = ms(from);
  if (Number.isNaN(start)) return <span class="dim">–</span>;
  const end = ms(to);
  return <span class="num">{duration((Number.isNaN(end) ? now.value : end) - start)}</span>;
}
