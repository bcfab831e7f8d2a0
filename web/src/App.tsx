// The frame around every view: navigation, connection, messages, keys; and which view it is.
import { useEffect, useState } from 'preact/hooks';

import { ago, count } from './lib/format';
import { Icon } from './parts/Icon';
import { KeyHelp } from './parts/KeyHelp';
import { Toasts } from './parts/Toasts';
import { Compare } from './pages/Compare';
import { ExperimentAt, Experiments } from './pages/Experiments';
import { Home } from './pages/Home';
import { JobPage } from './pages/JobPage';
import { Models } from './pages/Models';
import { NewJob } from './pages/NewJob';
import { NotFound } from './pages/NotFound';
import { Queue } from './pages/Queue';
import { Runs } from './pages/Runs';
import { ServerPage } from './pages/ServerPage';
import { Studies } from './pages/Studies';
import { isOver, jobs } from './state/jobs';
import { useKeys } from './state/keys';
import { liveState } from './state/live';
import { go, href, route } from './state/router';
import { title } from './state/title';
import { now } from './state/use';

const kPlaces = [
  { id: '', text: 'Home', icon: 'home' },
  { id: 'runs', text: 'Jobs & runs', icon: 'runs' },
  { id: 'compare', text: 'Compare', icon: 'compare' },
  { id: 'experiments', text: 'Experiments', icon: 'experiments' },
  { id: 'studies', text: 'Studies', icon: 'studies' },
  { id: 'models', text: 'Models', icon: 'models' },
  { id: 'queue', text: 'Queue', icon: 'queue' },
  { id: 'server', text: 'Server', icon: 'server' },
];

function View() {
  const { path } = route.value;
  switch (path[0] ?? '') {
    case '': return <Home />;
    case 'jobs':
    case 'runs':
    case 'job': return path[1] ? <JobPage key={path[1]} id={path[1]} tab={path[2] ?? 'overview'} /> : <Runs />;
    case 'new': return <NewJob />;
    case 'compare': return <Compare />;
    case 'experiments': return path[1] ? <ExperimentAt key={path[1]} id={path[1]} /> : <Experiments />;
    case 'models': return <Models name={path[1]} version={path[3]} />;
    case 'studies': return <Studies />;
    case 'queue': return <Queue />;
    case 'server': return <ServerPage />;
    default: return <NotFound />;
  }
}

function Connection() {
  const { online, version } = liveState.value;
  return (
    <div class="nav-foot">
      {version ? <span>Athanor {version}</span> : null}
      <span class={`live ${online ? '' : 'off'}`}><i /><span>{online ? 'Live' : 'Offline'}</span></span>
    </div>
  );
}

function Offline() {
  const { online, since } = liveState.value;
  if (online || now.value - since < 1500) return null;
  return (
    <div class="offline" role="alert">
      The connection was lost {ago(now.value - since)}; trying again. If the server is down: <code>ath serve</code>
    </div>
  );
}

function focusSearch(): void {
  const box = document.querySelector<HTMLInputElement>('[data-search]');
  if (box) box.focus();
  else go(['runs'], { focus: '1' });
}

export function App() {
  const [help, setHelp] = useState(false);
  const place = route.value.path[0] ?? '';
  const running = jobs.value.filter((job) => !isOver(job.state) && job.state !== 'Queued').length;
  const waiting = jobs.value.filter((job) => job.state === 'Queued').length;
  useKeys([
    { key: '?', says: 'List the keys of this view', act: () => setHelp(true) },
    { key: '/', says: 'Search or filter', act: focusSearch },
    { key: 'g h', says: 'Go to Home', act: () => go([]) },
    { key: 'g r', says: 'Go to Jobs & runs', act: () => go(['runs']) },
    { key: 'g n', says: 'New job', act: () => go(['new']) },
    { key: 'g c', says: 'Go to Compare', act: () => go(['compare']) },
    { key: 'g q', says: 'Go to Queue', act: () => go(['queue']) },
  ]);
  const said = title.value || kPlaces.find((one) => one.id === place)?.text || route.value.path[1] || '';
  useEffect(() => {
    document.title = `${running ? `(${running}) ` : ''}${said} · Athanor`;
  }, [said, running]);
  const tally: Record<string, number> = { '': running, queue: waiting };
  return (
    <div class="shell">
      <nav class="nav" aria-label="Athanor">
        <a class="brand" href={href([])} aria-label="Athanor, home">
          <svg viewBox="0 0 32 32" aria-hidden="true"><path d="M16 2c6 6.500 10 11 10 16.500A10 10 0 0 1 16 29 10 10 0 0 1 6 18.500C6 13 10 8.500 16 2Zm0 12c-3 3.300-4.300 5-4.300 7a4.300 4.300 0 0 0 8.600 0c0-2-1.300-3.700-4.300-7Z" /></svg>
          <span>Athanor</span>
        </a>
        {kPlaces.map((one) => {
          const on = one.id === place || (one.id === 'runs' && /^jobs?$/.test(place));
          return (
            <a key={one.id} class={`nav-link ${on ? 'on' : ''}`} href={href(one.id ? [one.id] : [])}
              aria-current={on ? 'page' : undefined}>
              <Icon name={one.icon} />
              {one.text}
              {tally[one.id] ? <span class="tally">{count(tally[one.id]!)}</span> : null}
            </a>
          );
        })}
        <Connection />
      </nav>
      <main class="main">
        <Offline />
        <View />
      </main>
      {help ? <KeyHelp close={() => setHelp(false)} /> : null}
      <Toasts />
    </div>
  );
}
