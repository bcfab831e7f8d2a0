// What a run logged besides numbers: distributions, images, sounds, texts, curves. Each kind has
// its own view; what is not drawn here is named and counted.
import { useMemo, useState } from 'preact/hooks';

import { plural } from '../../lib/format';
import { Await, Empty, Failure, Loading } from '../../parts/Box';
import { api } from '../../state/api';
import { route, setQuery } from '../../state/router';
import type { MediaItem, MediaRow } from '../../state/types';
import { useLoaded, useNews, useThrottled } from '../../state/use';
import { useVisible } from '../../charts/visible';
import { Histograms } from '../media/Histograms';
import { Embedding } from '../media/Embedding';
import { Graph } from '../media/Graph';
import { Images, Sounds, Texts } from '../media/Samples';
import { PrCurves } from '../media/PrCurves';
import { Hparams, isHparams } from '../media/Hparams';

const kItems = 200;
const kTitles: Record<string, string> = {
  histogram: 'Histograms', image: 'Images', audio: 'Audio', text: 'Text', pr_curve: 'Precision and recall',
  hparams: 'Hyper-parameters', graph: 'Model graph', embedding: 'Embeddings', tensor: 'Tensors',
};

function View({ kind, name, items }: { kind: string; name: string; items: MediaItem[] }) {
  switch (kind) {
    case 'histogram': return <Histograms items={items} name={name} />;
    case 'image': return <Images items={items} name={name} />;
    case 'audio': return <Sounds items={items} name={name} />;
    case 'text': return <Texts items={items} />;
    case 'pr_curve': return <PrCurves items={items} name={name} />;
    case 'embedding':
    case 'tensor': return <Embedding items={items} name={name} />;
    case 'graph': return <Graph items={items} />;
    default: return <p class="dim">This kind has no view here.</p>;
  }
}

function MediaCard({ run, row }: { run: string; row: MediaRow }) {
  const [ref, visible] = useVisible();
  const [seen, setSeen] = useState(false);
  if (visible && !seen) setSeen(true);
  const items = useLoaded(seen ? `${run} ${row.kind} ${row.name} ${row.count}` : null, (signal) =>
    api.mediaItems(run, row.kind, row.name, kItems, signal));
  return (
    <section class="card chart" ref={ref}>
      <header><h3 class="cut grow" title={row.name}>{row.name}</h3><span class="dim num">{plural(row.count, 'step')}</span></header>
      {items.error ? <Failure error={items.error} /> : null}
      {items.data ? <View kind={row.kind} name={row.name} items={items.data} /> : items.error ? null : seen ? <Loading /> : <p class="dim">…</p>}
    </section>
  );
}

// All that was written of hyper-parameters, as one; nothing where nothing was.
function HparamsCard({ run, rows, find }: { run: string; rows: MediaRow[]; find: string }) {
  const title = kTitles.hparams!;
  const items = useLoaded(rows.length ? `${run} ${rows.map((row) => `${row.name} ${row.count}`).join()}` : null, async (signal) =>
    (await Promise.all(rows.map((row) => api.mediaItems(run, row.kind, row.name, kItems, signal)))).flat());
  if (!items.data?.some(isHparams) || !title.toLowerCase().includes(find.toLowerCase())) return null;
  return (
    <section class="chart-section">
      <div class="section-head"><h2>{title}</h2></div>
      <section class="card"><Hparams items={items.data} /></section>
    </section>
  );
}

export function Media({ run }: { run: string }) {
  const media = useLoaded(run, (signal) => api.media(run, signal));
  const again = useThrottled(media.reload, 5000);
  useNews((news) => news.kind === 'run' && news.run.run === run && again());
  const find = route.value.query.find ?? '';
  const groups = useMemo(() => {
    const out = new Map<string, MediaRow[]>();
    for (const row of media.data ?? []) {
      // TensorBoard's plugin writes three tags for one thing; which of them has what is its affair.
      if (row.kind === 'hparams') continue;
      if (row.name.toLowerCase().includes(find.toLowerCase())) out.set(row.kind, [...(out.get(row.kind) ?? []), row]);
    }
    return [...out];
  }, [media.data, find]);
  return (
    <Await of={media}>
      {(all) => all.length === 0 ? (
        <Empty title="No media"><p>Histograms, images, audio and text written with TensorBoard's <code>SummaryWriter</code> stand here.</p></Empty>
      ) : (
        <>
          <div class="toolbar">
            <input type="search" data-search placeholder="Find by name" aria-label="Find by name" value={find}
              onInput={(e) => setQuery({ find: e.currentTarget.value || undefined })} />
          </div>
          <HparamsCard run={run} rows={all.filter((row) => row.kind === 'hparams')} find={find} />
          {groups.map(([kind, rows]) => (
            <section key={kind} class="chart-section">
              <div class="section-head"><h2>{kTitles[kind] ?? kind}</h2> <span class="dim">{rows.length}</span></div>
              <div class="charts">{rows.slice(0, 60).map((row) => <MediaCard key={row.name} run={run} row={row} />)}</div>
              {rows.length > 60 ? <p class="dim">and {rows.length - 60} more; search by name</p> : null}
            </section>
          ))}
        </>
      )}
    </Await>
  );
}
