// A command to type, with a button that copies it.
import { useState } from 'preact/hooks';

import { Icon } from './Icon';

export function Command({ text, inline }: { text: string; inline?: boolean }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    } catch {
      // No clipboard without TLS or permission; the text can still be marked.
    }
  };
  return (
    <span class={`command ${inline ? 'inline' : ''}`}>
      <code>{text}</code>
      <button class="button plain small" aria-label={`Copy ${text}`} title="Copy" onClick={copy}>
        <Icon name={copied ? 'check' : 'copy'} />
      </button>
    </span>
  );
}
