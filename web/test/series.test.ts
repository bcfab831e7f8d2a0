import assert from 'node:assert/strict';
import { test } from 'node:test';

import { align } from '../src/lib/align';
import { rebin } from '../src/lib/bins';
import { joinTail, overMetric, parsePoints, pick, tailFrom, xOf } from '../src/lib/points';
import { principal } from '../src/lib/project';
import { bestSoFar, safeRange, smooth } from '../src/lib/smooth';
import { logTicks } from '../src/lib/ticks';
import { buildModel, type Settings } from '../src/charts/model';

const line = (points: [number, number | string][], attempt = 1, abandoned = false) =>
  points.map(([step, value]) => JSON.stringify({
    name: 'loss', step, value, time: new Date(1e12 + step * 1000).toISOString(),
    ...(attempt > 1 ? { attempt } : {}), ...(abandoned ? { abandoned } : {}),
  })).join('\n') + '\n';
const list = (values: ArrayLike<number>) => Array.from(values);

test('points keep steps, times, attempts and numbers that JSON lacks', () => {
  const series = parsePoints(line([[1, 2], [2, 'NaN'], [3, '-Infinity']], 2));
  assert.deepEqual(list(series.step), [1, 2, 3]);
  assert.equal(series.value[0], 2);
  assert.ok(Number.isNaN(series.value[1]));
  assert.equal(series.value[2], -Infinity);
  assert.deepEqual(list(series.attempt), [2, 2, 2]);
  assert.equal(series.time[0], 1e12 + 1000);
  assert.equal(parsePoints('').step.length, 0);
});

test('a tail replaces what was there from its first step on', () => {
  const old = parsePoints(line([[1, 1], [2, 2], [3, 3]]));
  const joined = joinTail(old, parsePoints(line([[3, 30], [4, 40]])));
  assert.deepEqual(list(joined.step), [1, 2, 3, 4]);
  assert.deepEqual(list(joined.value), [1, 2, 30, 40]);
  assert.equal(joinTail(old, parsePoints('')), old);
});

test('a tail will do from the last step on, but not of guesses or of what has no step but 0', () => {
  assert.equal(tailFrom(parsePoints(line([[0, 1], [5, 2]]))), 5);
  assert.equal(tailFrom(parsePoints(line([[0, 1]]))), undefined);
  const guessed = line([[4, 1], [5, 2]]).replaceAll('"value"', '"guessed":true,"value"');
  assert.equal(tailFrom(parsePoints(guessed)), undefined);
  assert.deepEqual(list(joinTail(parsePoints(guessed), parsePoints(guessed)).guessed), [1, 1]);
});

test('x is the step, the time, or the time since the first point', () => {
  const series = parsePoints(line([[5, 1], [7, 1]]));
  assert.deepEqual(list(xOf(series, 'step')), [5, 7]);
  assert.deepEqual(list(xOf(series, 'relative')), [0, 2]);
  assert.equal(xOf(series, 'time')[0], 1e9 + 5);
});

test('one metric over another takes the same steps only', () => {
  const both = overMetric(parsePoints(line([[1, 10], [2, 20], [3, 30]])), parsePoints(line([[1, 9], [3, 7]])));
  assert.deepEqual(list(both.x), [7, 9]);
  assert.deepEqual(list(both.y), [30, 10]);
});

test('smoothing stays between what was measured, has no value where there is none, and 0 changes nothing', () => {
  const x = Float64Array.from({ length: 50 }, (_, i) => i);
  const y = x.map((i) => (i === 10 ? NaN : 3 + Math.sin(i * 9)));
  const out = smooth(x, y, 0.9);
  assert.ok(Number.isNaN(out[10]));
  assert.equal(out[0], y[0]);
  for (let i = 0; i < 50; ++i) if (i !== 10) assert.ok(out[i]! >= 2 && out[i]! <= 4);
  assert.equal(smooth(x, y, 0), y);
});

test('smoothing over a gap forgets as much as the points in it would have made it forget', () => {
  const x = Float64Array.from([0, 1, 2, 3, 4, 1000]);
  const out = smooth(x, Float64Array.from([0, 0, 0, 0, 0, 8]), 0.9);
  assert.ok(out[5]! > 7.99);
});

test('the best so far never gets worse and passes over what is no number', () => {
  assert.deepEqual(list(bestSoFar(Float64Array.from([3, NaN, 1, 2]), true)), [3, 3, 1, 1]);
  assert.deepEqual(list(bestSoFar(Float64Array.from([3, 1, 5, 2]), false)), [3, 3, 5, 5]);
});

test('one far outlier does not flatten a scale, and an even spread keeps its ends', () => {
  const bulk = Array.from({ length: 300 }, (_, i) => i / 300);
  assert.ok(safeRange([[...bulk, 1e6]])![1] < 2);
  assert.deepEqual(safeRange([bulk]), [0, 299 / 300]);
  assert.equal(safeRange([[NaN]]), null);
});

test('few points are joined exactly: a gap for NaN, nothing where a line has no point', () => {
  const a = { x: Float64Array.from([1, 2]), y: Float64Array.from([10, NaN]) };
  const b = { x: Float64Array.from([2, 3]), y: Float64Array.from([20, 30]) };
  const out = align([a, b], [a, b], 100);
  assert.deepEqual(list(out.x), [1, 2, 3]);
  assert.deepEqual(out.last, [[10, null, undefined], [undefined, 20, 30]]);
  assert.equal(out.sampled, false);
});

test('many points become cells whose band holds every value', () => {
  const x = Float64Array.from({ length: 9000 }, (_, i) => i);
  const y = x.map((i) => (i === 4321 ? 99 : i % 7));
  const out = align([{ x, y }], [{ x, y }], 100);
  assert.equal(out.sampled, true);
  assert.equal(out.x.length, 100);
  assert.equal(Math.max(...(out.high[0] as number[])), 99);
  assert.equal(Math.min(...(out.low[0] as number[])), 0);
});

test('a model marks what has no place on the axis, greys abandoned points and never joins attempts', () => {
  const settings: Settings = { axis: 'step', smooth: 0, logX: false, logY: false, outliers: false };
  const all = parsePoints(line([[5, 1], [6, 2]], 1, true) + line([[1, 3], [2, 'NaN'], [3, 'Infinity']]) + line([[5, 4]], 2));
  const series = pick(all, (i) => !all.abandoned[i]);
  const old = pick(all, (i) => all.abandoned[i] === 1);
  const model = buildModel([{ id: 'a', label: 'a', colour: '#112233', series, old }], settings, 100, '#999999');
  assert.deepEqual(model.marks.map((mark) => mark.kind), ['nan', 'up', 'attempt']);
  assert.deepEqual(model.columns.map((column) => column.kind), ['old', 'line']);
  assert.deepEqual(model.values[0], [undefined, undefined, undefined, 1, 2]);
});

test('a log axis leaves out what it cannot show', () => {
  const settings: Settings = { axis: 'step', smooth: 0, logX: false, logY: true, outliers: true };
  const series = parsePoints(line([[1, 0], [2, 5]]));
  const model = buildModel([{ id: 'a', label: 'a', colour: '#112233', series }], settings, 100, '#999999');
  assert.deepEqual(model.values, [[5]]);
});

test('a histogram on another grid keeps its mass', () => {
  const cells = rebin([0, 1, 3], [4, 6], 0, 3, 6);
  assert.deepEqual(cells.map((v) => Math.round(v * 10) / 10), [2, 2, 1.5, 1.5, 1.5, 1.5]);
});

test('projection finds the direction in which points spread', () => {
  const rows = Array.from({ length: 40 }, (_, i) => [i, 2 * i, (i % 3) * 0.01]);
  const out = principal(rows, 2);
  const spread = (k: number) => Math.max(...out.map((p) => p[k]!)) - Math.min(...out.map((p) => p[k]!));
  assert.ok(Math.abs(spread(0) - 39 * Math.sqrt(5)) < 0.01);
  assert.ok(spread(1) < 0.1);
});

test('a log axis has a few marks whatever its scale begins with, and always an end', () => {
  assert.deepEqual(logTicks(0.013, 11), [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]);
  assert.deepEqual(logTicks(0.31, 0.42), [0.32, 0.34, 0.36, 0.38, 0.4, 0.42]);
  for (const [low, high] of [[1e-300, 1e300], [0.0123, 0.01230001], [3e-5, 7e4], [Number.MIN_VALUE, 1], [0.9, 1.1]]) {
    const ticks = logTicks(low!, high!);
    assert.ok(ticks.length >= 1 && ticks.length <= 14, `${low} to ${high}: ${ticks}`);
    assert.ok(ticks.every((tick, i) => tick >= low! && tick <= high! && (i === 0 || tick > ticks[i - 1]!)));
  }
  for (const [low, high] of [[0, 1], [-1, 1], [1, 1], [2, 1], [NaN, 1], [1, Infinity]]) assert.deepEqual(logTicks(low!, high!), []);
});
