// What can be done to all selected runs at once. What destroys can be undone for a while.
import { useState } from 'preact/hooks';

import { plural } from '../../lib/format';
import { Ask } from '../../parts/Ask';
import { Dialog } from '../../parts/Dialog';
import { Icon } from '../../parts/Icon';
import { api } from '../../state/api';
import { isOver } from '../../state/jobs';
import { go } from '../../state/router';
import { dismiss, tellDone, tellFailure } from '../../state/toast';
import type { Run } from '../../state/types';
import { stateOf } from './cell';

// All at once would fill the browser's six connections for long.
async function each(runs: Run[], act: (run: Run) => Promise<unknown>): Promise<Run[]> {
  const done: Run[] = [];
  for (const run of runs) {
    try {
      await act(run);
      done.push(run);
    } catch (error) {
      tellFailure(error, run.name);
    }
  }
  return done;
}

export function BulkBar({ runs, clear, reload, drop }: {
  runs: Run[];
  clear: () => void;
  reload: () => void;
  drop: (ids: Set<string>) => void;
}) {
  const [tagging, setTagging] = useState(false);
  const [tag, setTag] = useState('');
  const [asks, setAsks] = useState(false);
  const live = runs.filter((run) => run.job && !isOver(stateOf(run)));
  const over = runs.filter((run) => run.job && isOver(stateOf(run)));
  const finish = () => {
    clear();
    reload();
  };
  const stop = async () => {
    const done = await each(live, (run) => api.stop(run.id));
    if (done.length) tellDone(`${plural(done.length, 'job')} asked to stop`);
    finish();
  };
  const retry = async () => {
    const made: string[] = [];
    await each(over, async (run) => made.push((await api.retry(run.id)).id));
    if (made.length) {
      const id = tellDone(`${plural(made.length, 'job')} started again`, () => {
        dismiss(id);
        made.forEach((job) => void api.stop(job).catch((error) => tellFailure(error)));
      });
    }
    finish();
  };
  const remove = async () => {
    drop(new Set(runs.map((run) => run.id)));
    const done = await each(runs, (run) => api.deleteRun(run.id));
    drop(new Set());
    if (done.length) {
      const id = tellDone(`${plural(done.length, 'run')} deleted`, () => {
        dismiss(id);
        void each(done, (run) => api.restoreRun(run.id)).then(reload);
      });
    }
    finish();
  };
  const putTag = async () => {
    const [key, ...value] = tag.split('=');
    setTagging(false);
    if (!key?.trim()) return;
    const before = new Map(runs.map((run) => [run.id, run.tags[key.trim()] ?? null]));
    const done = await each(runs, (run) => api.patchRun(run.id, { tags: { [key.trim()]: value.join('=').trim() } }));
    if (done.length) {
      const id = tellDone(`${plural(done.length, 'run')} tagged`, () => {
        dismiss(id);
        void each(done, (run) => api.patchRun(run.id, { tags: { [key.trim()]: before.get(run.id) ?? null } })).then(reload);
      });
    }
    finish();
  };
  return (
    <div class="bulk" role="toolbar" aria-label="Selected runs">
      <strong>{runs.length} selected</strong>
      <button class="button small" disabled={runs.length < 2} onClick={() => go(['compare'], { runs: runs.map((run) => run.id).join(',') })}>
        <Icon name="compare" /> Compare
      </button>
      <button class="button small" disabled={!live.length} onClick={() => setAsks(true)}><Icon name="stop" /> Stop</button>
      <button class="button small" disabled={!over.length} onClick={() => void retry()}><Icon name="retry" /> Retry</button>
      <button class="button small" onClick={() => setTagging(true)}><Icon name="tag" /> Tag</button>
      <button class="button small danger" disabled={live.length > 0} title={live.length ? 'Stop them first' : undefined} onClick={() => void remove()}>
        <Icon name="trash" /> Delete
      </button>
      <button class="button plain small" aria-label="Clear the selection" onClick={clear}><Icon name="close" /></button>
      {asks ? (
        <Ask title={`Stop ${plural(live.length, 'job')}?`} yes={live.length === 1 ? 'Stop it' : 'Stop them'} close={() => setAsks(false)} act={() => void stop()}
          text="Scripts that run are told to end and have their grace period to save; what waits leaves the queue. Retry starts them again." />
      ) : null}
      {tagging ? (
        <Dialog title={`Tag ${plural(runs.length, 'run')}`} close={() => setTagging(false)}
          footer={<button class="button main" onClick={() => void putTag()}>Tag</button>}>
          <label class="field"><span>Tag</span>
            <input type="text" placeholder="name=value" value={tag} onInput={(e) => setTag(e.currentTarget.value)}
              onKeyDown={(e) => e.key === 'Enter' && void putTag()} /></label>
        </Dialog>
      ) : null}
    </div>
  );
}
