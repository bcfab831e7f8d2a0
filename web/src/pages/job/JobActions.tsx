// What can be done to a job now; what cannot is not offered.
import { useState } from 'preact/hooks';

import { Ask } from '../../parts/Ask';
import { Icon } from '../../parts/Icon';
import { Menu } from '../../parts/Menu';
import { api } from '../../state/api';
import { isOver } from '../../state/jobs';
import { useKeys } from '../../state/keys';
import { go, href } from '../../state/router';
import { doLater, tellDone, tellFailure } from '../../state/toast';
import type { Job } from '../../state/types';
import { CloneDialog } from './CloneDialog';

export async function act(what: string, call: () => Promise<{ name: string } | unknown>, follow = false): Promise<void> {
  try {
    const reply = (await call()) as { name?: string; id?: string };
    tellDone(`${what}${follow && reply.name ? `: ${reply.name}` : ''}`);
    if (follow && reply.id) go(['job', reply.id]);
  } catch (error) {
    tellFailure(error, what);
  }
}

export function JobActions({ job }: { job: Job }) {
  const [clone, setClone] = useState(false);
  const [asks, setAsks] = useState(false);
  const over = isOver(job.state);
  const held = ['Placing', 'Preparing', 'Running', 'Uploading'].includes(job.state);
  const stopping = job.shown_state === 'Stopping' || job.shown_state === 'Interrupting';
  useKeys([{ key: 'c', says: 'Clone with changed parameters', act: () => setClone(true) }]);
  const remove = () => {
    go(['runs']);
    doLater(`${job.name} is deleted`, () => api.removeJob(job.id).then(() => undefined), () => go(['job', job.id]));
  };
  return (
    <div class="actions">
      {over ? null : (
        <button class="button danger" disabled={stopping} onClick={() => setAsks(true)}>
          <Icon name="stop" /> {job.shown_state === 'Stopping' ? 'Stopping' : 'Stop'}
        </button>
      )}
      {held ? (
        <button class="button" disabled={stopping} title="Take its machine away, as a spot market would; it goes on from its checkpoint"
          onClick={() => void act('Interrupted', () => api.interrupt(job.id))}>
          <Icon name="pause" /> Interrupt
        </button>
      ) : null}
      {over ? (
        <button class="button" onClick={() => void act('Started again', () => api.retry(job.id), true)}><Icon name="retry" /> Retry</button>
      ) : null}
      {over && job.attempts?.some((one) => one.saved) ? (
        <button class="button" title="Go on from its newest checkpoint" onClick={() => void act('Resumed', () => api.resume(job.id), true)}>
          <Icon name="resume" /> Resume
        </button>
      ) : null}
      <button class="button" onClick={() => setClone(true)}><Icon name="clone" /> Clone</button>
      <Menu label={<Icon name="more" />} title="More" small={false} choices={[
        { text: 'New job from its source', href: href(['new'], { source: job.id }) },
        { text: 'Compare with another', href: href(['compare'], { runs: job.id }) },
        { text: 'Others of its experiment', href: href(['runs'], { experiment: job.spec.experiment ?? '' }) },
        { text: over ? 'Delete' : 'Delete (stop it first)', act: remove, disabled: !over, danger: true },
      ]} />
      {asks ? (
        <Ask title={`Stop ${job.name}?`} yes="Stop it" no="Let it run" close={() => setAsks(false)}
          text={held ? 'Its script is told to end and has its grace period to save. It does not go on by itself; Retry or Resume starts it again.'
            : 'It leaves the queue. Retry starts it again, at the end of the queue.'}
          act={() => void act('Asked to stop', () => api.stop(job.id))} />
      ) : null}
      {clone ? <CloneDialog job={job} close={() => setClone(false)} /> : null}
    </div>
  );
}
