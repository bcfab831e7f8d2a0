// A canvas that fits its box at the screen's density, drawn again when its content changes.
import { useEffect, useRef } from 'preact/hooks';

import { useSize } from '../../state/use';

export interface Ink {
  ink: string;
  soft: string;
  line: string;
  card: string;
  accent: string;
}

export function inkOf(): Ink {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(name).trim();
  return { ink: get('--ink'), soft: get('--ink-3'), line: get('--line-strong'), card: get('--card'), accent: get('--accent') };
}

export type Draw = (ctx: CanvasRenderingContext2D, width: number, height: number, ink: Ink) => void;

// A text cut at its front to a width: the end of a name tells most.
export function fitted(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  if (ctx.measureText(text).width <= room) return text;
  let rest = text;
  while (rest.length > 1 && ctx.measureText(`…${rest}`).width > room) rest = rest.slice(1);
  return `…${rest}`;
}

export function useCanvas(draw: Draw, deps: unknown[]) {
  const [box, size] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const element = canvas.current;
    if (!element || !size.width || !size.height) return;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    element.width = size.width * ratio;
    element.height = size.height * ratio;
    const ctx = element.getContext('2d')!;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, size.width, size.height);
    draw(ctx, size.width, size.height, inkOf());
  }, [size.width, size.height, ...deps]);
  return { box, canvas, size };
}
