import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ansi, plain } from '../src/lib/ansi';
import { csv, parseCsv } from '../src/lib/csv';
import { addClause, asFilter, comparatorsOf, complete, expect, fieldOf, fixedCompletions, formatClause, kMeanings } from '../src/lib/filter';
import { bytes, duration, money, number, shellWord } from '../src/lib/format';
import { goalOf } from '../src/lib/goal';
import { merged } from '../src/lib/merged';
import { inlines, markdown, safeHref } from '../src/lib/markdown';
import { formatRoute, parseRoute } from '../src/lib/route';
import { dimension, dimensions, ticks } from '../src/pages/compare/axes';
import type { Run } from '../src/state/types';

test('an address comes back as it went, whatever names hold', () => {
  const path = ['job', 'a/b %?#é', 'charts'];
  const query = { x: 'm:val/loss', filter: "params.a = 'x&y'", empty: '' };
  const back = parseRoute(formatRoute(path, query));
  assert.deepEqual(back.path, path);
  assert.deepEqual(back.query, { x: 'm:val/loss', filter: "params.a = 'x&y'" });
  assert.deepEqual(parseRoute('#/job/%E0%A4%A').path, ['job', '%E0%A4%A']);
  assert.deepEqual(parseRoute('').path, []);
});

test('a name in a command is one word of a shell', () => {
  assert.equal(shellWord('train-12'), 'train-12');
  assert.equal(shellWord("it's $HOME"), "'it'\\''s $HOME'");
  assert.equal(shellWord(''), "''");
});

test('the links that MLflow prints lead to the run', () => {
  const run = '019cd2c7f0b3e5a0d6a1b2c3d4e5f607';
  assert.deepEqual(parseRoute(`#/experiments/4/runs/${run}`).path, ['job', run]);
  assert.deepEqual(parseRoute(`#/experiments/4/runs/${run}?workspace=a`), { path: ['job', run], query: { workspace: 'a' } });
  assert.deepEqual(parseRoute(`#/experiments/4/runs/${run}/artifacts`).path, ['job', run, 'artifacts']);
  assert.deepEqual(parseRoute(`#/experiments/4/runs/${run}/model-metrics`).path, ['job', run, 'charts']);
  assert.deepEqual(parseRoute('#/experiments/4').path, ['experiments', '4']);
  assert.deepEqual(parseRoute('#/models/net/versions/2').path, ['models', 'net', 'versions', '2']);
});

test('terminal colours become spans, and nothing else of a terminal comes through', () => {
  assert.deepEqual(ansi('a\x1b[1;31mb\x1b[0mc'), [{ text: 'a' }, { text: 'b', bold: true, fg: 'a1' }, { text: 'c' }]);
  assert.deepEqual(ansi('\x1b[38;2;255;0;16mx'), [{ text: 'x', fg: '#ff0010' }]);
  assert.deepEqual(ansi('\x1b[38;5;196mx'), [{ text: 'x', fg: '#ff0000' }]);
  assert.equal(plain('\x1b]0;title\x07a\x1b[2Jb\x08c'), 'abc');
  assert.equal(plain(' 10%\r 50%\r100%\r\n'), '100%');
  assert.deepEqual(ansi('<script>alert(1)</script>'), [{ text: '<script>alert(1)</script>' }]);
});

test('the filter knows what may come next', () => {
  const at = (text: string) => expect(text, text.length);
  assert.equal(at('').want, 'field');
  assert.deepEqual(fixedCompletions(at('me')), ['metrics.']);
  assert.equal(at('metrics.lo').names, 'metric');
  assert.equal(at('metrics.lo').prefix, 'lo');
  assert.equal(at('metrics.loss ').want, 'comparator');
  assert.ok(fixedCompletions(at('metrics.loss ')).includes('<='));
  assert.ok(!fixedCompletions(at('metrics.loss ')).includes('LIKE'));
  assert.equal(at('metrics.loss < ').want, 'value');
  assert.deepEqual(fixedCompletions(at('metrics.loss < 3 ')), ['AND']);
  assert.equal(at('metrics.loss < 3 AND ').want, 'field');
  assert.equal(at('tags.a IS NOT NULL ').want, 'and');
  assert.equal(at("params.`a b` = 'x y' AND p").prefix, 'p');
  assert.ok(fixedCompletions(at('attributes.status = ')).includes("'RUNNING'"));
});

test('a completion replaces what was begun and quotes what needs it', () => {
  const text = 'metrics.va';
  const [next, caret] = complete(text, expect(text, text.length), 'val/loss');
  assert.equal(next, 'metrics.`val/loss` ');
  assert.equal(caret, next.length);
});

test('clauses are written as the server reads them', () => {
  assert.equal(formatClause({ field: 'metrics.loss', comparator: '<', value: '0.5' }), 'metrics.loss < 0.5');
  assert.equal(formatClause({ field: 'params.opt', comparator: 'IN', value: 'a, b' }), "params.opt IN ('a', 'b')");
  assert.equal(formatClause({ field: 'tags.x', comparator: 'IS NULL', value: 'no' }), 'tags.x IS NULL');
  assert.equal(addClause("params.a = '1'", { field: 'params.b', comparator: '=', value: "it's" }), "params.a = '1' AND params.b = 'its'");
  assert.equal(fieldOf('metric', 'val/loss'), 'metrics.`val/loss`');
  assert.equal(asFilter('resnet'), "attributes.run_name ILIKE '%resnet%'");
  assert.equal(asFilter('metrics.a < 1'), 'metrics.a < 1');
});

test('Markdown holds no HTML and no address that runs', () => {
  assert.deepEqual(markdown('<img src=x onerror=alert(1)>'), [
    { kind: 'paragraph', body: [{ kind: 'text', text: '<img src=x onerror=alert(1)>' }] }]);
  for (const bad of ['javascript:alert(1)', ' JaVaScRiPt:alert(1)', 'java\tscript:alert(1)', 'data:text/html,x', '//evil', 'vbscript:x']) {
    assert.equal(safeHref(bad), undefined, bad);
  }
  assert.equal(safeHref('https://a.b/c'), 'https://a.b/c');
  assert.deepEqual(inlines('[x](javascript:alert)'), [{ kind: 'text', text: 'x' }]);
});

test('Markdown has its blocks', () => {
  const kinds = markdown('# T\n\ntext **b**\n\n- a\n- b\n\n```\ncode\n```\n\n> q\n\n|a|b|\n|-|-|\n|1|2|\n\n---\n').map((block) => block.kind);
  assert.deepEqual(kinds, ['heading', 'paragraph', 'list', 'code', 'quote', 'table', 'rule']);
});

test('a table survives CSV, and no cell becomes a formula', () => {
  assert.equal(csv([['a', '=1+1', 'x"y', 'l\nm', 2, null]]), 'a,\'=1+1,"x""y","l\nm",2,\r\n');
  assert.deepEqual(parseCsv('a,"b ""c"""\r\n1,2\n'), [['a', 'b "c"'], ['1', '2']]);
});

test('numbers are written for people', () => {
  assert.equal(number(0.123456), '0.1235');
  assert.equal(number('NaN'), 'NaN');
  assert.equal(number('-Infinity'), '−∞');
  assert.equal(number(1e-7), '1.00e−7');
  assert.equal(duration(61_000), '1 m 01 s');
  assert.equal(duration(90 * 60_000), '1 h 30 m');
  // The same cases as base/text/text_test.cc: `ath` and the page say it alike.
  for (const [ms, text] of [[320, '320 ms'], [4290, '4.2 s'], [5000, '5 s'], [59_999, '59 s'], [62_000, '1 m 02 s'],
    [120_000, '2 m'], [3_723_000, '1 h 02 m'], [48 * 3_600_000, '2 d'], [53 * 3_600_000, '2 d 5 h']] as const) {
    assert.equal(duration(ms), text);
  }
  for (const [size, text] of [[0, '0 B'], [1023, '1023 B'], [1024, '1 KiB'], [1_234_567, '1.2 MiB'], [(1 << 20) - 1, '1 MiB'],
    [300_000_000, '286 MiB'], [24 * 2 ** 30, '24 GiB']] as const) {
    assert.equal(bytes(size), text);
  }
  assert.equal(money(1_500_000), '$1.50');
});

test('only a name that tells which way is better has a best', () => {
  for (const name of ['loss', 'val/loss', 'train_loss_epoch', 'eval.rmse', 'testError', 'word_error_rate']) assert.equal(goalOf(name), 'minimize', name);
  for (const name of ['accuracy', 'val/acc', 'top/accuracy_top5', 'f1_macro', 'mean_reward']) assert.equal(goalOf(name), 'maximize', name);
  for (const name of ['lr', 'grad_norm', 'memory', 'loss_scale', 'epoch', 'step', 'throughput', 'temperature']) assert.equal(goalOf(name), undefined, name);
});

test('plain words are a search by name, and "contains" makes its own pattern', () => {
  assert.equal(formatClause({ field: 'params.opt', comparator: 'ILIKE', value: 'ada' }), "params.opt ILIKE '%ada%'");
  assert.equal(formatClause({ field: 'params.opt', comparator: 'ILIKE', value: 'ada%' }), "params.opt ILIKE 'ada%'");
  for (const comparator of [...comparatorsOf('params.x'), ...comparatorsOf('metrics.x')]) assert.ok(kMeanings[comparator], comparator);
});

const run = (id: string, lr: string, loss: number): Run => ({ id, run_id: id, name: id, experiment: '', user: '', status: 'FINISHED',
  created: '', job: true, metrics: { loss: { last: loss, step: 1, min: loss, max: loss, count: 1 }, lr: { last: loss, step: 1, min: 0, max: 1, count: 1 } }, params: { lr }, tags: {} });
test('axes are marked at round numbers', () => {
  const runs = [run('a', '0.00013', 0.1234), run('b', '0.0731', 2.891)];
  assert.deepEqual(ticks(dimension('m:loss', runs)).map((one) => one.text), ['0.5', '1', '1.5', '2', '2.5']);
  assert.deepEqual(ticks(dimension('p:lr', runs)).map((one) => one.text), ['0.0002', '0.0005', '0.001', '0.002', '0.005', '0.01', '0.02', '0.05']);
  assert.deepEqual(dimensions(['m:lr', 'p:lr'], runs).map((one) => one.title), ['lr (metric)', 'lr (parameter)']);
});

test('of the runs that are compared only those that changed are replaced', () => {
  const [a, b, c] = [run('a', '1', 1), run('b', '1', 1), run('c', '1', 1)];
  const fresh = run('b', '1', 2);
  assert.deepEqual(merged([a, b], ['b', 'c'], [fresh, c], 10), [c, a, fresh]);
  assert.deepEqual(merged([a, b], ['b'], [], 10), [a]); // it does not belong there any more
});
