// The files of a run: what it logged as artifacts, and what its job kept at the end.
import { bytes, plural } from '../../lib/format';
import { Await, Empty } from '../../parts/Box';
import { Icon } from '../../parts/Icon';
import { address, api, ApiError, part } from '../../state/api';
import { route, setQuery } from '../../state/router';
import { WORKING_FILES, type ArtifactEntry, type Job, type Output } from '../../state/types';
import { useLoaded } from '../../state/use';
import { FileView } from './FileView';

// Of the first host `files`, of the second `algo-2/files`.
const isListing = (name: string) => name === WORKING_FILES || name.endsWith(`/${WORKING_FILES}`);

/** Archives list their files by name; those of the working folder can be had one by one. */
function Members({ job, output }: { job: Job; output: Output }) {
  if (!output.members?.length) return null;
  const below = output.name === WORKING_FILES ? '' : `${output.name}/`;
  return (
    <details open={isListing(output.name) && output.members.length <= 20}>
      <summary class="dim">{plural(output.members.length, 'file')}</summary>
      {output.members.map((m) => (
        <div key={m.name} class="mono">
          {isListing(output.name) && !m.link
            ? <a href={address(`jobs/${part(job.id)}/outputs/${WORKING_FILES}/${(below + m.name).split('/').map(part).join('/')}`)}
                download={m.name.split('/').pop()}>{m.name}</a>
            : m.link ? `${m.name} → ${m.link}` : m.name} <span class="dim">{bytes(m.bytes)}</span>
        </div>
      ))}
    </details>
  );
}

function Outputs({ job }: { job: Job }) {
  const outputs = useLoaded(`${job.id} ${job.state}`, (signal) => api.outputs(job.id, signal));
  if (!outputs.data?.length) return null;
  return (
    <section class="card flush">
      <header><h2>Outputs</h2></header>
      <div class="scroll" tabIndex={0}>
        <table class="plain-table">
          <tbody>
            {outputs.data.map((one) => (
              <tr key={one.name}>
                <td>
                  <strong>{isListing(one.name) ? one.name.replace(/files$/, 'Working folder').replace('/', ': ') : one.name}</strong>
                  <Members job={job} output={one} />
                  {one.left_out?.largest?.map((file) => (
                    <div key={file.name} class="dim">Not kept: <span class="mono">{file.name}</span> {bytes(file.bytes)}: {file.why}</div>
                  ))}
                </td>
                <td class="right">{bytes(one.bytes)}</td>
                <td class="right">
                  {isListing(one.name) ? null
                    : <a href={address(`jobs/${part(job.id)}/outputs/${part(one.name)}`)} download={one.name}>Download</a>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Listing({ entries, path, chosen }: { entries: ArtifactEntry[]; path: string; chosen: string }) {
  const up = path.split('/').slice(0, -1).join('/');
  return (
    <section class="card flush file-list" aria-label="Files">
      {path ? <button onClick={() => setQuery({ path: up || undefined, file: undefined }, true)}><Icon name="up" /> {path}</button> : null}
      {entries.map((entry) => {
        const name = entry.path.split('/').filter(Boolean).pop() ?? entry.path;
        return (
          <button key={entry.path} class={entry.path === chosen ? 'on' : ''}
            onClick={() => setQuery(entry.dir ? { path: entry.path, file: undefined } : { file: entry.path }, true)}>
            <Icon name={entry.dir ? 'folder' : 'file'} />
            <span class="grow cut">{name}</span>
            {entry.dir ? null : <span class="dim num">{bytes(entry.size)}</span>}
          </button>
        );
      })}
    </section>
  );
}

export function Artifacts({ run, job }: { run: string; job?: Job }) {
  const { query } = route.value;
  const path = query.path ?? '';
  const file = query.file ?? '';
  const list = useLoaded(`${run} ${path} ${job?.state}`, (signal) => api.artifacts(run, path, signal).catch((error) => {
    // A run that logged no file has no folder.
    if (error instanceof ApiError && error.status === 404) return [];
    throw error;
  }));
  const entry = list.data?.find((one) => one.path === file);
  return (
    <div class="stack">
      {job ? <Outputs job={job} /> : null}
      <Await of={list}>
        {(entries) => entries.length === 0 && !path ? (
          job?.outputs?.length ? null : <Empty title="No artifacts">
            <p>Files that the script leaves in its working folder, in <code>athanor.model_dir()</code> or <code>athanor.output_dir()</code>, and those logged through MLflow, stand here.</p>
          </Empty>
        ) : (
          <div class="files">
            <Listing entries={entries} path={path} chosen={file} />
            {entry ? (
              <FileView key={entry.path} path={entry.path} size={entry.size} url={api.artifactUrl(run, entry.path)}
                load={() => api.artifactText(run, entry.path)} />
            ) : <Empty title="Choose a file" />}
          </div>
        )}
      </Await>
    </div>
  );
}
