// A button with a list below it; closes on a choice, a click elsewhere, and Escape.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

export interface Choice {
  text: ComponentChildren;
  act?: () => void;
  href?: string;
  disabled?: boolean;
  danger?: boolean;
}

export function Menu({ label, choices, children, left, title, small = true, className = '' }: {
  label: ComponentChildren;
  title?: string;
  choices?: Choice[];
  children?: (close: () => void) => ComponentChildren;
  left?: boolean;
  small?: boolean;
  className?: string;
}) {
  const [open, setOpen] = useState(false);
  const ref = useRef<HTMLSpanElement>(null);
  const close = () => setOpen(false);
  useEffect(() => {
    if (!open) return;
    const away = (event: Event) => {
      if (!ref.current?.contains(event.target as Node)) close();
    };
    const escape = (event: KeyboardEvent) => event.key === 'Escape' && close();
    document.addEventListener('pointerdown', away);
    document.addEventListener('keydown', escape);
    return () => {
      document.removeEventListener('pointerdown', away);
      document.removeEventListener('keydown', escape);
    };
  }, [open]);
  return (
    <span class={`menu ${left ? 'left' : ''}`} ref={ref}>
      <button class={`button ${small ? 'small' : ''} ${className}`} title={title} aria-label={title} aria-expanded={open}
        onClick={() => setOpen(!open)}>
        {label}
      </button>
      {open ? (
        <div class="pop">
          {children?.(close)}
          {choices?.map((choice, i) =>
            choice.href ? (
              <a key={i} class="item" href={choice.href} onClick={close}>{choice.text}</a>
            ) : (
              <button key={i} class={`item ${choice.danger ? 'danger' : ''}`} disabled={choice.disabled}
                onClick={() => { close(); choice.act?.(); }}>
                {choice.text}
              </button>
            ))}
        </div>
      ) : null}
    </span>
  );
}
