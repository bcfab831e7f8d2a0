// A new job from the text of a job file, checked by the server while it is typed. A browser is in no
// folder, so its files are those of an earlier job, or none.
import { useEffect, useRef, useState } from 'preact/hooks';

import { jobText, kTemplate, placeIn } from '../lib/jobfile';
import { plural } from '../lib/format';
import { ranksText } from '../lib/ranks';
import { Failure } from '../parts/Box';
import { api, ApiError } from '../state/api';
import { jobs } from '../state/jobs';
import { go, route, setQuery } from '../state/router';
import { useTitle } from '../state/title';
import { tellDone } from '../state/toast';
import type { Spec } from '../state/types';
import { useLoaded } from '../state/use';

const kPauseMs = 350; // after the last key

type Checked = { spec?: Spec; error?: Error };

function useCheck(text: string, source: string): Checked | undefined {
  const [checked, setChecked] = useState<Checked | undefined>(undefined);
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      api.jobFile({ text, source_of: source, check: true }, abort.signal).then(
        (reply) => setChecked({ spec: reply.spec }),
        (error: Error) => error.name !== 'AbortError' && setChecked({ error }));
    }, kPauseMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text, source]);
  return checked;
}

function Verdict({ checked, show }: { checked: Checked | undefined; show: () => void }) {
  if (!checked) return <p class="dim">Checking…</p>;
  const { spec, error } = checked;
  if (error) {
    const where = error instanceof ApiError ? /:(\d+):(\d+)$/.exec(error.where) : null;
    return (
      <div class="stack">
        {where ? <button class="button small" onClick={show}>Line {where[1]}, column {where[2]}</button> : null}
        <Failure error={error} />
      </div>
    );
  }
  const { resources = {}, source = {} } = spec!;
  return (
    <dl class="facts" aria-label="What it would be">
      <dt>Command</dt><dd class="mono">{spec!.command?.join(' ')}</dd>
      <dt>Parameters</dt><dd class="mono">{spec!.params?.map((one) => `${one.name}=${one.value}`).join(' ') || '–'}</dd>
      <dt>Needs</dt><dd>{resources.type ?? plural((resources.cpu_millis ?? 0) / 1000 || 1, 'CPU')}{resources.gpus ? `, ${plural(resources.gpus, 'GPU')}` : ''}{ranksText(resources) ? ` on each of ${ranksText(resources)}` : ''}</dd>
      <dt>Files</dt><dd>{source.bundle ? plural(source.files ?? 0, 'file') : 'none'}</dd>
    </dl>
  );
}

export function NewJob() {
  const source = route.value.query.source ?? '';
  useTitle('New job');
  const like = useLoaded(source || null, (signal) => api.job(source, signal));
  const [text, setText] = useState<string | undefined>(undefined); // as typed; until then as suggested
  const [failed, setFailed] = useState<Error | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const suggested = source && like.data ? jobText(like.data.spec) : kTemplate;
  const now = text ?? suggested;
  const checked = useCheck(now, like.error ? '' : source);
  const show = () => {
    const error = checked?.error;
    const at = error instanceof ApiError ? placeIn(now, error.where) : undefined;
    if (!at || !box.current) return;
    box.current.focus();
    box.current.setSelectionRange(at.from, at.to);
  };
  const start = async () => {
    setBusy(true);
    setFailed(undefined);
    try {
      const made = await api.submitFile({ text: now, source_of: source });
      tellDone(`Started ${made.name}`);
      go(['job', made.id]);
    } catch (error) {
      setFailed(error as Error);
      setBusy(false);
    }
  };
  const lines = now.split('\n').length;
  return (
    <div class="page">
      <div class="page-head"><h1>New job</h1></div>
      <div class="columns">
        <section class="card">
          <header><h2>Job file</h2></header>
          <div class="editor">
            <pre aria-hidden="true">{Array.from({ length: lines }, (_, i) => i + 1).join('\n')}</pre>
            <textarea ref={box} aria-label="Job file" spellcheck={false} wrap="off" rows={Math.max(14, lines)} value={now}
              aria-invalid={!!checked?.error} onInput={(e) => setText(e.currentTarget.value)} />
          </div>
        </section>
        <div class="stack">
          <section class="card">
            <header><h2>Source</h2></header>
            <label class="field"><span>Files of an earlier job (none when empty)</span>
              <input type="text" list="jobs-with-source" aria-label="Source of" placeholder="name or id of a job" value={source}
                onChange={(e) => setQuery({ source: e.currentTarget.value.trim() || undefined })} />
              <datalist id="jobs-with-source">{jobs.value.slice(0, 100).map((job) => <option key={job.id} value={job.name} />)}</datalist>
            </label>
            {like.error ? <Failure error={like.error} /> : null}
            <p class="dim">Its commit, uncommitted change and variables come with them. A folder of yours: <code>ath run job.yaml</code></p>
          </section>
          <section class="card" aria-live="polite">
            <header><h2>{checked?.error ? 'Not yet a job' : 'The job'}</h2></header>
            <Verdict checked={checked} show={show} />
            {failed ? <Failure error={failed} /> : null}
            <div class="row" style={{ marginTop: '12px' }}>
              <button class="button main" disabled={busy || !checked?.spec} onClick={() => void start()}>Start</button>
            </div>
          </section>
        </div>
      </div>
    </div>
  );
}
