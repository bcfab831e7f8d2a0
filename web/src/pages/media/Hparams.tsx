// Hyper-parameters as TensorBoard's plugin wrote them.
import type { MediaItem } from '../../state/types';

export const isHparams = (item: MediaItem) => Object.keys(item.params ?? {}).length > 0 || !!item.metrics?.length;

export function Hparams({ items }: { items: MediaItem[] }) {
  const rows = items.flatMap((item) => Object.entries(item.params ?? {}));
  const metrics = [...new Set(items.flatMap((item) => item.metrics ?? []))];
  return (
    <dl class="facts">
      {rows.map(([key, value]) => <><dt>{key}</dt><dd class="mono">{String(value)}</dd></>)}
      {metrics.length ? <><dt>Metrics</dt><dd>{metrics.join(', ')}</dd></> : null}
    </dl>
  );
}
