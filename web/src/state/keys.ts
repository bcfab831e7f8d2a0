// Keys of the page: a view registers what it understands, `?` lists all that are.
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

export interface Key {
  key: string; // as KeyboardEvent.key, or two for "g j"
  says: string;
  act: () => void;
}

export const keys = signal<Key[]>([]);
let held = '';
let heldAt = 0;

export function useKeys(list: Key[]): void {
  const latest = useRef(list);
  latest.current = list;
  const shape = list.map((key) => key.key).join();
  useEffect(() => {
    const own = latest.current.map((key, i) => ({ ...key, act: () => latest.current[i]?.act() }));
    keys.value = [...keys.peek(), ...own];
    return () => (keys.value = keys.peek().filter((key) => !own.includes(key)));
  }, [shape]);
}

function typing(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return !!element && (/^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName) || element.isContentEditable);
}

addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing(event.target)) {
    if (event.key === 'Escape') (event.target as HTMLElement).blur();
    return;
  }
  // A button or link that has the focus is what Enter means.
  if (event.key === 'Enter' && (event.target as HTMLElement).closest?.('button, a, summary, dialog')) return;
  const together = Date.now() - heldAt < 1000 ? `${held} ${event.key}` : event.key;
  // The newest registration wins: a dialog over a page.
  const found = keys.value.filter((key) => key.key === together || key.key === event.key);
  const key = found.filter((one) => one.key === together).pop() ?? found.pop();
  held = event.key;
  heldAt = Date.now();
  if (!key) return;
  event.preventDefault();
  key.act();
});
