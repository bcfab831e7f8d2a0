// A note about a run, in Markdown; everyone who may change the run can edit it.
import { useState } from 'preact/hooks';

import { Markdown } from '../../parts/Markdown';
import { api } from '../../state/api';
import { tellFailure } from '../../state/toast';
import type { Run } from '../../state/types';

export function Note({ run }: { run: Run }) {
  const [saved, setSaved] = useState<string | undefined>(undefined);
  const [draft, setDraft] = useState<string | undefined>(undefined);
  const note = saved ?? run.tags['mlflow.note.content'] ?? '';
  const save = async () => {
    try {
      await api.patchRun(run.id, { note: draft });
      setSaved(draft);
      setDraft(undefined);
    } catch (error) {
      tellFailure(error, 'note');
    }
  };
  if (draft === undefined && !note) {
    return <div><button class="button small" onClick={() => setDraft('')}>Add a note</button></div>;
  }
  return (
    <section class="card">
      <header>
        <h2>Note</h2>
        {draft === undefined ? <button class="button small" onClick={() => setDraft(note)}>Edit</button> : null}
      </header>
      {draft === undefined ? <Markdown text={note} /> : (
        <div class="stack" style={{ gap: '8px' }}>
          <textarea rows={6} aria-label="Note" placeholder="Markdown" value={draft} onInput={(e) => setDraft(e.currentTarget.value)} />
          <div class="row">
            <button class="button main" onClick={() => void save()}>Save</button>
            <button class="button" onClick={() => setDraft(undefined)}>Cancel</button>
          </div>
        </div>
      )}
    </section>
  );
}
