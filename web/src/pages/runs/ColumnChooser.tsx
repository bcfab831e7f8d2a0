// Which columns the table has.
import { Dialog } from '../../parts/Dialog';
import { Icon } from '../../parts/Icon';
import { columnId, columnOf, titled } from './columns';
import { NamePicker } from './NamePicker';

const kFixed = ['state', 'experiment', 'user', 'started', 'duration'];

export function ColumnChooser({ ids, onChange, close, experiment }: {
  ids: string[];
  onChange: (ids: string[]) => void;
  close: () => void;
  experiment?: string;
}) {
  const toggle = (id: string) => onChange(ids.includes(id) ? ids.filter((one) => one !== id) : [...ids, id]);
  const move = (id: string) => {
    const at = ids.indexOf(id);
    if (at > 0) onChange([...ids.slice(0, at - 1), id, ids[at - 1]!, ...ids.slice(at + 1)]);
  };
  return (
    <Dialog title="Columns" close={close} footer={<button class="button main" onClick={close}>Done</button>}>
      <div class="chips">
        {titled(ids.map(columnOf).filter((one) => one !== undefined)).map(({ id, title }) => (
          <span key={id} class="chip">
            <button aria-label={`Move ${id} to the left`} title="To the left" onClick={() => move(id)}><Icon name="up" /></button>
            {title}
            <button aria-label={`Remove column ${id}`} onClick={() => toggle(id)}><Icon name="close" /></button>
          </span>
        ))}
      </div>
      <div class="row wrap">
        {kFixed.map((id) => (
          <label key={id} class="row"><input type="checkbox" checked={ids.includes(id)} onChange={() => toggle(id)} /> {columnOf(id)!.title}</label>
        ))}
      </div>
      <NamePicker experiment={experiment}>
        {(kind, row) => {
          const id = columnId(kind, row.name);
          return <><input type="checkbox" checked={ids.includes(id)} onChange={() => toggle(id)} /><span class="cut mono">{row.name}</span></>;
        }}
      </NamePicker>
    </Dialog>
  );
}
