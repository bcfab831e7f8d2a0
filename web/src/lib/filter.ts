// The filter's language (`metrics.loss < 0.5 AND params.opt = 'adam'`), as far as the page must
// know it: what could come next at the caret, and clauses clicked together as text. The server
// checks and evaluates. Pure.

export type NameKind = 'metric' | 'param' | 'tag';

export interface Expectation {
  want: 'field' | 'comparator' | 'value' | 'and';
  from: number; // what a completion replaces
  to: number;
  prefix: string;
  names?: NameKind; // the names of which kind complete it, after "metrics." and so on
  field?: string;
}

export interface Clause {
  field: string; // metrics.loss
  comparator: string;
  value: string;
}

interface Token {
  kind: 'word' | 'comparator' | 'string' | 'list';
  text: string;
  from: number;
  to: number;
}

export const kFields = [
  'metrics.', 'params.', 'tags.', 'attributes.run_name', 'attributes.status',
  'attributes.start_time', 'attributes.end_time', 'attributes.user_id', 'attributes.run_id',
];
const kTextComparators = ['ILIKE', '=', '!=', 'LIKE', 'IN', 'NOT IN', 'IS NULL', 'IS NOT NULL'];
const kNumberComparators = ['=', '!=', '<', '<=', '>', '>=', 'IS NULL', 'IS NOT NULL'];
const kPlural: Record<NameKind, string> = { metric: 'metrics', param: 'params', tag: 'tags' };
const kToken =
  /\s*(?:('(?:[^']|'')*'?)|(\([^)]*\)?)|(<=|>=|!=|=|<|>)|((?:[\w./-]|`[^`]*`?|"[^"]*"?)+))/y;

function tokens(text: string): Token[] {
  const out: Token[] = [];
  kToken.lastIndex = 0;
  for (let match = kToken.exec(text); match; match = kToken.exec(text)) {
    const body = match[1] ?? match[2] ?? match[3] ?? match[4] ?? '';
    const to = kToken.lastIndex;
    const kind = match[1] ? 'string' : match[2] ? 'list' : match[3] ? 'comparator' : 'word';
    out.push({ kind, text: body, from: to - body.length, to });
  }
  return out;
}

// What a comparator means, to click at; the language has SQL's words.
export const kMeanings: Record<string, string> = {
  '=': 'is', '!=': 'is not', '<': 'is less than', '<=': 'is at most', '>': 'is more than', '>=': 'is at least',
  LIKE: 'matches the pattern (case counts)', ILIKE: 'contains', IN: 'is one of', 'NOT IN': 'is none of',
  'IS NULL': 'is not set', 'IS NOT NULL': 'is set',
};

export function comparatorsOf(field: string): string[] {
  const numeric = /^(metrics\.|(attributes\.)?(start|end)_time)/.test(field);
  return numeric ? kNumberComparators : kTextComparators;
}

// What may come at the caret.
export function expect(text: string, caret: number): Expectation {
  const before = tokens(text.slice(0, caret));
  const touching = before.length > 0 && before[before.length - 1]!.to === caret;
  const current = touching ? before.pop()! : undefined;
  let want: Expectation['want'] = 'field';
  let field = '';
  for (let i = 0; i < before.length; ++i) {
    const token = before[i]!;
    const word = token.text.toUpperCase();
    if (want === 'field') {
      field = token.text;
      want = 'comparator';
    } else if (want === 'comparator') {
      if (word === 'NOT') continue;
      if (word === 'IS') {
        // IS NULL and IS NOT NULL take no value.
        const end = before.slice(i + 1).findIndex((t) => t.text.toUpperCase() === 'NULL');
        if (end < 0) break;
        i += end + 1;
        want = 'and';
      } else {
        want = 'value';
      }
    } else if (want === 'value') {
      want = 'and';
    } else {
      want = 'field';
    }
  }
  const prefix = current?.text ?? '';
  const found: Expectation = { want, from: current?.from ?? caret, to: caret, prefix };
  if (want === 'field') {
    const match = /^(metric|param|tag)s\.(.*)$/.exec(prefix);
    if (match) {
      found.names = match[1] as NameKind;
      found.from += kPlural[found.names].length + 1;
      found.prefix = match[2]!.replace(/[`"]/g, '');
    }
  } else {
    found.field = field;
  }
  return found;
}

// Completions that need no server.
export function fixedCompletions(at: Expectation): string[] {
  const starts = (list: string[]) =>
    list.filter((item) => item.toLowerCase().startsWith(at.prefix.toLowerCase()));
  switch (at.want) {
    case 'field':
      return at.names ? [] : starts(kFields);
    case 'comparator':
      return starts(comparatorsOf(at.field ?? ''));
    case 'and':
      return starts(['AND']);
    case 'value':
      return /status$/.test(at.field ?? '')
        ? starts(["'RUNNING'", "'FINISHED'", "'FAILED'", "'KILLED'", "'SCHEDULED'"])
        : [];
  }
}

export function quoteName(name: string): string {
  return /^[\w./-]+$/.test(name) && !/^[.\d]/.test(name) ? name : `\`${name.replace(/`/g, '')}\``;
}

export function fieldOf(kind: NameKind, name: string): string {
  return `${kPlural[kind]}.${/^\w+$/.test(name) ? name : `\`${name.replace(/`/g, '')}\``}`;
}

// The text with a completion put in, and where the caret goes.
export function complete(text: string, at: Expectation, choice: string): [string, number] {
  const glue = choice.endsWith('.') ? '' : ' ';
  const word = at.names && !/^\w+$/.test(choice) ? `\`${choice.replace(/`/g, '')}\`` : choice;
  const put = `${word}${glue}`;
  return [text.slice(0, at.from) + put + text.slice(at.to).replace(/^ /, ''), at.from + put.length];
}

export function formatClause(clause: Clause): string {
  const { field, comparator, value } = clause;
  if (/NULL$/.test(comparator)) return `${field} ${comparator}`;
  if (/^metrics\./.test(field) || /(start|end)_time$/.test(field)) {
    return `${field} ${comparator} ${value || 0}`;
  }
  const quote = (text: string) => `'${text.replace(/'/g, '')}'`;
  if (/IN$/.test(comparator)) {
    return `${field} ${comparator} (${value.split(',').map((v) => quote(v.trim())).join(', ')})`;
  }
  // "contains": the pattern is made here, unless the user wrote one.
  return `${field} ${comparator} ${quote(comparator === 'ILIKE' && !/%/.test(value) ? `%${value}%` : value)}`;
}

export function addClause(filter: string, clause: Clause): string {
  return filter.trim() ? `${filter.trim()} AND ${formatClause(clause)}` : formatClause(clause);
}

// Plain words are a search by name: what is typed without a comparator.
export function asFilter(text: string): string {
  const trimmed = text.trim();
  if (!trimmed || /[<>=]|\b(like|ilike|in|is)\b/i.test(trimmed)) return trimmed;
  return `attributes.run_name ILIKE '%${trimmed.replace(/'/g, '')}%'`;
}
