// The colours of a terminal in a line of a log. Only SGR is understood; every other escape sequence
// and control character is left out. A carriage return starts the line again, as progress bars
// expect. Pure.

export interface Span {
  text: string;
  fg?: string; // 'a0'–'a15' of the theme, or '#rrggbb'
  bg?: string;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
}

const kSequence = /\x1b\[([0-9;:?]*)([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]?|[\x00-\x08\x0b-\x1f\x7f]/g;

export function plain(line: string): string {
  return lastPart(line).replace(kSequence, '');
}

// At most `most` characters of what a terminal would show of the line.
export function ansi(line: string, most = Infinity): Span[] {
  const text = lastPart(line).slice(0, most);
  if (!/[\x00-\x08\x0b-\x1f\x7f]/.test(text)) return text ? [{ text }] : [];
  const spans: Span[] = [];
  let style: Omit<Span, 'text'> = {};
  let from = 0;
  const push = (to: number) => {
    if (to > from) spans.push({ text: text.slice(from, to), ...style });
  };
  for (const match of text.matchAll(kSequence)) {
    push(match.index);
    from = match.index + match[0].length;
    if (match[2] === 'm') style = apply(style, match[1] ?? '');
  }
  push(text.length);
  return spans;
}

// What is left on screen: what came after the last carriage return.
export function lastPart(line: string): string {
  const text = line.replace(/[\r\n]+$/, '');
  const at = text.lastIndexOf('\r');
  return at < 0 ? text : text.slice(at + 1);
}

function apply(before: Omit<Span, 'text'>, codes: string): Omit<Span, 'text'> {
  let style = { ...before };
  const list = codes.split(/[;:]/).map((c) => Number(c || 0));
  for (let i = 0; i < list.length; ++i) {
    const code = list[i]!;
    if (code === 0) style = {};
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.underline = true;
    else if (code === 22) style = { ...style, bold: false, dim: false };
    else if (code === 23) style.italic = false;
    else if (code === 24) style.underline = false;
    else if (code >= 30 && code <= 37) style.fg = `a${code - 30}`;
    else if (code >= 90 && code <= 97) style.fg = `a${code - 82}`;
    else if (code >= 40 && code <= 47) style.bg = `a${code - 40}`;
    else if (code >= 100 && code <= 107) style.bg = `a${code - 92}`;
    else if (code === 39) delete style.fg;
    else if (code === 49) delete style.bg;
    else if (code === 38 || code === 48) {
      const [colour, used] = extended(list.slice(i + 1));
      if (colour) style[code === 38 ? 'fg' : 'bg'] = colour;
      i += used;
    }
  }
  return style;
}

function extended(rest: number[]): [string | undefined, number] {
  const hex = (n: number) => Math.min(255, Math.max(0, n | 0)).toString(16).padStart(2, '0');
  if (rest[0] === 2) return [`#${hex(rest[1]!)}${hex(rest[2]!)}${hex(rest[3]!)}`, 4];
  if (rest[0] !== 5) return [undefined, rest.length];
  const n = Math.min(255, Math.max(0, rest[1]! | 0));
  if (n < 16) return [`a${n}`, 2];
  if (n >= 232) return [`#${hex(8 + (n - 232) * 10).repeat(3)}`, 2];
  const level = (v: number) => hex(v === 0 ? 0 : 55 + v * 40);
  const m = n - 16;
  return [`#${level(Math.floor(m / 36))}${level(Math.floor(m / 6) % 6)}${level(m % 6)}`, 2];
}
