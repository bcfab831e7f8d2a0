// One job, or one run that no job made: its head with what can be done, and its tabs.
import { useState } from 'preact/hooks';

import { Failure, Loading } from '../parts/Box';
import { State } from '../parts/State';
import { Tabs } from '../parts/Tabs';
import { Took } from '../parts/Time';
import { api } from '../state/api';
import type { Usage } from '../state/live';
import { href } from '../state/router';
import { useTitle } from '../state/title';
import type { Job, Run } from '../state/types';
import { useLoaded, useNews, useThrottled } from '../state/use';
import { Artifacts } from './job/Artifacts';
import { Events } from './job/Events';
import { JobActions } from './job/JobActions';
import { Logs } from './job/Logs';
import { Media } from './job/Media';
import { Overview } from './job/Overview';
import { RunCharts } from './job/RunCharts';
import { RunOverview } from './job/RunOverview';
import { Source } from './job/Source';

interface Subject {
  job?: Job;
  run?: Run;
}

// A run by id or name, and its job if it is one's. The run is asked for first: it knows.
async function find(id: string, signal: AbortSignal): Promise<Subject> {
  const run = await api.run(id, signal);
  return { run, job: run.job ? await api.job(run.id, signal) : undefined };
}

const kUsageKept = 300;

function Head({ subject, progress }: { subject: Subject; progress?: Job['progress'] }) {
  const { job, run } = subject;
  const name = job?.name ?? run?.name ?? '';
  const experiment = job?.spec.experiment ?? run?.experiment;
  return (
    <div class="page-head">
      <h1>{name}</h1>
      <State state={job?.shown_state ?? run?.status ?? ''} />
      {experiment ? <a class="dim" href={href(['runs'], { experiment })}>{experiment}</a> : null}
      <span class="dim">
        <Took of={job ?? run ?? {}} waiting />
      </span>
      {progress?.total ? (
        <span class="row dim num" style={{ width: '160px' }}>
          <span class="bar grow"><i style={{ width: `${(100 * progress.done) / progress.total}%` }} /></span>
          {Math.round((100 * progress.done) / progress.total)} %
        </span>
      ) : null}
      {job ? <JobActions job={job} /> : null}
    </div>
  );
}

export function JobPage({ id, tab }: { id: string; tab: string }) {
  const subject = useLoaded(id, (signal) => find(id, signal));
  const again = useThrottled(subject.reload, 1000);
  const { job, run } = subject.data ?? {};
  const [usage, setUsage] = useState<Usage[]>([]);
  useTitle(job?.name ?? run?.name);
  const [progress, setProgress] = useState<Job['progress']>(undefined);
  useNews((news) => {
    if (news.kind === 'reload') again();
    else if (news.kind === 'run' && news.run.run === (job?.id ?? run?.id) && tab === 'overview') again();
    if (news.kind !== 'job' || !job || news.job.id !== job.id) return;
    // Hosts are in the job itself.
    if (news.usage && (job.attempts?.[job.attempts.length - 1]?.hosts?.length ?? 0) > 1) again();
    if (news.usage) setUsage([...usage, news.usage].slice(-kUsageKept));
    if (news.progress) setProgress(news.progress);
    const changed = news.job.state !== job.state || news.job.attempts !== (job.attempts?.length ?? 0) ||
      news.job.shown_state !== job.shown_state;
    if (changed) again();
  });

  if (!subject.data) {
    return <div class="page">{subject.error ? <Failure error={subject.error} retry={subject.reload} /> : <Loading />}</div>;
  }
  const link = (to: string) => href(to === 'overview' ? ['job', id] : ['job', id, to]);
  const tabs = [
    ['overview', 'Overview'], ['charts', 'Charts'], ['media', 'Media'],
    ...(job ? [['logs', 'Logs']] : []), ['system', 'System'], ['artifacts', 'Artifacts'],
    ...(job ? [['source', 'Source & environment'], ['events', 'Events']] : []),
  ].map(([key, text]) => ({ id: key!, text: text!, href: link(key!) }));
  const runId = job?.id ?? run!.id;
  return (
    <div class={`page ${tab === 'logs' ? 'fixed' : ''}`}>
      <Head subject={subject.data} progress={progress ?? job?.progress} />
      <Tabs tabs={tabs} current={tab} />
      {tab === 'overview' && job ? <Overview job={job} run={run} /> : null}
      {tab === 'overview' && !job && run ? <RunOverview run={run} /> : null}
      {tab === 'charts' ? <RunCharts id={runId} job={job} name={job?.name ?? run!.name} system={false} /> : null}
      {tab === 'system' ? <RunCharts id={runId} job={job} name={job?.name ?? run!.name} system usage={usage} /> : null}
      {tab === 'media' ? <Media run={runId} /> : null}
      {tab === 'logs' && job ? <Logs job={job} /> : null}
      {tab === 'artifacts' ? <Artifacts run={runId} job={job} /> : null}
      {tab === 'source' && job ? <Source job={job} /> : null}
      {tab === 'events' && job ? <Events job={job} /> : null}
    </div>
  );
}
