// Images, sounds and texts by step, with a slider; the newest first.
import { useState } from 'preact/hooks';

import { Markdown } from '../../parts/Markdown';
import { Time } from '../../parts/Time';
import type { MediaItem } from '../../state/types';

const kMostImages = 16;

// Addresses of the server's own API only, relative to the page.
export function own(url: string | undefined): string | undefined {
  if (!url) return undefined;
  const full = new URL(url.replace(/^\//, ''), document.baseURI);
  return full.origin === location.origin ? full.href : undefined;
}

function useSlider(items: MediaItem[], label: string) {
  const [chosen, setChosen] = useState<number | undefined>(undefined);
  const at = Math.min(chosen ?? items.length - 1, items.length - 1);
  const item = items[at];
  const slider = (
    <div class="row">
      {items.length > 1 ? (
        <input class="grow" type="range" min="0" max={items.length - 1} value={at} aria-label={`Step of ${label}`}
          aria-valuetext={`step ${item?.step}`} onInput={(e) => setChosen(Number(e.currentTarget.value))} />
      ) : <span class="grow" />}
      <span class="num dim">step {item?.step}</span>
      <span class="dim"><Time at={item?.wall_ms} /></span>
    </div>
  );
  return { item, slider };
}

export function Images({ items, name }: { items: MediaItem[]; name: string }) {
  const { item, slider } = useSlider(items, name);
  const url = own(item?.url);
  const several = Math.min(item?.images ?? 1, kMostImages);
  return (
    <>
      {url ? (
        <div class={several > 1 ? 'sample-grid' : ''}>
          {Array.from({ length: several }, (_, i) => (
            <img key={i} class="preview-image sample" src={i ? `${url}?image=${i}` : url} loading="lazy"
              alt={`${name} at step ${item?.step}${i ? `, ${i + 1}` : ''}`} />
          ))}
        </div>
      ) : null}
      {slider}
    </>
  );
}

export function Sounds({ items, name }: { items: MediaItem[]; name: string }) {
  const { item, slider } = useSlider(items, name);
  const url = own(item?.url);
  return (
    <>
      {url ? <audio controls preload="none" src={url} aria-label={`${name} at step ${item?.step}`} /> : null}
      {slider}
    </>
  );
}

export function Texts({ items }: { items: MediaItem[] }) {
  const { item, slider } = useSlider(items, 'text');
  return (
    <>
      <div class="sample-text"><Markdown text={item?.text ?? ''} /></div>
      {slider}
    </>
  );
}
