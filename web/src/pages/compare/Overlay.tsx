// Metrics of several runs, drawn over each other.
import { useMemo, useState } from 'preact/hooks';

import { ChartGrid } from '../../charts/ChartGrid';
import { plural } from '../../lib/format';
import { Icon } from '../../parts/Icon';
import { seriesColour } from '../../lib/palette';
import { colours } from '../../state/prefs';
import { href } from '../../state/router';
import type { Run } from '../../state/types';
import { dark } from '../../state/use';

export const kLines = 20; // runs drawn over each other

// A click hides a run or shows it again; the arrow next to it opens its page.
function Legend({ runs, hidden, onToggle }: { runs: Run[]; hidden: Set<string>; onToggle: (id: string) => void }) {
  return (
    <div class="legend">
      {runs.map((run, i) => (
        <span key={run.id}>
          <button class={`legend-entry ${hidden.has(run.id) ? 'off' : ''}`} aria-pressed={!hidden.has(run.id)}
            title={hidden.has(run.id) ? `Show ${run.name}` : `Hide ${run.name}`} onClick={() => onToggle(run.id)}>
            <i class="swatch" style={{ background: colourOf(run, i) }} />
            <span class="cut">{run.name}</span>
          </button>
          <a href={href(['job', run.id])} aria-label={`Open ${run.name}`} title={`Open ${run.name}`}><Icon name="right" /></a>
        </span>
      ))}
    </div>
  );
}

const colourOf = (run: Run, i: number) => seriesColour(colours.value[run.id] ?? i, dark.value);

export function Overlay({ runs, metrics }: { runs: Run[]; metrics: string[] }) {
  const shown = runs.slice(0, kLines);
  const [hidden, setHidden] = useState(new Set<string>());
  const lines = useMemo(() => shown.map((run, i) => ({ id: run.id, label: run.name, colour: colourOf(run, i) }))
    .filter((line) => !hidden.has(line.id)), [shown.map((run) => run.id).join(), colours.value, dark.value, hidden]);
  const toggle = (id: string) => {
    const next = new Set(hidden);
    if (!next.delete(id)) next.add(id);
    setHidden(next);
  };
  return (
    <>
      <Legend runs={shown} hidden={hidden} onToggle={toggle} />
      {runs.length > kLines ? <p class="dim">The first {kLines} of {plural(runs.length, 'run')}.</p> : null}
      <ChartGrid runs={lines} metrics={metrics} sync="compare" />
    </>
  );
}
