import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ansi, plain } from '../src/lib/ansi';
import { csv, parseCsv } from '../src/lib/csv';
import { addClause, asFilter, complete, expect, fieldOf, fixedCompletions, formatClause } from '../src/lib/filter';
import { bytes, duration, money, number, shellWord } from '../src/lib/format';
import { inlines, markdown, safeHref } from '../src/lib/markdown';
import { formatRoute, parseRoute } from '../src/lib/route';

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
  assert.equal(bytes(1536), '1.5 KiB');
  assert.equal(money(1_500_000), '$1.50');
});
