// An address of the page: a path and a query behind the '#', so that it works under any prefix
// and behind any proxy, and opening it again restores the view. Pure.

export interface Route {
  path: string[];
  query: Record<string, string>;
}

export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#\/?/, '');
  const mark = text.indexOf('?');
  const where = mark < 0 ? text : text.slice(0, mark);
  const query: Record<string, string> = {};
  if (mark >= 0) {
    for (const [key, value] of new URLSearchParams(text.slice(mark + 1))) query[key] = value;
  }
  return { path: fromMlflow(where.split('/').filter(Boolean).map(decode)), query };
}

const kTabs: Record<string, string> = { artifacts: 'artifacts', 'model-metrics': 'charts', 'system-metrics': 'system' };

// The links that MLflow's clients print, "#/experiments/4/runs/RUN", name a run as MLflow's own
// page does.
function fromMlflow(path: string[]): string[] {
  const [place, , kind, run, tab] = path;
  if (place !== 'experiments' || kind !== 'runs' || !run) return path;
  const own = kTabs[tab ?? ''];
  return own ? ['job', run, own] : ['job', run];
}

export function formatRoute(path: string[], query: Record<string, string | undefined> = {}): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') params.set(key, value);
  }
  const text = params.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

// A name that is not valid percent-encoding is used as it is.
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
