// Metrics of several runs, drawn over each other.
import { useMemo } from 'preact/hooks';

import { ChartGrid } from '../../charts/ChartGrid';
import { plural } from '../../lib/format';
import { kSeriesColours, seriesColour } from '../../lib/palette';
import { colours } from '../../state/prefs';
import { href } from '../../state/router';
import type { Run } from '../../state/types';
import { dark } from '../../state/use';

export const kLines = 20; // runs drawn over each other

function Legend({ runs }: { runs: Run[] }) {
  return (
    <div class="legend">
      {runs.map((run, i) => (
        <span key={run.id}>
          <i class="swatch" style={{ background: colourOf(run, i) }} />
          <a class="cut" href={href(['job', run.id])}>{run.name}</a>
        </span>
      ))}
    </div>
  );
}

const colourOf = (run: Run, i: number) => seriesColour(colours.value[run.id] ?? i % kSeriesColours, dark.value);

export function Overlay({ runs, metrics }: { runs: Run[]; metrics: string[] }) {
  const shown = runs.slice(0, kLines);
  const lines = useMemo(() => shown.map((run, i) => ({ id: run.id, label: run.name, colour: colourOf(run, i) })),
    [shown.map((run) => run.id).join(), colours.value, dark.value]);
  return (
    <>
      <Legend runs={shown} />
      {runs.length > kLines ? <p class="dim">The first {kLines} of {plural(runs.length, 'run')}.</p> : null}
      <ChartGrid runs={lines} metrics={metrics} sync="compare" />
    </>
  );
}
