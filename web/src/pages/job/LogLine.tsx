// One line of a log, with its number as a link, its colours, and what was searched for marked.
import { useState } from 'preact/hooks';

import { ansi, lastPart, type Span } from '../../lib/ansi';

function styleOf(span: Span): Record<string, string> | undefined {
  if (!span.fg && !span.bg) return undefined;
  const colour = (c: string) => (c.startsWith('#') ? c : `var(--${c})`);
  return { ...(span.fg ? { color: colour(span.fg) } : {}), ...(span.bg ? { background: colour(span.bg) } : {}) };
}

function Marked({ text, find }: { text: string; find?: RegExp }) {
  if (!find) return <>{text}</>;
  const out = [];
  let from = 0;
  for (const match of text.matchAll(find)) {
    if (!match[0]) continue;
    out.push(text.slice(from, match.index), <mark key={match.index}>{match[0]}</mark>);
    from = match.index + match[0].length;
  }
  return <>{out}{text.slice(from)}</>;
}

const kLongest = 4000; // characters drawn of one line, before the user asks for the rest

export function LogLine({ index, top, text, rank, link, on, error, find }: {
  index: number;
  top: number;
  text: string | undefined;
  rank?: number;
  link: string;
  on: boolean;
  error: boolean;
  find?: RegExp;
}) {
  const [whole, setWhole] = useState(false);
  const left = text === undefined ? 0 : lastPart(text).length - kLongest;
  const cut = left > 0 && !whole;
  return (
    <div class={`log-line ${on ? 'on' : ''} ${error ? 'error' : ''} ${text === undefined ? 'pending' : ''}`}
      style={{ transform: `translateY(${top}px)` }}>
      <a href={link} aria-label={`Link to line ${index + 1}`}>{index + 1}</a>
      {rank === undefined ? null : <i class={`rank r${rank % 4}`} title={`Rank ${rank}`}>{rank}</i>}
      <span>
        {text === undefined ? '…' : ansi(text, cut ? kLongest : undefined).map((span, i) => (
          <span key={i} class={`${span.bold ? 'b ' : ''}${span.dim ? 'd ' : ''}${span.italic ? 'i ' : ''}${span.underline ? 'u' : ''}`}
            style={styleOf(span)}>
            <Marked text={span.text} find={find} />
          </span>
        ))}
        {cut ? <button class="link" onClick={() => setWhole(true)}> … {left} more</button> : null}
      </span>
    </div>
  );
}
