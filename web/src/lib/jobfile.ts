// The text of a job file from an existing job, for editing; and the position of an error in a text.
// Pure.

export interface Like {
  experiment?: string;
  command?: string[];
  shell?: boolean;
  params?: { name: string; value: string; kind?: string }[];
  env?: Record<string, string>;
  resources?: { type?: string; cpu_millis?: number; memory_bytes?: number; gpus?: number; no_gpus?: boolean; nodes?: number; nodes_most?: number; processes?: number };
}

export const kTemplate = `run: python3 train.py --lr \${lr}
params:
  lr: 0.1
resources:
  cpus: 1
`;

// A text that YAML reads as this text and nothing else: JSON's form, which is YAML too.
const quoted = (text: string) => (/^[A-Za-z_][\w./-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text) ? text : JSON.stringify(text));
const value = (one: { value: string; kind?: string }) => (one.kind && one.kind !== 'string' ? one.value : quoted(one.value));

export function jobText(job: Like): string {
  const lines: string[] = [];
  const command = job.command ?? [];
  const map = (name: string, rows: [string, string][]) => {
    if (rows.length) lines.push(`${name}:`, ...rows.map(([key, text]) => `  ${quoted(key)}: ${text}`));
  };
  if (job.experiment) lines.push(`experiment: ${quoted(job.experiment)}`);
  if (command.length) lines.push(`run: ${job.shell ? JSON.stringify(command[0]) : `[${command.map((word) => JSON.stringify(word)).join(', ')}]`}`);
  map('params', (job.params ?? []).map((one) => [one.name, value(one)]));
  map('env', Object.entries(job.env ?? {}).map(([key, text]) => [key, quoted(text)]));
  const { type, cpu_millis: cpus, memory_bytes: memory, gpus, no_gpus: none, nodes = 1, nodes_most: most, processes = 1 } = job.resources ?? {};
  const rows: [string, string | false][] = [
    ...(type ? [['type', quoted(type)] as [string, string]] : [
      ['cpus', !!cpus && String(cpus / 1000)] as [string, string | false],
      ['memory', !!memory && `${memory}B`] as [string, string | false],
      ['gpus', (!!gpus || !!none) && String(gpus ?? 0)] as [string, string | false],
    ]),
    ['nodes', !!most ? `${nodes}..${most}` : nodes > 1 && String(nodes)],
    ['processes', processes > 1 && String(processes)],
  ];
  map('resources', rows.filter((row): row is [string, string] => row[1] !== false));
  return `${lines.join('\n')}\n`;
}

// "job.yaml:3:7" as a line and a column from 1, and where that is in the text.
export function placeIn(text: string, where: string): { line: number; column: number; from: number; to: number } | undefined {
  const found = /:(\d+):(\d+)$/.exec(where);
  if (!found) return undefined;
  const [line, column] = [Number(found[1]), Number(found[2])];
  const rows = text.split('\n');
  if (line < 1 || line > rows.length) return undefined;
  const start = rows.slice(0, line - 1).reduce((sum, row) => sum + row.length + 1, 0);
  const end = start + rows[line - 1]!.length;
  return { line, column, from: Math.min(end, start + column - 1), to: end };
}
