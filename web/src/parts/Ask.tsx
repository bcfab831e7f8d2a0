// A question before what cannot be taken back.
import { Dialog } from './Dialog';

export function Ask({ title, text, yes, no = 'Cancel', act, close }: {
  title: string;
  text: string;
  yes: string;
  no?: string;
  act: () => void;
  close: () => void;
}) {
  return (
    <Dialog title={title} close={close} footer={
      <>
        <button class="button" onClick={close}>{no}</button>
        <button class="button danger" autofocus onClick={() => { close(); act(); }}>{yes}</button>
      </>
    }>
      <p>{text}</p>
    </Dialog>
  );
}
