import assert from 'node:assert/strict';
import { test } from 'node:test';

import { jobText, placeIn } from '../src/lib/jobfile';
import { rankCount, ranksText } from '../src/lib/ranks';
import { forget, formatLayout, move, parseLayout, place, resize, type Layout } from '../src/lib/layout';
import { parsePoints, putIn, stepsUnder, xOf } from '../src/lib/points';

const none: Layout = { sections: [], sizes: new Map() };
const names = ['train/loss', 'train/lr', 'val/loss', 'plain'];

test('charts nobody moved stand by the first part of their names', () => {
  assert.deepEqual(place(names, ['val/loss', 'gone'], none),
    [['pinned', ['val/loss']], ['train', ['train/loss', 'train/lr']], ['metrics', ['plain']]]);
});

test('a moved chart keeps the order that was on screen, and new ones come behind', () => {
  const moved = move(none, place(names, [], none), 'train/lr', 'train', 'train/loss');
  assert.deepEqual(place([...names, 'train/new'], [], moved)[0], ['train', ['train/lr', 'train/loss', 'train/new']]);
  const again = move(moved, place(names, [], moved), 'plain', 'a: new, one;');
  assert.deepEqual(place(names, [], again)[1], ['a: new, one;', ['plain']]);
  assert.deepEqual(place(names, [], forget(again, 'plain')).at(-1), ['metrics', ['plain']]);
});

test('an arrangement comes back from the address, whatever its names are', () => {
  const odd = 'a:b;c,d/%"';
  const layout = resize(move(none, [], odd, 'x;y:z'), odd, { span: 3, height: 777.4 });
  const { sec, size } = formatLayout(layout);
  assert.deepEqual(parseLayout(sec, size), { sections: [['x;y:z', [odd]]], sizes: new Map([[odd, { span: 3, height: 777 }]]) });
  assert.deepEqual(parseLayout('%zz:%zz', 'a:-5:1e9').sizes.get('a'), { span: 1, height: 1200 });
});

const line = (points: [number, number][], apart = 1000) => parsePoints(points.map(([step, value]) =>
  JSON.stringify({ name: 'loss', step, value, time: new Date(1e12 + step * apart).toISOString() })).join('\n'));

test('the steps under a range reach one point beyond it on each side', () => {
  const series = line([[0, 5], [10, 6], [20, 7], [30, 8]]);
  assert.deepEqual(stepsUnder(series, xOf(series, 'relative'), 9, 21), { from: 0, to: 30 });
  assert.deepEqual(stepsUnder(series, xOf(series, 'step'), 12, 14), { from: 10, to: 20 });
  assert.deepEqual(stepsUnder(series, series.value, 6.5, 9), { from: 10, to: 30 });
  assert.equal(stepsUnder(line([]), new Float64Array(), 0, 1), undefined);
});

test('the detail of a range is put in the place of what was there', () => {
  const joined = putIn(line([[0, 0], [10, 1], [20, 2], [30, 3]]), line([[9, 9], [11, 11], [20, 20]]));
  assert.deepEqual(Array.from(joined.step), [0, 9, 11, 20, 30]);
  assert.deepEqual(Array.from(joined.value), [0, 9, 11, 20, 3]);
});

test('a job becomes the text of a job file that says the same', () => {
  assert.equal(jobText({
    experiment: 'a b', command: ['python3', 'x.py', '--q', "it's"], params: [{ name: 'lr', value: '0.1', kind: 'number' }, { name: 'o', value: 'yes' }],
    resources: { cpu_millis: 500, memory_bytes: 1024 },
  }), `experiment: "a b"
run: ["python3", "x.py", "--q", "it's"]
params:
  lr: 0.1
  o: "yes"
resources:
  cpus: 0.5
  memory: 1024B
`);
});

test('a place that the server names is found in the text', () => {
  assert.deepEqual(placeIn('run: x\n  cpu: 2\n', 'job.yaml:2:3'), { line: 2, column: 3, from: 9, to: 15 });
  assert.equal(placeIn('x', 'job.yaml:7:1'), undefined);
  assert.equal(placeIn('x', 'job.yaml'), undefined);
});

test('nodes and processes stay in the text of a job and are said in words', () => {
  const text = jobText({ command: ['a'], resources: { cpu_millis: 500, nodes: 2, processes: 4 } });
  assert.match(text, /resources:\n  cpus: 0.5\n  nodes: 2\n  processes: 4\n/);
  assert.match(jobText({ resources: { type: 'ml.m5.large', nodes: 1, nodes_most: 4, processes: 1 } }), /type: ml.m5.large\n  nodes: 1..4\n$/);
  assert.doesNotMatch(jobText({ resources: { nodes: 1, nodes_most: 0, processes: 1 } }), /resources/);
  assert.equal(ranksText({ nodes: 2, processes: 4 }), '2 nodes with 4 processes each');
  assert.equal(ranksText({ processes: 4 }), '4 processes');
  assert.equal(ranksText({ nodes: 1, nodes_most: 4 }), '1..4 nodes');
  assert.equal(ranksText({ nodes: 1, nodes_most: 0, processes: 1 }), '');
  assert.equal(ranksText(), '');
  assert.equal(rankCount({ nodes: 2, processes: 4 }), 8);
  assert.equal(rankCount(), 1);
});
