// A dialog of the browser's own kind: it traps the focus and closes on Escape.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import { Icon } from './Icon';

export function Dialog({ title, close, children, footer, wide }: {
  title: string;
  close: () => void;
  children: ComponentChildren;
  footer?: ComponentChildren;
  wide?: boolean;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (!ref.current?.open) ref.current?.showModal();
  }, []);
  return (
    <dialog
      ref={ref}
      class={wide ? 'wide' : ''}
      aria-label={title}
      onClose={close}
      onClick={(event) => event.target === ref.current && close()}
    >
      <header>
        <h2>{title}</h2>
        <button class="button plain small" aria-label="Close" onClick={close}><Icon name="close" /></button>
      </header>
      <div class="body">{children}</div>
      {footer ? <footer>{footer}</footer> : null}
    </dialog>
  );
}
