// What `?` shows: every key that does something in this view.
import { keys } from '../state/keys';
import { Dialog } from './Dialog';

export function KeyHelp({ close }: { close: () => void }) {
  return (
    <Dialog title="Keys" close={close}>
      <div class="keys">
        {keys.value.map((key) => [
          <span key={key.key}>{key.key.split(' ').map((one) => <kbd key={one}>{one}</kbd>)}</span>,
          <span key={`${key.key}-says`}>{key.says}</span>,
        ])}
      </div>
    </Dialog>
  );
}
