// Names and values: parameters, or tags that can be added and taken away.
import { useState } from 'preact/hooks';

import { Icon } from '../../parts/Icon';
import { api } from '../../state/api';
import { tellFailure } from '../../state/toast';

interface Props { title: string; rows: [string, string][]; run?: string; marks?: Record<string, string>; note?: string }

export function Labels({ title, rows, run, marks, note }: Props) {
  const [changed, setChanged] = useState<Record<string, string | null>>({});
  const [text, setText] = useState('');
  const all = new Map(rows);
  for (const [key, value] of Object.entries(changed)) {
    if (value === null) all.delete(key);
    else all.set(key, value);
  }
  if (all.size === 0 && !run) return null;
  const put = async (key: string, value: string | null) => {
    try {
      await api.patchRun(run!, { tags: { [key]: value } });
      setChanged({ ...changed, [key]: value });
    } catch (error) {
      tellFailure(error, 'tag');
    }
  };
  const add = (event: Event) => {
    event.preventDefault();
    const [key, ...value] = text.split('=');
    if (!key?.trim()) return;
    setText('');
    void put(key.trim(), value.join('=').trim());
  };
  return (
    <section class="card">
      <header><h2>{title}</h2></header>
      <dl class="facts">
        {[...all].map(([key, value]) => (
          <>
            <dt key={key}>{key}</dt>
            <dd class="mono row" key={`${key}-value`}>
              <span class="grow">{value || <span class="dim">(empty)</span>}{marks?.[key] ? <span class="word warn"> {marks[key]}</span> : null}</span>
              {run ? (
                <button class="button plain small" aria-label={`Remove tag ${key}`} title="Remove" onClick={() => void put(key, null)}>
                  <Icon name="close" />
                </button>
              ) : null}
            </dd>
          </>
        ))}
      </dl>
      {note ? <p class="dim" style={{ marginTop: '8px' }}>{note}</p> : null}
      {run ? (
        <form class="row" style={{ marginTop: '8px' }} onSubmit={add}>
          <input type="text" class="grow" placeholder="name=value" aria-label="New tag" value={text}
            onInput={(e) => setText(e.currentTarget.value)} />
          <button class="button">Add</button>
        </form>
      ) : null}
    </section>
  );
}
