// A new job like this one, with parameters changed.
import { useState } from 'preact/hooks';

import { Dialog } from '../../parts/Dialog';
import { Icon } from '../../parts/Icon';
import { api } from '../../state/api';
import { go } from '../../state/router';
import { tellDone, tellFailure } from '../../state/toast';
import type { Job, Param, Spec } from '../../state/types';

// What a text means in a job file: the script sees the same kind of value as before.
function kindOf(value: string, before: string | undefined): string {
  if (before === 'number' && value.trim() !== '' && Number.isFinite(Number(value))) return 'number';
  if (before === 'bool' && /^(true|false)$/.test(value)) return 'bool';
  if (before === 'json') return 'json';
  if (before === undefined && value.trim() !== '' && Number.isFinite(Number(value))) return 'number';
  return 'string';
}

export function CloneDialog({ job, close }: { job: Job; close: () => void }) {
  const [params, setParams] = useState<Param[]>(job.spec.params ?? []);
  const [name, setName] = useState('');
  const [busy, setBusy] = useState(false);
  const change = (i: number, part: Partial<Param>) =>
    setParams(params.map((one, k) => (k === i ? { ...one, ...part } : one)));
  const start = async () => {
    setBusy(true);
    const before = new Map((job.spec.params ?? []).map((one) => [one.name, one]));
    const spec: Spec = {
      ...job.spec,
      name,
      params: params.filter((one) => one.name.trim()).map((one) => {
        const old = before.get(one.name);
        return old && old.value === one.value ? old
          : { name: one.name.trim(), value: one.value, kind: kindOf(one.value, old ? old.kind ?? 'string' : undefined) };
      }),
    };
    try {
      const made = await api.submit(spec);
      tellDone(`Started ${made.name}`);
      close();
      go(['job', made.id]);
    } catch (error) {
      tellFailure(error, 'clone');
      setBusy(false);
    }
  };
  return (
    <Dialog title={`Clone ${job.name}`} close={close} footer={
      <>
        <button class="button" onClick={close}>Cancel</button>
        <button class="button main" disabled={busy} onClick={() => void start()}>Start</button>
      </>
    }>
      <label class="field"><span>Name (a new one is found when empty)</span>
        <input type="text" value={name} onInput={(e) => setName(e.currentTarget.value)} /></label>
      <div class="field">
        <span>Parameters</span>
        {params.map((one, i) => (
          <div class="row" key={i}>
            <input type="text" class="mono" style={{ width: '40%' }} aria-label={`Name of parameter ${i + 1}`} value={one.name}
              onInput={(e) => change(i, { name: e.currentTarget.value })} />
            <input type="text" class="mono grow" aria-label={`Value of ${one.name || `parameter ${i + 1}`}`} value={one.value}
              onInput={(e) => change(i, { value: e.currentTarget.value })} />
            <button class="button plain small" aria-label={`Remove ${one.name}`} onClick={() => setParams(params.filter((_, k) => k !== i))}>
              <Icon name="close" />
            </button>
          </div>
        ))}
        <div><button class="button small" onClick={() => setParams([...params, { name: '', value: '' }])}>Add a parameter</button></div>
      </div>
      <p class="dim">Source, environment, data and limits stay as they were.</p>
    </Dialog>
  );
}
