// What a view shows when it has nothing to show: that it loads, is empty, or failed, and why.
import type { ComponentChildren } from 'preact';

import { ApiError } from '../state/api';
import type { Loaded } from '../state/use';
import { Hint } from './Command';

export function Loading({ what = 'Loading' }: { what?: string }) {
  return <div class="loading" role="status">{what}…</div>;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Failure({ error, retry }: { error: Error; retry?: () => void }) {
  const known = error instanceof ApiError ? error : undefined;
  if (known?.missing) {
    return <Empty title="Not available"><p>This server does not offer it. Its version: <code>ath version</code></p></Empty>;
  }
  return (
    <div class="note bad" role="alert">
      <div class="grow">
        <strong>{known?.what ?? error.message}</strong>
        {known?.why ? <div>{known.why}</div> : null}
        {known?.hint ? <div style={{ marginTop: '6px' }}><Hint text={known.hint} /></div> : null}
        {known?.id ? <div class="dim">{known.id}</div> : null}
      </div>
      {retry ? <button class="button small" onClick={retry}>Try again</button> : null}
    </div>
  );
}

// The three states before there is data, then the data; old data stays while new comes.
export function Await<T>({ of, children, what }: {
  of: Loaded<T>;
  what?: string;
  children: (data: T) => ComponentChildren;
}) {
  if (of.data !== undefined) return <>{children(of.data)}</>;
  if (of.error) return <Failure error={of.error} retry={of.reload} />;
  return <Loading what={what} />;
}
