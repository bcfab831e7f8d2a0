// Hyper-parameters as TensorBoard's plugin wrote them.
import type { MediaItem } from '../../state/types';

export function Hparams({ items }: { items: MediaItem[] }) {
  const rows = items.flatMap((item) => Object.entries(item.params ?? {}));
  const metrics = items.flatMap((item) => item.metrics ?? []);
  if (!rows.length && !metrics.length) return <p class="dim">Nothing to show.</p>;
  return (
    <dl class="facts">
      {rows.map(([key, value]) => <><dt>{key}</dt><dd class="mono">{String(value)}</dd></>)}
      {metrics.length ? <><dt>metrics</dt><dd>{metrics.join(', ')}</dd></> : null}
    </dl>
  );
}
