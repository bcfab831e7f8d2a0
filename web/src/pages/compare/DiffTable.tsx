// What differs between runs, and nothing else: parameters, source, packages, data, hardware,
// numbers. The best is highlighted if it is known which direction is better.
import { useMemo } from 'preact/hooks';

import { number } from '../../lib/format';
import { goalOf } from '../../lib/goal';
import { Empty } from '../../parts/Box';
import { api } from '../../state/api';
import { href } from '../../state/router';
import type { Difference, Run } from '../../state/types';
import { useLoaded } from '../../state/use';

const kMostJobs = 16;
const kSections: Record<string, string> = { params: 'Parameters', parameters: 'Parameters', metrics: 'Metrics', tags: 'Tags', source: 'Source', packages: 'Packages', data: 'Data', hardware: 'Hardware', command: 'Command' };

// What the runs themselves tell, also of those that no job made.
export function differences(runs: Run[], all: boolean): Difference[] {
  const rows: Difference[] = [];
  const add = (section: string, of: (run: Run) => Record<string, string>) => {
    const keys = [...new Set(runs.flatMap((run) => Object.keys(of(run))))].sort();
    for (const key of keys) {
      const values = runs.map((run) => of(run)[key] ?? null);
      if (all || new Set(values).size > 1) rows.push({ section, key, values });
    }
  };
  add('parameters', (run) => run.params);
  add('metrics', (run) => Object.fromEntries(Object.entries(run.metrics).map(([name, m]) => [name, String(m.last)])));
  add('tags', (run) => Object.fromEntries(Object.entries(run.tags).filter(([key]) => !/^(mlflow|athanor)\./.test(key))));
  return rows;
}

function bestOf(row: Difference): number {
  const goal = /^metric/.test(row.section) ? goalOf(row.key) : undefined;
  if (!goal || new Set(row.values).size < 2) return -1;
  const lower = goal === 'minimize';
  let best = -1;
  row.values.forEach((text, i) => {
    const value = Number(text);
    if (text === null || !Number.isFinite(value)) return;
    if (best < 0 || (lower ? value < Number(row.values[best]) : value > Number(row.values[best]))) best = i;
  });
  return best;
}

export function DiffTable({ runs, all }: { runs: Run[]; all: boolean }) {
  const jobs = runs.filter((run) => run.job).slice(0, kMostJobs);
  const whole = jobs.length === runs.length && jobs.length >= 2;
  const deep = useLoaded(whole && !all ? jobs.map((run) => run.id).join() : null, (signal) => api.diff(jobs.map((run) => run.id), signal));
  const rows = useMemo(() => (!all && whole && deep.data ? deep.data.differences : differences(runs, all)), [runs, all, deep.data, whole]);
  const sections = [...new Set(rows.map((row) => row.section))];
  if (rows.length === 0) return <Empty title="They do not differ" />;
  return (
    <div class="scroll">
      <table class="plain-table diff-table">
        <thead>
          <tr><th />{runs.map((run) => <th key={run.id}><a href={href(['job', run.id])}>{run.name}</a></th>)}</tr>
        </thead>
        <tbody>
          {sections.map((section) => [
            <tr key={section}><th class="head" colSpan={runs.length + 1} scope="rowgroup">{kSections[section] ?? section}</th></tr>,
            ...rows.filter((row) => row.section === section).slice(0, 300).map((row) => {
              const best = bestOf(row);
              const differs = new Set(row.values).size > 1;
              return (
                <tr key={`${section} ${row.key}`}>
                  <td class="soft">{row.key}</td>
                  {row.values.map((value, i) => (
                    <td key={i} class={`mono ${differs && !/^metric/.test(section) ? 'differs' : ''} ${i === best ? 'best' : ''}`} title={i === best ? `${value}, the best of these` : value ?? ''}>
                      {value === null || value === '' ? <span class="dim">–</span> : /^metric/.test(section) ? number(value) : value}
                    </td>
                  ))}
                </tr>
              );
            }),
          ])}
        </tbody>
      </table>
    </div>
  );
}
