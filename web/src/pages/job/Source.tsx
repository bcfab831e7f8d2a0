// What a job ran: its files, the uncommitted change, and the packages.
import { useState } from 'preact/hooks';

import { bytes, plural } from '../../lib/format';
import { Await, Empty } from '../../parts/Box';
import { Icon } from '../../parts/Icon';
import { api } from '../../state/api';
import { route, setQuery } from '../../state/router';
import type { Job, SourceInfo } from '../../state/types';
import { useLoaded } from '../../state/use';
import { Diff, FileView } from './FileView';

function Files({ job, source }: { job: Job; source: SourceInfo }) {
  const { query } = route.value;
  const chosen = source.files.find((one) => one.path === (query.file ?? job.spec.entry)) ?? source.files[0];
  if (!chosen) return <Empty title="No files were packed" />;
  return (
    <div class="files">
      <section class="card flush file-list" aria-label="Source files">
        {source.files.map((file) => (
          <button key={file.path} class={file === chosen ? 'on' : ''} onClick={() => setQuery({ file: file.path })}>
            <Icon name="file" /><span class="grow cut" title={file.path}>{file.path}</span><span class="dim num">{bytes(file.size)}</span>
          </button>
        ))}
      </section>
      <FileView key={chosen.path} path={/\.\w+$/.test(chosen.path) ? chosen.path : `${chosen.path}.txt`} size={chosen.size}
        load={() => api.sourceFile(job.id, chosen.path)} />
    </div>
  );
}

function Environment({ job }: { job: Job }) {
  const [find, setFind] = useState('');
  const environment = useLoaded(`${job.id} ${job.state}`, (signal) => api.environment(job.id, signal));
  return (
    <section class="card">
      <header><h2>Environment</h2>
        <input type="search" placeholder="Find a package" aria-label="Find a package" value={find} onInput={(e) => setFind(e.currentTarget.value)} />
      </header>
      <Await of={environment}>
        {(info) => {
          const packages = Array.isArray(info.packages) ? (info.packages as unknown[]).map((one) =>
            typeof one === 'string' ? one : Object.values(one as Record<string, string>).join('==')) : [];
          const rest = Object.entries(info).filter(([key, value]) => key !== 'packages' && value !== null && value !== '');
          const wanted = packages.filter((one) => one.toLowerCase().includes(find.toLowerCase()));
          return (
            <>
              <dl class="facts">
                {rest.map(([key, value]) => (
                  <><dt>{key}</dt><dd class="mono">{typeof value === 'object' ? JSON.stringify(value) : String(value)}</dd></>
                ))}
                <dt>packages</dt><dd>{plural(packages.length, 'package')}</dd>
              </dl>
              {wanted.length ? <pre class="code" tabIndex={0} style={{ marginTop: '10px', maxHeight: '320px' }}>{wanted.join('\n')}</pre> : null}
            </>
          );
        }}
      </Await>
    </section>
  );
}

export function Source({ job }: { job: Job }) {
  const source = useLoaded(job.id, (signal) => api.source(job.id, signal));
  return (
    <div class="stack">
      <Await of={source}>
        {(info) => (
          <>
            <Files job={job} source={info} />
            {info.git ? (
              <section class="card">
                <header><h2>Git</h2><span class="mono dim">{info.git.commit.slice(0, 12)}{info.git.dirty ? ' + changes' : ''}</span></header>
                {info.git.diff ? <Diff text={info.git.diff} /> : <p class="dim">Nothing was changed beside the commit.</p>}
              </section>
            ) : null}
          </>
        )}
      </Await>
      <Environment job={job} />
    </div>
  );
}
