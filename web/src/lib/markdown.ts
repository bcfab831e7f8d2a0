// Markdown as a tree that is drawn with our own elements. HTML in it is text; addresses other than
// http(s), mailto and relative ones are dropped. Pure.

export type Inline =
  | { kind: 'text' | 'code'; text: string }
  | { kind: 'strong' | 'em' | 'strike'; body: Inline[] }
  | { kind: 'link'; href: string; body: Inline[] };

export type Block =
  | { kind: 'heading'; level: number; body: Inline[] }
  | { kind: 'paragraph'; body: Inline[] }
  | { kind: 'code'; text: string }
  | { kind: 'quote'; body: Block[] }
  | { kind: 'list'; ordered: boolean; items: Inline[][] }
  | { kind: 'table'; head: Inline[][]; rows: Inline[][][] }
  | { kind: 'rule' };

export function safeHref(href: string): string | undefined {
  const text = href.trim();
  if (/^(https?:|mailto:|#)/i.test(text)) return text;
  // A scheme may hide behind control characters that a browser passes over.
  const bare = text.replace(/[\x00-\x20]/g, '');
  return /^[a-z][a-z0-9+.-]*:/i.test(bare) || bare.startsWith('//') ? undefined : text;
}

const kInline =
  /`([^`]+)`|\*\*([^*]+)\*\*|__([^_]+)__|\*([^*\s][^*]*)\*|\b_([^_]+)_\b|~~([^~]+)~~|!?\[([^\]]*)\]\(([^()\s]+)[^()]*\)/;

export function inlines(text: string): Inline[] {
  const out: Inline[] = [];
  let rest = text;
  for (let match = kInline.exec(rest); match; match = kInline.exec(rest)) {
    if (match.index > 0) out.push({ kind: 'text', text: rest.slice(0, match.index) });
    rest = rest.slice(match.index + match[0].length);
    const strong = match[2] ?? match[3];
    const em = match[4] ?? match[5];
    if (match[1] !== undefined) out.push({ kind: 'code', text: match[1] });
    else if (strong !== undefined) out.push({ kind: 'strong', body: inlines(strong) });
    else if (em !== undefined) out.push({ kind: 'em', body: inlines(em) });
    else if (match[6] !== undefined) out.push({ kind: 'strike', body: inlines(match[6]) });
    else {
      const href = safeHref(match[8]!);
      const body: Inline[] = [{ kind: 'text', text: match[7] || match[8]! }];
      if (href) out.push({ kind: 'link', href, body });
      else out.push(...body);
    }
  }
  if (rest) out.push({ kind: 'text', text: rest });
  return out;
}

const cells = (line: string) =>
  line.replace(/^\s*\||\|\s*$/g, '').split('|').map((cell) => inlines(cell.trim()));

export function markdown(text: string): Block[] {
  const lines = text.replace(/\r\n?/g, '\n').split('\n');
  const out: Block[] = [];
  let i = 0;
  const take = (while_: (line: string) => boolean): string[] => {
    const from = i;
    while (i < lines.length && while_(lines[i]!)) ++i;
    return lines.slice(from, i);
  };
  while (i < lines.length) {
    const line = lines[i]!;
    const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    if (!line.trim()) {
      ++i;
    } else if (/^\s*(```|~~~)/.test(line)) {
      ++i;
      const body = take((l) => !/^\s*(```|~~~)/.test(l));
      ++i;
      out.push({ kind: 'code', text: body.join('\n') });
    } else if (heading) {
      out.push({ kind: 'heading', level: heading[1]!.length, body: inlines(heading[2]!) });
      ++i;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      out.push({ kind: 'rule' });
      ++i;
    } else if (/^>/.test(line)) {
      const body = take((l) => /^>/.test(l)).map((l) => l.replace(/^>\s?/, ''));
      out.push({ kind: 'quote', body: markdown(body.join('\n')) });
    } else if (kItem.test(line)) {
      const ordered = /^\s*\d/.test(line);
      const items = take((l) => kItem.test(l) || /^\s{2,}\S/.test(l));
      out.push({ kind: 'list', ordered, items: joinItems(items) });
    } else if (line.includes('|') && /^[\s|:-]+$/.test(lines[i + 1] ?? 'x')) {
      const rows = take((l) => l.includes('|'));
      out.push({ kind: 'table', head: cells(rows[0]!), rows: rows.slice(2).map(cells) });
    } else {
      const body = take((l) => l.trim() !== '' && !/^(#{1,6}\s|>|\s*(```|~~~))/.test(l) && !kItem.test(l));
      if (body.length === 0) body.push(lines[i++]!);
      out.push({ kind: 'paragraph', body: inlines(body.join(' ')) });
    }
  }
  return out;
}

const kItem = /^\s*([-*+]|\d+[.)])\s+/;

function joinItems(lines: string[]): Inline[][] {
  const items: string[] = [];
  for (const line of lines) {
    if (kItem.test(line)) items.push(line.replace(kItem, ''));
    else items[items.length - 1] += ` ${line.trim()}`;
  }
  return items.map(inlines);
}
