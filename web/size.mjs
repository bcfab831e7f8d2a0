// Fails when what a browser loads, compressed, is larger than the bar.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const kMost = 150 * 1024;
let total = 0;
function walk(dir) {
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    if (statSync(path).isDirectory()) walk(path);
    else total += gzipSync(readFileSync(path), { level: 9 }).length;
  }
}
walk('dist');
console.log(`bundle: ${(total / 1024).toFixed(1)} KB gzip of ${kMost / 1024}`);
if (total > kMost) process.exit(1);
