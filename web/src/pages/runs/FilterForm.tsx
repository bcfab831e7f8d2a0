// A clause of the filter, clicked together.
import { useState } from 'preact/hooks';

import { comparatorsOf, fieldOf, formatClause, kMeanings, type Clause } from '../../lib/filter';
import { Dialog } from '../../parts/Dialog';
import { NamePicker } from './NamePicker';

const kAttributes: [string, string][] = [
  ['attributes.run_name', 'Name'], ['attributes.status', 'Status'], ['attributes.user_id', 'User'],
];

export function FilterForm({ add, close, experiment }: { add: (clause: Clause) => void; close: () => void; experiment?: string }) {
  const [clause, setClause] = useState<Clause>({ field: 'attributes.run_name', comparator: 'ILIKE', value: '' });
  const comparators = comparatorsOf(clause.field);
  const setField = (field: string) => {
    const known = comparatorsOf(field);
    setClause({ ...clause, field, comparator: known.includes(clause.comparator) ? clause.comparator : known[0]! });
  };
  return (
    <Dialog title="Add a filter" close={close} footer={
      <>
        <code class="grow cut" title="As the filter has it">{formatClause(clause)}</code>
        <button class="button main" onClick={() => { add(clause); close(); }}>Add</button>
      </>
    }>
      <div class="row wrap">
        {kAttributes.map(([field, text]) => (
          <label key={field} class="row"><input type="radio" name="field" checked={clause.field === field} onChange={() => setField(field)} /> {text}</label>
        ))}
      </div>
      <NamePicker experiment={experiment}>
        {(kind, row) => {
          const field = fieldOf(kind, row.name);
          return <><input type="radio" name="field" checked={clause.field === field} onChange={() => setField(field)} /><span class="cut mono">{row.name}</span></>;
        }}
      </NamePicker>
      <div class="row">
        <select aria-label="Comparator" value={clause.comparator} onChange={(e) => setClause({ ...clause, comparator: e.currentTarget.value })}>
          {comparators.map((one) => <option key={one} value={one}>{kMeanings[one]}</option>)}
        </select>
        {/NULL$/.test(clause.comparator) ? null : (
          <input type="text" class="grow mono" aria-label="Value" placeholder={clause.comparator === 'LIKE' ? '%part of it%' : /IN$/.test(clause.comparator) ? 'one, another' : 'value'}
            value={clause.value} onInput={(e) => setClause({ ...clause, value: e.currentTarget.value })} />
        )}
      </div>
    </Dialog>
  );
}
