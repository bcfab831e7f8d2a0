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

const kProgram = /^(ath|athanor|mlflow|pip|python3?|export|chmod|df|du|echo|pkill|mv|rm) \S/;

// Advice, one per line: a command if it is one, and what follows it as text. Only what a shell
// would run can be copied.
export function Hint({ text }: { text: string }) {
  return (
    <>
      {text.split('\n').filter((line) => line.trim()).map((line) => {
        if (!kProgram.test(line)) return <span key={line}>{line.replace(/^# /, '')}</span>;
        const [, command, note] = /^(.*?)(?:(?:\s{2,}|\s+# ?)(.*))?$/.exec(line)!;
        return <span key={line} class="row wrap"><Command text={command!} inline />{note ? <span>{note.replace(/^# ?/, '')}</span> : null}</span>;
      })}
    </>
  );
}
