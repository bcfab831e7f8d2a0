// Bundles each test with the esbuild that Vite brings, then runs all with node's own runner.
import { build } from 'esbuild';
import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, 'out');
const tests = readdirSync(here).filter((name) => name.endsWith('.test.ts'));
rmSync(out, { recursive: true, force: true });
await build({
  entryPoints: tests.map((name) => join(here, name)),
  outdir: out,
  bundle: true,
  platform: 'node',
  format: 'esm',
  outExtension: { '.js': '.mjs' },
  external: ['node:*'],
  logLevel: 'warning',
});
const files = tests.map((name) => join(out, name.replace(/\.ts$/, '.mjs')));
const run = spawnSync(process.execPath, ['--test', ...files], { stdio: 'inherit' });
process.exit(run.status ?? 1);
