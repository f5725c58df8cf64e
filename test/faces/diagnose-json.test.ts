import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { diagnoseRun } from '../../src/operations/diagnose.ts';
import { readCorpus, readHealthy } from '../diagnosis/corpus.ts';
import { run } from './run-cli.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fl-json-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const KEYS = [
  'cause',
  'family',
  'atFault',
  'confidence',
  'evidence',
  'consequences',
  'advice',
  'remedy',
  'alternatives',
];
const PLACES = ['head', 'worker', 'both', 'launcher', 'network', 'client', 'none'];

async function ask(texts: Readonly<Record<string, Uint8Array>>): Promise<Readonly<Record<string, unknown>>> {
  const argv = Object.entries(texts).flatMap(([name, bytes]) => {
    const file = join(folder, `${name}.txt`);
    writeFileSync(file, bytes);
    return ['--log', `${name}=${file}`];
  });
  const ran = await run(['diagnose', '--json', ...argv], [diagnoseRun]);
  expect(ran.code).toBe(0);
  const answer: unknown = JSON.parse(ran.stdout);
  if (typeof answer !== 'object' || answer === null) throw new Error('no object');
  return { ...answer };
}

it('prints one object with just the members that are promised, its lines as the files have them', async () => {
  for (const { texts } of readCorpus()) {
    const answer = await ask(texts);
    expect(Object.keys(answer)).toEqual(KEYS);
    const names = Object.keys(texts);
    expect([...names, ...PLACES]).toContain(answer['atFault']);
    const { evidence } = answer;
    if (!Array.isArray(evidence)) throw new Error('no evidence');
    if (answer['cause'] !== 'no-fault') expect(evidence.length).toBeGreaterThan(0);
    for (const quote of evidence) {
      expect(Object.keys(quote)).toEqual(['log', 'line', 'text']);
      const lines = readFileSync(join(folder, `${quote.log}.txt`), 'utf8').split('\n');
      expect(lines[quote.line - 1]).toBe(quote.text);
    }
  }
});

it('offers no cure for what it does not know, nor for what is well', async () => {
  expect(await ask({ head: Buffer.from('quux.FrobnicationError: flux\n') })).toMatchObject({
    cause: 'unknown',
    remedy: null,
  });
  const [first] = readHealthy();
  expect(await ask(first?.[1] ?? {})).toMatchObject({
    cause: 'no-fault',
    family: 'M',
    atFault: 'none',
    remedy: null,
  });
});
