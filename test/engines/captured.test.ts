import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { answerTo } from '../diagnosis/corpus.ts';

// Logs of real engines that `npm run e2e -- --engine …` broke, and whose answer is known; see test/samples/SOURCES.md.

const LOGS = new URL('../samples/engines/logs/', import.meta.url);

const schema = z.strictObject({
  cause: z.string(),
  atFault: z.string(),
  engine: z.string(),
  /** What was done to it. */
  broken: z.string(),
  /** A line that must be among the quotes. */
  quote: z.string().optional(),
});

const cases = readdirSync(LOGS)
  .filter((name) => existsSync(new URL(`${name}/case.yaml`, LOGS)))
  .map((name) => {
    const here = new URL(`${name}/`, LOGS);
    const about = schema.parse(parse(readFileSync(new URL('case.yaml', here), 'utf8')));
    const files = readdirSync(here).filter((file) => file.endsWith('.log'));
    const texts = Object.fromEntries(
      files.map((file) => [file.replace('.log', ''), readFileSync(new URL(file, here), 'utf8')]),
    );
    return { ...about, name, texts };
  });

describe('logs captured from a real engine', () => {
  it.each(cases.map((one) => [one.name, one] as const))('%s give its cause and its node', (_name, one) => {
    const answer = answerTo(one.texts);
    expect(answer).toMatchObject({ cause: one.cause, atFault: one.atFault });
    const quotes = (answer.finding?.quotes ?? []).map(({ text }) => text);
    const lines = Object.values(one.texts).flatMap((text) => text.split(/\r?\n|\r/));
    for (const quote of quotes) expect(lines).toContain(quote);
    if (one.quote !== undefined) expect(quotes.join('\n')).toContain(one.quote);
  });

  it('hold nothing of the machine they were taken on', () => {
    for (const { texts } of cases)
      for (const text of Object.values(texts))
        expect(text).not.toMatch(/\/root\/|\/work\/|(?<!\/var)\/tmp\//);
  });
});
