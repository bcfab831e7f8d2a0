// Panning: shift-drag, or a sideways wheel. The chart moves at once; what is not loaded yet is
// requested when the mouse rests.
import type uPlot from 'uplot';

// `moving` is what the scale's range function answers while a pan is under way.
export interface Moving {
  range?: [number, number];
}

export function panning(moving: Moving, done: (range: [number, number]) => void): uPlot.Plugin {
  let rest = 0;
  function move(u: uPlot, low: number, high: number): void {
    if (u.data[0].length === 0) return;
    moving.range = [low, high];
    u.setScale('x', { min: low, max: high });
    clearTimeout(rest);
    rest = setTimeout(() => {
      moving.range = undefined;
      done([low, high]);
    }, 180) as unknown as number;
  }
  return {
    hooks: {
      ready: [
        (u) => {
          u.over.addEventListener('wheel', (event) => {
            const by = event.deltaX || (event.shiftKey ? event.deltaY : 0);
            if (!by) return;
            event.preventDefault();
            const { min, max } = u.scales.x!;
            if (min == null || max == null) return;
            const shift = ((max - min) * by) / u.over.clientWidth;
            move(u, min + shift, max + shift);
          }, { passive: false });
          u.over.addEventListener('mousedown', (event) => {
            if (!event.shiftKey || event.button !== 0) return;
            event.stopImmediatePropagation();
            event.preventDefault();
            const { min, max } = u.scales.x!;
            if (min == null || max == null) return;
            const from = event.clientX;
            const drag = (e: MouseEvent) => {
              const shift = ((max - min) * (from - e.clientX)) / u.over.clientWidth;
              move(u, min + shift, max + shift);
            };
            const up = () => {
              document.removeEventListener('mousemove', drag);
              document.removeEventListener('mouseup', up);
            };
            document.addEventListener('mousemove', drag);
            document.addEventListener('mouseup', up);
          }, true);
        },
      ],
    },
  };
}
