// Whether an element is on screen, or nearly: charts out of sight ask for nothing and draw nothing.
import { useCallback, useRef, useState } from 'preact/hooks';

export function useVisible(): [(element: HTMLElement | null) => void, boolean] {
  const [visible, setVisible] = useState(false);
  const observer = useRef<IntersectionObserver | undefined>(undefined);
  const ref = useCallback((element: HTMLElement | null) => {
    observer.current?.disconnect();
    if (!element) return;
    observer.current = new IntersectionObserver(
      (entries) => setVisible(entries[entries.length - 1]!.isIntersecting), { rootMargin: '300px' });
    observer.current.observe(element);
  }, []);
  return [ref, visible];
}
