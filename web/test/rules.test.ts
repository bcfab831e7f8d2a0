// Rules that hold for every file of the page.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

function files(dir: string): string[] {
  return readdirSync(dir).flatMap((name) => {
    const path = join(dir, name);
    return statSync(path).isDirectory() ? files(path) : [path];
  });
}

const sources = files('src').map((path) => ({ path, text: readFileSync(path, 'utf8') }));

test('no text ever becomes HTML or code', () => {
  for (const { path, text } of sources) {
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/, path);
  }
});

test('no address of another machine', () => {
  for (const { path, text } of sources) {
    const found = [...text.matchAll(/https?:\/\/[^\s'"`<]+/g)].map((match) => match[0]).filter((url) => !url.includes('www.w3.org/2000/svg'));
    assert.deepEqual(found.filter((url) => !/^https?:\/\/$/.test(url)), [], path);
  }
});

test('nothing inline in the first page', () => {
  const html = readFileSync('index.html', 'utf8');
  assert.doesNotMatch(html, /<style|style=|\son\w+=|<script(?![^>]*src=)/);
});

test('files stay small', () => {
  for (const { path, text } of sources) assert.ok(text.split('\n').length <= 300, path);
});

test('the lock file names no registry', () => {
  assert.doesNotMatch(readFileSync('package-lock.json', 'utf8'), /"resolved"/);
});
