// Views of the table by name: filter, columns, order and grouping as the address has them.
import { useState } from 'preact/hooks';

import { Icon } from '../../parts/Icon';
import { Menu } from '../../parts/Menu';
import { views } from '../../state/prefs';
import { go, route } from '../../state/router';

export function Views() {
  const [name, setName] = useState('');
  const save = () => {
    if (!name.trim()) return;
    const query = { ...route.value.query };
    views.value = [...views.value.filter((view) => view.name !== name.trim()), { name: name.trim(), query }];
    setName('');
  };
  return (
    <Menu label={<><Icon name="save" /> Views</>} small={false}>
      {(close) => (
        <>
          {views.value.map((view) => (
            <div key={view.name} class="row">
              <button class="item grow" onClick={() => { close(); go(['runs'], view.query); }}>{view.name}</button>
              <button class="button plain small" aria-label={`Forget view ${view.name}`}
                onClick={() => (views.value = views.value.filter((one) => one !== view))}><Icon name="close" /></button>
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
