// Moving charts: dragged by their heads onto others or onto the head of a section, or by the dialog
// that does the same without a pointer.
import { signal } from '@preact/signals';
import { useState } from 'preact/hooks';

import { Dialog } from '../parts/Dialog';

export type Move = (name: string, section: string, before?: string) => void;

const kType = 'application/x-athanor-chart';
const over = signal<string | undefined>(undefined); // what the pointer would drop on

export function dragged(name: string) {
  return {
    draggable: true,
    onDragStart: (event: DragEvent) => {
      event.dataTransfer?.setData(kType, name);
      if (event.dataTransfer) event.dataTransfer.effectAllowed = 'move';
    },
    onDragEnd: () => (over.value = undefined),
  };
}

// What makes an element take a chart; `key` tells it apart for the mark it gets meanwhile.
export function target(key: string, take: (name: string) => void) {
  const ours = (event: DragEvent) => event.dataTransfer?.types.includes(kType);
  return {
    'data-over': over.value === key ? '' : undefined,
    onDragOver: (event: DragEvent) => {
      if (!ours(event)) return;
      event.preventDefault();
      over.value = key;
    },
    onDragLeave: () => over.peek() === key && (over.value = undefined),
    onDrop: (event: DragEvent) => {
      if (!ours(event)) return;
      event.preventDefault();
      over.value = undefined;
      take(event.dataTransfer!.getData(kType));
    },
  };
}

export function MoveDialog({ name, sections, move, close }: { name: string; sections: string[]; move: Move; close: () => void }) {
  const [title, setTitle] = useState('');
  const to = (section: string) => {
    close();
    move(name, section);
  };
  return (
    <Dialog title={`Move ${name}`} close={close}>
      <div class="stack">
        <div class="row wrap">{sections.map((one) => <button key={one} class="button" onClick={() => to(one)}>{one}</button>)}</div>
        <form class="row" onSubmit={(e) => { e.preventDefault(); if (title.trim()) to(title.trim()); }}>
          <input class="grow" type="text" placeholder="A new section" aria-label="Name of a new section" value={title}
            onInput={(e) => setTitle(e.currentTarget.value)} />
          <button class="button main" disabled={!title.trim()}>Move</button>
        </form>
      </div>
    </Dialog>
  );
}
