// The address of the page as a signal, and ways to change it.
import { signal } from '@preact/signals';

import { formatRoute, parseRoute, type Route } from '../lib/route';

export const route = signal<Route>(parseRoute(location.hash));

addEventListener('hashchange', () => (route.value = parseRoute(location.hash)));

// How far the page's list is scrolled, kept with the entry of the history, so that Back and Forward
// find it where it was and a link begins at the top.
let placed: number | undefined;
export function keepPlace(top: number): void {
  clearTimeout(placed);
  const { hash } = location;
  placed = setTimeout(() => {
    if (location.hash === hash) history.replaceState({ ...(history.state as object | null), top }, '');
  }, 100) as unknown as number;
}

export function keptPlace(): number {
  return (history.state as { top?: number } | null)?.top ?? 0;
}

export function href(path: string[], query: Record<string, string | undefined> = {}): string {
  return formatRoute(path, query);
}

export function go(path: string[], query: Record<string, string | undefined> = {}): void {
  location.hash = formatRoute(path, query);
}

// The same in place of this entry in the history: going back must not lead here again.
export function goInstead(path: string[], query: Record<string, string | undefined> = {}): void {
  const next = formatRoute(path, query);
  history.replaceState(history.state, '', next);
  route.value = parseRoute(next);
}

// Changes part of the query. What a person would not go back through is put in place of the
// entry in the history.
export function setQuery(changes: Record<string, string | undefined>, keep = false): void {
  const { path, query } = route.peek();
  const next = formatRoute(path, { ...query, ...changes });
  if (next === location.hash) return;
  if (keep) {
    location.hash = next;
    return;
  }
  history.replaceState(history.state, '', next);
  route.value = parseRoute(next);
}
