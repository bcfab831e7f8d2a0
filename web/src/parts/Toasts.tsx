// The messages of state/toast.ts.
import { dismiss, toasts } from '../state/toast';
import { Hint } from './Command';
import { Icon } from './Icon';

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.id} class={`toast ${toast.kind}`}>
          <div>
            {toast.text}
            {toast.hint ? <div style={{ marginTop: '4px' }}><Hint text={toast.hint} /></div> : null}
          </div>
          {toast.undo ? <button class="button small" onClick={toast.undo}>Undo</button> : null}
          <button class="button plain small" aria-label="Dismiss" onClick={() => dismiss(toast.id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
