// Short messages at the edge of the page, with what to do about them.
import { signal } from '@preact/signals';

import { ApiError } from './api';

export interface Toast {
  id: number;
  text: string;
  kind: 'done' | 'failed';
  hint?: string;
  undo?: () => void;
}

export const toasts = signal<Toast[]>([]);
let next = 1;

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

export function tellDone(text: string, undo?: () => void): number {
  return add({ text, kind: 'done', undo }, undo ? 8000 : 4000);
}

export function tellFailure(error: unknown, doing = ''): void {
  const known = error instanceof ApiError ? error : undefined;
  const what = known?.what ?? (error as Error).message ?? String(error);
  const why = known?.why ? ` (${known.why})` : '';
  add({ text: `${doing ? `${doing}: ` : ''}${what}${why}`, kind: 'failed', hint: known?.hint }, 12_000);
}

function add(toast: Omit<Toast, 'id'>, ms: number): number {
  const id = next++;
  toasts.value = [...toasts.value.slice(-3), { id, ...toast }];
  setTimeout(() => dismiss(id), ms);
  return id;
}

// Says that it is done, and does it only if the user does not undo it in time.
export function doLater(text: string, act: () => Promise<void>, back: () => void): void {
  let undone = false;
  const flush = () => {
    removeEventListener('pagehide', flush);
    if (undone) return;
    undone = true;
    act().catch((error) => {
      back();
      tellFailure(error);
    });
  };
  addEventListener('pagehide', flush);
  const timer = setTimeout(flush, 6000);
  const id = tellDone(text, () => {
    if (undone) return;
    undone = true;
    clearTimeout(timer);
    removeEventListener('pagehide', flush);
    dismiss(id);
    back();
  });
}
