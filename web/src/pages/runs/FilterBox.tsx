// The filter as text, completed while it is typed: fields, names that exist, comparators, values.
import { useEffect, useRef, useState } from 'preact/hooks';

import { complete, expect, fixedCompletions, kMeanings, type Expectation } from '../../lib/filter';
import { api } from '../../state/api';

// The filter's language has MLflow's words for states; the page has one for each.
const kStatusWords: Record<string, string> = {
  "'FINISHED'": 'Completed', "'KILLED'": 'Stopped', "'SCHEDULED'": 'Queued',
};

interface Choice {
  text: string;
  note?: string;
}

async function choicesAt(at: Expectation, signal: AbortSignal): Promise<Choice[]> {
  if (!at.names) return fixedCompletions(at).map((text) => ({ text, note: at.want === 'comparator' ? kMeanings[text] : kStatusWords[text] }));
  const reply = await api.names({ kind: at.names, contains: at.prefix, limit: 12 }, signal);
  return reply.names.map((row) => ({ text: row.name, note: `${row.runs} runs` }));
}

export function FilterBox({ value, onChange, bad, focus }: {
  value: string;
  onChange: (filter: string) => void;
  bad?: string;
  focus?: boolean;
}) {
  const [text, setText] = useState(value);
  const [choices, setChoices] = useState<Choice[]>([]);
  const [chosen, setChosen] = useState(-1);
  const [open, setOpen] = useState(false);
  const at = useRef<Expectation | undefined>(undefined);
  const input = useRef<HTMLInputElement>(null);
  const abort = useRef<AbortController | undefined>(undefined);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (focus) input.current?.focus();
  }, [focus]);

  const look = (now: string, caret: number) => {
    at.current = expect(now, caret);
    abort.current?.abort();
    abort.current = new AbortController();
    choicesAt(at.current, abort.current.signal).then(
      (list) => {
        setChoices(list);
        setChosen(-1);
      },
      (error: Error) => error.name !== 'AbortError' && setChoices([]));
  };
  const apply = (now: string) => {
    setOpen(false);
    onChange(now.trim());
  };
  const take = (choice: Choice) => {
    const [next, caret] = complete(text, at.current!, choice.text);
    setText(next);
    input.current?.focus();
    requestAnimationFrame(() => input.current?.setSelectionRange(caret, caret));
    look(next, caret);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      setOpen(true);
      const by = event.key === 'ArrowDown' ? 1 : -1;
      setChosen((chosen + by + choices.length + (chosen < 0 && by < 0 ? 1 : 0)) % Math.max(1, choices.length));
    } else if ((event.key === 'Enter' || event.key === 'Tab') && open && choices[chosen]) {
      event.preventDefault();
      take(choices[chosen]!);
    } else if (event.key === 'Tab' && open && choices[0] && at.current?.prefix) {
      event.preventDefault();
      take(choices[0]);
    } else if (event.key === 'Enter') {
      apply((event.currentTarget as HTMLInputElement).value);
    } else if (event.key === 'Escape' && open) {
      event.stopPropagation();
      setOpen(false);
    }
  };
  return (
    <div class={`filter-box ${bad ? 'bad' : ''}`}>
      <input ref={input} type="search" list={undefined} data-search spellcheck={false} autocomplete="off" role="combobox" aria-expanded={open && choices.length > 0}
        aria-controls="filter-choices" aria-label="Filter" aria-invalid={!!bad} title={bad}
        placeholder="Name, or: metrics.loss < 0.5 AND params.opt = 'adam'" value={text}
        onFocus={(e) => { setOpen(true); look(text, e.currentTarget.selectionStart ?? 0); }}
        onBlur={() => setTimeout(() => setOpen(false), 120)}
        onInput={(e) => {
          setText(e.currentTarget.value);
          setOpen(true);
          look(e.currentTarget.value, e.currentTarget.selectionStart ?? 0);
          if (e.currentTarget.value === '') apply('');
        }}
        onKeyDown={onKey} />
      {open && choices.length > 0 ? (
        <ul class="pop" id="filter-choices" role="listbox">
          {choices.map((choice, i) => (
            <li key={choice.text} role="option" aria-selected={i === chosen} class={i === chosen ? 'on' : ''}
              onMouseDown={(e) => { e.preventDefault(); take(choice); }}>
              {choice.text}{choice.note ? <small>{choice.note}</small> : null}
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}
