// A file of a run, as what it is: image, Markdown, table, JSON, text. Nothing of it runs.
import { useMemo } from 'preact/hooks';

import { bytes } from '../../lib/format';
import { parseCsv } from '../../lib/csv';
import { Await } from '../../parts/Box';
import { Icon } from '../../parts/Icon';
import { Markdown } from '../../parts/Markdown';
import { useLoaded } from '../../state/use';

const kMostText = 2 << 20;

export function kindOf(path: string): 'image' | 'markdown' | 'table' | 'json' | 'text' | 'other' {
  if (/\.(png|jpe?g|gif|webp|bmp)$/i.test(path)) return 'image';
  if (/\.(md|markdown)$/i.test(path)) return 'markdown';
  if (/\.(csv|tsv)$/i.test(path)) return 'table';
  if (/\.json$/i.test(path)) return 'json';
  if (/\.(txt|log|py|ya?ml|toml|cfg|ini|sh|jsonl|ndjson|html?|svg|xml|js|ts|css|c|cc|cpp|h|rs|go|sql|r|ipynb|lock|diff|patch)$/i.test(path)) return 'text';
  if (/(^|\/)(MLmodel|README|LICENSE|Makefile|Dockerfile|requirements|\.gitignore)$/i.test(path)) return 'text';
  return 'other';
}

export function Diff({ text }: { text: string }) {
  const tone = (line: string) =>
    /^(\+\+\+|---|diff |index )/.test(line) ? 'b' : line.startsWith('+') ? 'add' : line.startsWith('-') ? 'del' : line.startsWith('@@') ? 'hunk' : '';
  return <pre class="code" tabIndex={0}>{text.split('\n').map((line, i) => <span key={i} class={tone(line)}>{line}{'\n'}</span>)}</pre>;
}

function Table({ text, tab }: { text: string; tab: boolean }) {
  const rows = useMemo(() => parseCsv(text, tab ? '\t' : ','), [text]);
  const [head, ...rest] = rows;
  return (
    <div class="scroll code">
      <table class="plain-table">
        <thead><tr>{head?.map((cell, i) => <th key={i}>{cell}</th>)}</tr></thead>
        <tbody>{rest.map((row, i) => <tr key={i}>{row.map((cell, k) => <td key={k}>{cell}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

function Body({ path, text }: { path: string; text: string }) {
  const kind = kindOf(path);
  const pretty = useMemo(() => {
    if (kind !== 'json') return text;
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  }, [text, kind]);
  if (kind === 'markdown') return <Markdown text={text} />;
  if (kind === 'table') return <Table text={text} tab={/\.tsv$/i.test(path)} />;
  if (/\.(diff|patch)$/i.test(path)) return <Diff text={text} />;
  return <pre class="code" tabIndex={0}>{pretty}</pre>;
}

export function FileView({ path, size, url, load }: {
  path: string;
  size: number;
  url?: string;
  load: () => Promise<string>;
}) {
  const kind = kindOf(path);
  const readable = kind !== 'image' && kind !== 'other' && size <= kMostText;
  const text = useLoaded(readable ? `${url} ${path}` : null, load);
  return (
    <section class="card">
      <header>
        <h2 class="cut">{path}</h2>
        <span class="dim num">{bytes(size)}</span>
        {url ? <a class="button small" href={url} download={path.split('/').pop()}><Icon name="download" /> Download</a> : null}
      </header>
      {kind === 'image' && url ? <img class="preview-image" src={url} alt={path} /> : null}
      {readable ? <Await of={text}>{(body) => <Body path={path} text={body} />}</Await> : null}
      {!readable && kind !== 'image' ? <p class="dim">{kind === 'other' ? 'No preview for this kind of file.' : 'Too large to show here.'}</p> : null}
    </section>
  );
}
