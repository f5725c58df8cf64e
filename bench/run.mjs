// Figures that the issues ask for, each printed with how it was measured. `npm run bench`; never a timed test.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MAIN = join(import.meta.dirname, '..', 'dist', 'main.js');
const RUNS = Number(process.env.RUNS ?? 3);

const delays = { provisional: [], final: [] };
const story = [];
for (let run = 0; run < RUNS; run += 1) {
  const dir = mkdtempSync(join(tmpdir(), 'fl-bench-'));
  const started = performance.now();
  const { stdout, status } = spawnSync(
    process.execPath,
    [MAIN, 'lab', 'story', 'two-sparks', '--dir', dir, '--json'],
    {
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    },
  );
  story.push((performance.now() - started) / 1000);
  const events = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
  if (status !== 0) console.error(`story ended with ${status}`);
  const stamps = stampedLines(join(dir, 'hosts'));
  const findings = events.filter(
    (event) => event.type === 'finding' && event.cause === 'loopback-address-advertised',
  );
  for (const [kind, finding] of [
    ['provisional', findings[0]],
    ['final', findings.find((event) => event.final)],
  ]) {
    // The last quoted line is the one without which nothing could be said.
    const quoted = (finding?.quotes ?? [])
      .map((quote) => stamps.get(quote.text.trim()))
      .filter((at) => at !== undefined);
    if (quoted.length > 0) delays[kind].push(Date.parse(finding.at) - Math.max(...quoted));
  }
  rmSync(dir, { recursive: true, force: true });
}
print('fatal line on the node to the first finding on the controller, ms', delays.provisional);
print('fatal line on the node to the final finding (all ranks ended, or 5 s quiet), ms', delays.final);
print('two-sparks from nothing to given back, s', story);

/** Every line that docker stamped in the ranks' logs on the lab's hosts → ms. */
function stampedLines(folder) {
  const found = new Map();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.name !== 'log' || !entry.isFile()) continue;
    for (const line of readFileSync(join(entry.parentPath, entry.name), 'utf8').split(/\r\n|\n|\r/)) {
      const match = /^(\d{4}-\d\d-\d\dT\S+) (.*)$/.exec(line);
      if (match && !found.has(match[2].trim())) found.set(match[2].trim(), Date.parse(match[1]));
    }
  }
  return found;
}

function print(what, values) {
  const sorted = [...values].sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  const show = (value) => (value === undefined ? 'none' : value.toFixed(value < 100 ? 1 : 0));
  console.log(
    `${what}: median ${show(median)}, from ${show(sorted[0])} to ${show(sorted.at(-1))}, n=${sorted.length}`,
  );
}
