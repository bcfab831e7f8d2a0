// The title of the browser's tab: what the view is about, by name.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

export const title = signal('');

// While the view is there; without one the title is the place's own.
export function useTitle(text: string | undefined): void {
  useEffect(() => {
    title.value = text ?? '';
    return () => (title.value = '');
  }, [text]);
}
