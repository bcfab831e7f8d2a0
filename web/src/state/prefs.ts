// What one person chose, kept in this browser: pins, colours, columns, views, sizes of charts.
// Lost storage loses nothing but convenience.
import { signal, type Signal } from '@preact/signals';

const prefix = `athanor ${new URL('.', document.baseURI).pathname} `;

export function stored<T>(key: string, usual: T): Signal<T> {
  let first = usual;
  try {
    const text = localStorage.getItem(prefix + key);
    if (text !== null) first = JSON.parse(text) as T;
  } catch {
    // Damaged or forbidden: the usual value.
  }
  const value = signal(first);
  let skip = true;
  value.subscribe((now) => {
    if (skip) {
      skip = false;
      return;
    }
    try {
      localStorage.setItem(prefix + key, JSON.stringify(now));
    } catch {
      // Full or forbidden; it lasts as long as the tab.
    }
  });
  return value;
}

export interface View {
  name: string;
  query: Record<string, string>;
}

export const views = stored<View[]>('views', []);
export const chartViews = stored<View[]>('chart-views', []);
export const pins = stored<string[]>('pins', []);
export const colours = stored<Record<string, number>>('colours', {});
export const chartPins = stored<string[]>('chart-pins', []);
export const chartSize = stored<'s' | 'm' | 'l'>('chart-size', 'm');
export const foldedSections = stored<string[]>('folded', []);

export function toggle(list: Signal<string[]>, item: string): void {
  list.value = list.value.includes(item)
    ? list.value.filter((one) => one !== item)
    : [...list.value, item];
}
