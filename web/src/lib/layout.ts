// How the user arranged charts: which are in which section, in what order and size. Stored in the
// address as two short texts. A chart that was not moved is in a section named after the first part
// of its name. Pure.

export interface Size {
  span: number; // columns of the grid
  height: number; // px
}

export type Section = [title: string, metrics: string[]];

export interface Layout {
  sections: Section[]; // those that were arranged
  sizes: Map<string, Size>;
}

export const kPinned = 'pinned';
export const kLeastHeight = 120;
export const kMostHeight = 1200;
const kMostSpan = 12;

function sectionOf(name: string): string {
  const at = name.search(/[/.]/);
  return at > 0 ? name.slice(0, at) : 'metrics';
}

const parts = (text: string | undefined, by: string) => (text ? text.split(by).filter(Boolean) : []);

function plain(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const clampSize = (size: Size): Size => ({
  span: Math.min(kMostSpan, Math.max(1, Math.round(size.span) || 1)),
  height: Math.min(kMostHeight, Math.max(kLeastHeight, Math.round(size.height) || kLeastHeight)),
});

export function parseLayout(sec: string | undefined, size: string | undefined): Layout {
  const sections = parts(sec, ';').map((part): Section => {
    const [title = '', list] = part.split(':');
    return [plain(title), parts(list, ',').map(plain)];
  });
  const sizes = new Map(parts(size, ';').map((part): [string, Size] => {
    const [name = '', span, height] = part.split(':');
    return [plain(name), clampSize({ span: Number(span), height: Number(height) })];
  }));
  return { sections, sizes };
}

export function formatLayout(layout: Layout): { sec?: string; size?: string } {
  const code = encodeURIComponent;
  const sec = layout.sections.map(([title, list]) => `${code(title)}:${list.map(code).join(',')}`).join(';');
  const size = [...layout.sizes].map(([name, one]) => `${code(name)}:${one.span}:${one.height}`).join(';');
  return { sec: sec || undefined, size: size || undefined };
}

// The sections that are shown, of the names that exist: pinned, arranged, then the rest.
export function place(names: string[], pinned: string[], layout: Layout): Section[] {
  const left = new Set(names);
  const out = new Map<string, string[]>();
  const put = (title: string, name: string) => {
    if (!left.delete(name)) return;
    const list = out.get(title);
    if (list) list.push(name);
    else out.set(title, [name]);
  };
  for (const name of pinned) put(kPinned, name);
  for (const [title, list] of layout.sections) for (const name of list) put(title, name);
  for (const name of [...left]) put(sectionOf(name), name);
  return [...out];
}

// `name` moved into a section, before a chart of it or to its end. `shown` is what place() gave: a
// section that something is moved within keeps the order that it had on screen.
export function move(layout: Layout, shown: Section[], name: string, title: string, before?: string): Layout {
  const sections = layout.sections.map(([one, list]): Section => [one, list.filter((other) => other !== name)]);
  let target = sections.find(([one]) => one === title);
  if (!target) sections.push((target = [title, []]));
  const order = (shown.find(([one]) => one === title)?.[1] ?? []).filter((other) => other !== name);
  const at = before === undefined ? -1 : order.indexOf(before);
  order.splice(at < 0 ? order.length : at, 0, name);
  target[1] = order;
  return { ...layout, sections: sections.filter(([, list]) => list.length > 0) };
}

export function resize(layout: Layout, name: string, size: Size | undefined): Layout {
  const sizes = new Map(layout.sizes);
  if (size) sizes.set(name, clampSize(size));
  else sizes.delete(name);
  return { ...layout, sizes };
}

// Back to its usual size and place.
export function forget(layout: Layout, name: string): Layout {
  const sections = layout.sections.map(([one, list]): Section => [one, list.filter((other) => other !== name)]);
  return resize({ ...layout, sections: sections.filter(([, list]) => list.length > 0) }, name, undefined);
}
