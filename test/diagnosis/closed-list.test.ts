import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { failuresPage } from '../../src/diagnosis/failures-page.ts';
import { scan } from '../../src/diagnosis/scan.ts';
import { causes, furtherCauses, unknownEntry } from '../../src/knowledge/causes.ts';
import { causesPage } from '../../src/knowledge/causes-page.ts';
import { remedies } from '../../src/knowledge/remedies/index.ts';
import { signatures } from '../../src/knowledge/signatures/index.ts';
import { evidenceOf, readCases } from './cases.ts';
import { readCorpus } from './corpus.ts';

const all = [...causes, unknownEntry, ...furtherCauses].map(({ slug }) => slug);

describe('the list of causes', () => {
  it('names each once', () => {
    expect(new Set(all).size).toBe(all.length);
  });

  it('has 112 causes in 13 families', () => {
    expect(causes).toHaveLength(112);
    expect(new Set(causes.map(({ family }) => family)).size).toBe(13);
    expect(causes.map(({ meaning }) => meaning)).toEqual(
      causes.map(() => expect.stringMatching(/^[^\n]+[.]$/)),
    );
  });

  it('is what docs/causes.md says', () => {
    expect(readFileSync(new URL('../../docs/causes.md', import.meta.url), 'utf8')).toBe(causesPage());
  });

  it('holds every cause that a signature names, a remedy treats or a sample has', () => {
    const named = [
      ...signatures.flatMap((one) => one.causes),
      ...remedies.flatMap((one) => one.causes),
      ...readCases().map((one) => one.cause),
    ];
    expect(named.filter((cause) => !all.includes(cause))).toEqual([]);
  });
});

describe('who can end a cause', () => {
  it('is this tool where it has a remedy', () => {
    const treated = new Set(remedies.flatMap((one) => one.causes));
    const wrong = causes.filter(({ slug, cure }) => treated.has(slug) && cure !== 'firstlight');
    expect(wrong.map(({ slug }) => slug)).toEqual([]);
  });
});

describe('the catalogue of failures', () => {
  const page = failuresPage(readCorpus().map(({ texts }) => texts));

  it('is what docs/failures.md says', () => {
    expect(readFileSync(new URL('../../docs/failures.md', import.meta.url), 'utf8')).toBe(page);
  });

  it('has a place for every cause, with how it looks and what ends it', () => {
    const entries = page.split(/^## /m).slice(1);
    const slugs = entries.map((entry) => `${entry.split('\n')[0]}`);
    const listed = new Set(causes.map(({ slug }) => slug));
    expect(slugs.filter((slug) => listed.has(slug))).toEqual(causes.map(({ slug }) => slug));
    // A finding prints the address of its entry, whatever its cause.
    expect(slugs.filter((slug) => !listed.has(slug)).toSorted()).toEqual(
      furtherCauses.map(({ slug }) => slug).toSorted(),
    );
    for (const entry of entries) expect(entry).toContain('**Cure.**');
    const mute = entries.filter((entry) => !entry.includes('**How it looks.**'));
    expect(mute.filter((entry) => listed.has(`${entry.split('\n')[0]}`)).length).toBeLessThan(6);
  });
});

describe('a signature', () => {
  it('has a name of its own and says where its lines were seen', () => {
    expect(new Set(signatures.map((one) => one.name)).size).toBe(signatures.length);
    for (const one of signatures)
      expect(one.seenOn.length * one.source.length * one.patterns.length).toBeGreaterThan(0);
  });

  it('does not match on the file and line of an engine', () => {
    for (const one of signatures)
      for (const { regex } of one.patterns) expect(regex.source).not.toMatch(/\\\.py:/);
  });
});

describe('the cost of a diagnosis', () => {
  it('is one pass over the lines, which a growing log does not repeat', () => {
    const texts = readCases().flatMap((one) =>
      Object.values(one.logs).flatMap((log) => log.toString('utf8').split('\n')),
    );
    const lines = Array.from({ length: 20_000 }, (_, at) => `${texts[at % texts.length]}`);
    const evidence = evidenceOf({ engine: 'vllm', logs: { head: lines } });
    const first = milliseconds(() => scan(evidence));
    const again = milliseconds(() => scan(evidence));
    expect(first).toBeLessThan(3000);
    expect(again).toBeLessThan(Math.max(50, first / 4));
  });
});

/** Of this process's own work: what else the machine does is not counted. */
function milliseconds(work: () => void): number {
  const begun = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1000;
}
