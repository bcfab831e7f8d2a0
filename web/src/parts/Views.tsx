// Views by name: a part of the address, kept in this browser.
import type { Signal } from '@preact/signals';
import { useState } from 'preact/hooks';

import { Icon } from './Icon';
import { Menu } from './Menu';
import type { View } from '../state/prefs';

export function Views({ list, take, open, small = false }: {
  list: Signal<View[]>;
  take: () => Record<string, string>; // what is kept of the address
  open: (query: Record<string, string>) => void;
  small?: boolean;
}) {
  const [name, setName] = useState('');
  const save = () => {
    if (!name.trim()) return;
    list.value = [...list.value.filter((view) => view.name !== name.trim()), { name: name.trim(), query: take() }];
    setName('');
  };
  return (
    <Menu label={<><Icon name="save" /> Views</>} small={small}>
      {(close) => (
        <>
          {list.value.map((view) => (
            <div key={view.name} class="row">
              <button class="item grow" onClick={() => { close(); open(view.query); }}>{view.name}</button>
              <button class="button plain small" aria-label={`Forget view ${view.name}`}
                onClick={() => (list.value = list.value.filter((one) => one !== view))}><Icon name="close" /></button>
            </div>
          ))}
          <form class="row" style={{ padding: '5px' }} onSubmit={(e) => { e.preventDefault(); save(); close(); }}>
            <input type="text" placeholder="Save this view as" aria-label="Name of this view" value={name}
              onInput={(e) => setName(e.currentTarget.value)} />
            <button class="button">Save</button>
          </form>
        </>
      )}
    </Menu>
  );
}
