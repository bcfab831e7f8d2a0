// TanStack's virtualizer as a hook: which items of a long list are in view.
import {
  elementScroll, observeElementOffset, observeElementRect, Virtualizer, type VirtualItem,
} from '@tanstack/virtual-core';
import { useLayoutEffect, useReducer, useRef } from 'preact/hooks';

export interface Virtual {
  items: VirtualItem[];
  total: number;
  scrollTo: (index: number, align?: 'center' | 'end' | 'auto') => void;
}

export function useVirtual(element: () => HTMLElement | null, count: number, size: number,
  overscan = 12, paddingStart = 0): Virtual {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const options = {
    count,
    getScrollElement: element,
    estimateSize: () => size,
    overscan,
    paddingStart,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => redraw(0),
  };
  const made = useRef<Virtualizer<HTMLElement, HTMLElement> | undefined>(undefined);
  const virtual = (made.current ??= new Virtualizer<HTMLElement, HTMLElement>(options));
  virtual.setOptions(options);
  useLayoutEffect(() => virtual._didMount(), []);
  useLayoutEffect(() => virtual._willUpdate());
  return {
    items: virtual.getVirtualItems(),
    total: virtual.getTotalSize(),
    scrollTo: (index, align = 'auto') => virtual.scrollToIndex(index, { align }),
  };
}
