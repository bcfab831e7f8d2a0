// Hyper-parameters as TensorBoard's plugin wrote them.
import type { MediaItem } from '../../state/types';

export const isHparams = (item: MediaItem) => Object.keys(item.params ?? {}).length > 0 || !!item.metrics?.length;

export function Hparams({ items }: { items: MediaItem[] }) {
  // One of the plugin's tags names them, another has their values.
  const rows = new Map<string, string>();
  for (const [key, value] of items.flatMap((item) => Object.entries(item.params ?? {}))) {
    if (String(value) !== '' || !rows.has(key)) rows.set(key, String(value));
  }
  const metrics = [...new Set(items.flatMap((item) => item.metrics ?? []))];
  return (
    <dl class="facts">
      {[...rows].map(([key, value]) => <><dt>{key}</dt><dd class="mono">{value || '–'}</dd></>)}
      {metrics.length ? <><dt>Metrics</dt><dd>{metrics.join(', ')}</dd></> : null}
    </dl>
  );
}
